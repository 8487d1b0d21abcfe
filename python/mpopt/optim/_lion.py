"""Lion: the sign of a mean of gradients (Chen et al., 2023), with decoupled decay."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from ._fused import Fused
from ._plan import States
from ._storage import state_dtype, takes_options


class Lion(Fused):
    """p = p * (1 - lr * weight_decay) - lr * sign(beta1 * m + (1 - beta1) * g).

    A weight whose direction is 0 does not move. Further options: see `Fused`.

    Raises:
        ValueError: a figure out of range, as in torch.optim.Adam.
    """

    algorithm = "lion"
    is_decoupled = True

    @takes_options
    def __init__(
        self,
        params: Iterable[Any],
        lr: float | Tensor = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr >= 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        for index, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {index}: {beta}")
        if not weight_decay >= 0.0:
            raise ValueError(f"Invalid weight_decay value: {weight_decay}")
        defaults = {"lr": lr, "betas": betas, "weight_decay": weight_decay, "maximize": maximize}
        super().__init__(params, defaults)

    def _states(self, param: Tensor, group: dict[str, Any]) -> States:
        mean = self.state[param].get("exp_avg")
        is_new = mean is None
        if is_new:
            mean = torch.zeros_like(param, dtype=state_dtype(param, group))
        return States(mean, step=self._next_step(param), is_new=is_new)

    def _keep(self, param: Tensor, states: States) -> None:
        self.state[param]["exp_avg"] = states.first
