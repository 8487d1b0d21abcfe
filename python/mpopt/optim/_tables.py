"""The tables that the kernels of the update read, in the memory of the device.

Made once; written again only where addresses have changed. Layouts: runtime/CudaUpdate.h.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ._device import Device

CHUNK = 32768
"""Elements of a block: kCudaChunk."""
TOTALS = 3
"""Doubles of a CudaTotals: the sum of squares, infs, NaNs."""
_ROW, _CLOCK, _CHUNK, _PART, _FACTORS = 64, 24, 8, 24, 80


class Line(NamedTuple):
    """One tensor: what its kernel is compiled for, and its addresses."""

    kind: str
    """As in the line of its `update`, without `clear`."""
    gradient: str
    """The format of the gradient."""
    spread: int
    """The number of the ranks that hold its pieces."""
    group: int
    size: int
    addresses: tuple[int, ...]
    """weight, its low half, gradient, first, second, largest, copy; 0 for none."""
    clock: tuple[int, int, int]
    """Address of the steps, of the age, and the parameter's number."""


class Launch(NamedTuple):
    """The chunks of lines that share their kernels."""

    kind: str
    gradient: str
    spread: int
    first: int
    """Number of the first chunk."""
    blocks: int
    """How many chunks there are."""


class Tables:
    """Tables for `lines`, in memory of their own. `is_frozen`: a graph was captured with them."""

    def __init__(self, device: Device, lines: Sequence[Line], spreads: int) -> None:
        self.device = device
        self.is_frozen = False
        self.layout = layout_of(lines)
        order = sorted(range(len(lines)), key=lambda i: lines[i][:3])
        self._rows = {number: row for row, number in enumerate(order)}
        self._order = order
        self.clocks: dict[int, tuple[int, int]] = {}
        """Of each group, its first clock and how many there are."""
        chunks = self._count(lines)
        sections = {
            "rows": _ROW * len(lines),
            "clocks": _CLOCK * len(lines),
            "chunks": len(chunks),
            "factors": _FACTORS * len(lines),
            "parts": _PART * (len(chunks) // _CHUNK),
            "totals": 8 * TOTALS * spreads,
        }
        starts, end = {}, 0
        for name, size in sections.items():
            starts[name], end = end, end + (size + 15) // 16 * 16
        self.memory = torch.empty(end, dtype=torch.uint8, device=device.device)
        base = self.memory.data_ptr()
        self._addresses = {name: base + start for name, start in starts.items()}
        start = starts["totals"]
        totals = self.memory[start : start + sections["totals"]].view(torch.float64)
        self.totals: Tensor = totals.view(spreads, TOTALS)
        self.totals.zero_()
        if chunks:
            device.poke(self._addresses["chunks"], chunks)
        self._written: Any = None
        self.write(lines)

    def _count(self, lines: Sequence[Line]) -> bytes:
        """Sets the launches and the groups' clocks; returns the chunks."""
        self.launches: list[Launch] = []
        chunks: list[int] = []
        for row, number in enumerate(self._order):
            line, first = lines[number], len(chunks) // 2
            count = -(-line.size // CHUNK)
            for chunk in range(count):
                chunks += row, chunk
            if self.launches and self.launches[-1][:3] == line[:3]:
                last = self.launches.pop()
                self.launches.append(last._replace(blocks=last.blocks + count))
            else:
                self.launches.append(Launch(*line[:3], first, count))
        for number, line in enumerate(lines):
            begin, count = self.clocks.get(line.group, (number, 0))
            self.clocks[line.group] = begin, count + 1
        return struct.pack(f"<{len(chunks)}i", *chunks)

    def write(self, lines: Sequence[Line]) -> None:
        """Tell the device where the tensors of `lines`, of the same layout, are now."""
        if lines == self._written:
            return
        rows = [struct.pack("<8q", *lines[i].addresses, lines[i].size) for i in self._order]
        clocks = [
            struct.pack("<2q2I", *line.clock, self._rows[number])
            for number, line in enumerate(lines)
        ]
        self._poke("rows", rows)
        self._poke("clocks", clocks)
        self._written = lines

    def _poke(self, name: str, pieces: list[bytes]) -> None:
        self.device.poke(self._addresses[name], b"".join(pieces))

    def fits(self, lines: Sequence[Line]) -> bool:
        """True if these are the tensors that the device knows."""
        return bool(lines == self._written)

    # Addresses on the device.

    @property
    def rows(self) -> int:
        """CudaRow[]."""
        return self._addresses["rows"]

    @property
    def factors(self) -> int:
        """CudaFactors[]."""
        return self._addresses["factors"]

    def clocks_from(self, number: int) -> int:
        """CudaClock[], from one of them on."""
        return self._addresses["clocks"] + _CLOCK * number

    def chunks_from(self, number: int) -> int:
        """CudaChunk[], from one of them on."""
        return self._addresses["chunks"] + _CHUNK * number

    def parts_from(self, number: int) -> int:
        """CudaPart[], from one of them on."""
        return self._addresses["parts"] + _PART * number


def layout_of(lines: Sequence[Line]) -> Any:
    """What stays the same while only addresses change."""
    return [line[:5] for line in lines]
