"""Adam and AdamW as in torch.optim, bit for bit those of `fused=True` on the CPU."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ._fused import Fused
from ._plan import States
from ._storage import state_dtype, takes_options

_FIRST, _SECOND, _LARGEST = "exp_avg", "exp_avg_sq", "max_exp_avg_sq"


class Adam(Fused, torch.optim.Adam):
    """torch.optim.Adam, with `step(clip=…, zero_grad=…)`, see `Fused.step`, and the options
    `master`, `rounding`, `seed` and `state_dtype`, see `Fused`."""

    algorithm = "adam"
    torch_class: type[torch.optim.Optimizer] = torch.optim.Adam
    __init__ = takes_options(torch.optim.Adam.__init__)

    def _states(self, param: Tensor, group: dict[str, Any]) -> States:
        state = self.state[param]
        amsgrad = group["amsgrad"]
        if "step" in state and not (amsgrad and _LARGEST not in state):
            largest = state[_LARGEST] if amsgrad else None
            return States(state[_FIRST], state[_SECOND], largest, self._next_step(param))
        dtype = state_dtype(param, group)
        first, second = (
            state.get(k, torch.zeros_like(param, dtype=dtype)) for k in (_FIRST, _SECOND)
        )
        largest = torch.zeros_like(param, dtype=dtype) if amsgrad else None
        return States(first, second, largest, self._next_step(param), is_new=True)

    def _keep(self, param: Tensor, states: States) -> None:
        state = self.state[param]
        state.setdefault("step", torch.tensor(0.0))
        state[_FIRST], state[_SECOND] = states.first, states.second
        if states.largest is not None:
            state[_LARGEST] = states.largest

    def _has_steps(self, param: Tensor) -> bool:
        return True

    def _count(self, params: list[Tensor]) -> None:
        torch._foreach_add_([self.state[param]["step"] for param in params], 1.0)


class AdamW(Adam, torch.optim.AdamW):
    """torch.optim.AdamW, with what `Adam` has besides."""

    torch_class = torch.optim.AdamW
    __init__ = takes_options(torch.optim.AdamW.__init__)
