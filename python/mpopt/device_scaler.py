"""The state of a loss scaler on a GPU: one block there, stepped there, seen from here."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from .mirror import Mirror
from .optim._device import Device
from .optim._tables import TOTALS

_STATE = struct.Struct("<fiiIIiIIQQII")
_BYTES, _FLAGS = 64, 64
"""Of a ScalerState (runtime/LossScaler.h), and where the flags of this step follow."""
_FAILED = 2


class Seen(NamedTuple):
    """A ScalerState."""

    scale: float
    growth_tracker: int
    hysteresis_left: int
    flags: int
    status: int
    floor_hits: int
    resets: int
    skipped_in_a_row: int
    applied: int
    skipped: int
    inf_steps: int
    nan_steps: int

    @property
    def failed(self) -> bool:
        """The rule gives up."""
        return self.status & _FAILED != 0


class DeviceScaler:
    """A block with `scale` and `growth_tracker`, which are views of it."""

    def __init__(self, device: Device, scale: float, growth_tracker: int, hysteresis: int) -> None:
        self.device = device
        first = _STATE.pack(scale, growth_tracker, hysteresis, *[0] * 9)
        data = torch.frombuffer(bytearray(first.ljust(_BYTES + 16, b"\0")), dtype=torch.uint8)
        self._block = data.to(device.device, copy=True)
        self.scale: Tensor = self._block.view(torch.float32)[0]
        self.growth_tracker: Tensor = self._block.view(torch.int32)[1]
        self.hysteresis_left: Tensor = self._block.view(torch.int32)[2]
        self._zeros = torch.zeros(TOTALS, dtype=torch.float64, device=device.device)
        self.mirror = Mirror(self._block[:_BYTES])

    def note(self, totals: Tensor | None, found: Tensor | None) -> None:
        """Add what an optimizer's gradients were found to be: a CudaTotals, or a flag."""
        nothing = self._zeros.data_ptr()
        if found is not None:
            found = found.to(self.device.device, torch.float32, non_blocking=True)
        addresses = [nothing if t is None else t.data_ptr() for t in (totals, found)]
        self.device.launch("note", [*addresses, self._block.data_ptr() + _FLAGS])

    def advance(self, rule: str, figures: Mapping[str, Any]) -> None:
        """The rule's step by all that was noted since the last one."""
        line = " ".join(["advance", rule, *(f"{k}={v}" for k, v in figures.items())])
        base = self._block.data_ptr()
        self.device.launch(line, [base, base + _FLAGS])
        self.mirror.issue(self.device.is_capturing())

    def seen(self) -> Seen | None:
        """The newest state that the host knows, without waiting; None before the first."""
        data = self.mirror.read()
        return None if data is None else Seen(*_STATE.unpack(data[: _STATE.size]))
