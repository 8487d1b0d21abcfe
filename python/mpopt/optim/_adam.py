"""Adam and AdamW as in torch.optim, bit for bit those of `fused=True` on the CPU."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ._fused import Fused

_KEYS = {"first": "exp_avg", "second": "exp_avg_sq", "largest": "max_exp_avg_sq"}


class Adam(Fused, torch.optim.Adam):
    """torch.optim.Adam, with `step(clip=…, zero_grad=…)`; see `Fused.step`."""

    algorithm = "adam"
    torch_class: type[torch.optim.Optimizer] = torch.optim.Adam

    def _hyperparameters(self, group: dict[str, Any]) -> dict[str, Any]:
        beta1, beta2 = group["betas"]
        return {
            "lr": group["lr"],
            "beta1": beta1,
            "beta2": beta2,
            "eps": group["eps"],
            "weight_decay": group["weight_decay"],
            "decoupled": group["decoupled_weight_decay"],
            "maximize": group["maximize"],
        }

    def _states(self, param: Tensor, group: dict[str, Any]) -> dict[str, Any]:
        state = self.state[param]
        names = ["first", "second"] + (["largest"] if group["amsgrad"] else [])
        arrays: dict[str, Any] = {
            name: state[_KEYS[name]] if _KEYS[name] in state else torch.zeros_like(param)
            for name in names
        }
        step = float(state["step"]) if "step" in state else 0.0
        return {**arrays, "step": step + 1.0, "is_first": step == 0.0}

    def _keep(self, param: Tensor, arrays: dict[str, Any]) -> None:
        state = self.state[param]
        if "step" not in state:
            state["step"] = torch.tensor(0.0)
        for name, key in _KEYS.items():
            if name in arrays and key not in state:
                value = arrays[name]
                state[key] = torch.view_as_complex(value) if param.is_complex() else value
        state["step"] += 1


class AdamW(Adam, torch.optim.AdamW):
    """torch.optim.AdamW, with `step(clip=…, zero_grad=…)`; see `Fused.step`."""

    torch_class = torch.optim.AdamW
