"""SGD as in torch.optim, with momentum and Nesterov's."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ._fused import Fused
from ._plan import States
from ._storage import state_dtype, takes_options


class SGD(Fused, torch.optim.SGD):
    """torch.optim.SGD, with `step(clip=…, zero_grad=…)`, see `Fused.step`, and the options
    `master`, `rounding`, `seed` and `state_dtype`, see `Fused`."""

    algorithm = "sgd"
    torch_class = torch.optim.SGD
    __init__ = takes_options(torch.optim.SGD.__init__)

    def _states(self, param: Tensor, group: dict[str, Any]) -> States:
        if group["momentum"] == 0:
            return States(step=self._next_step(param))
        buffer = self.state[param].get("momentum_buffer")
        is_new = buffer is None
        if is_new:
            buffer = torch.zeros_like(param, dtype=state_dtype(param, group))
        return States(buffer, step=self._next_step(param), is_new=is_new)

    def _keep(self, param: Tensor, states: States) -> None:
        self.state[param]["momentum_buffer"] = states.first
