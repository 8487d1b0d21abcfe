"""SGD as in torch.optim, with momentum and Nesterov's."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ._fused import Fused


class SGD(Fused, torch.optim.SGD):
    """torch.optim.SGD, with `step(clip=…, zero_grad=…)`; see `Fused.step`."""

    algorithm = "sgd"
    torch_class = torch.optim.SGD

    def _hyperparameters(self, group: dict[str, Any]) -> dict[str, Any]:
        names = ("lr", "weight_decay", "momentum", "dampening", "maximize", "nesterov")
        return {name: group[name] for name in names}

    def _states(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        arrays: dict[str, Any] = {"step": 1.0, "is_first": False}
        if group["momentum"] == 0:
            return arrays
        buffer = self.state[param].get("momentum_buffer")
        arrays["is_first"] = buffer is None
        arrays["first"] = torch.zeros_like(param) if buffer is None else buffer
        return arrays

    def _keep(self, param: Tensor, arrays: dict[str, Any]) -> None:
        if arrays["is_first"]:
            buffer = arrays["first"]
            is_complex = param.is_complex()
            self.state[param]["momentum_buffer"] = (
                torch.view_as_complex(buffer) if is_complex else buffer
            )
