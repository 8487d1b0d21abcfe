"""SGD as in torch.optim, with momentum and Nesterov's."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ._fused import Fused, States


class SGD(Fused, torch.optim.SGD):
    """torch.optim.SGD, with `step(clip=…, zero_grad=…)`; see `Fused.step`."""

    algorithm = "sgd"
    torch_class = torch.optim.SGD

    def _states(self, param: Tensor, group: dict[str, Any]) -> States:
        if group["momentum"] == 0:
            return States()
        buffer = self.state[param].get("momentum_buffer")
        is_new = buffer is None
        return States(torch.zeros_like(param) if is_new else buffer, is_new=is_new)

    def _keep(self, param: Tensor, states: States) -> None:
        self.state[param]["momentum_buffer"] = states.first
