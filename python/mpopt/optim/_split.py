"""fp32 masters in two halves: a weight in bfloat16 and the 16 bits below it.

The master is the weight, one lower in its bit pattern where the low half is negative as
int16, followed by the low half. So the weight is the master rounded to the nearest bfloat16,
ties away from zero; a NaN has no low half.

The weight is everybody's; the low half belongs to the value that the optimizer wrote. When
somebody else has written the weight since, as far as PyTorch counts, the master is what they
wrote: the low half is dropped.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .. import log
from ._shadow import Stamp
from ._storage import LOW


def join(weight: Tensor, low: Tensor) -> Tensor:
    """The master in float32, of a weight in bfloat16 and its low half in int16."""
    bits = low.to(torch.int32)
    high = weight.detach().view(torch.int16).to(torch.int32) - (bits < 0).to(torch.int32)
    return ((high << 16) | (bits & 0xFFFF)).view(torch.float32)


class LowHalves:
    """Which low halves belong to the weights as they are now."""

    def __init__(self) -> None:
        self._stamps: dict[Tensor, Stamp] = {}

    def get(self, param: Tensor, state: dict[str, Any]) -> Tensor:
        """The low half for the next update; zeros, not yet in `state`, if there is none.

        One that was loaded belongs to the weight that is there now: checkpoints of model and
        optimizer are loaded in either order.
        """
        low = state.get(LOW)
        if low is None:
            return torch.zeros_like(param, dtype=torch.int16, requires_grad=False)
        stamp = self._stamps.get(param)
        if stamp is None:
            self.stamp(param)
        elif not stamp.is_current(param):
            log.counters["split_masters_dropped"] += 1
            low.zero_()
            self.stamp(param)
        return low  # type: ignore[no-any-return]

    def stamp(self, param: Tensor) -> None:
        """Record that the low half belongs to the weight as it is."""
        self._stamps.setdefault(param, Stamp()).stamp(param)


class SplitMasters(torch.optim.Optimizer):
    """An optimizer whose state may hold low halves."""

    def master_weight(self, param: Tensor) -> Tensor:
        """The weight in float32, a new tensor; with the low half of a split master."""
        low = self._low_half(param) if LOW in self.state.get(param, {}) else None
        return param.detach().float().clone() if low is None else join(param, low)

    def _low_half(self, param: Tensor) -> Tensor:
        return self._lows().get(param, self.state[param])

    def _lows(self) -> LowHalves:
        found: LowHalves = self.__dict__.setdefault("_low_halves", LowHalves())
        return found

    def _settle_low_halves(self) -> None:
        """Before states are saved: low halves belong to the weights that are there."""
        for param, state in self.state.items():
            if isinstance(param, Tensor) and LOW in state:
                self._low_half(param)

    def state_dict(self) -> dict[str, Any]:
        """As PyTorch's; with split masters also `weight_low`, of int16, for each weight."""
        self._settle_low_halves()
        return super().state_dict()

    def __getstate__(self) -> dict[str, Any]:
        self._settle_low_halves()
        return super().__getstate__()

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.pop("_low_halves", None)
