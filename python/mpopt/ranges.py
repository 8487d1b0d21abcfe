"""What is measured of a value: how its magnitudes are distributed over powers of two.

The limits of the float formats are powers of two, or nearly, so a histogram of exponents
answers all questions about overflow and underflow, under every loss scale, exactly.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterable

import torch
from torch import Tensor

_FIRST, _LAST = -150, 128
_ZERO = _LAST - _FIRST + 1
_CHUNK = 1 << 20
_MASK = -(2.0**127)
"""A number from here down is the `finfo.min` of a mask: it counts as an inf."""


@dataclasses.dataclass(frozen=True)
class Format:
    """Limits of a half type, as exponents of two where they are powers of two."""

    name: str
    largest: float
    normal: int
    subnormal: int
    digits: int
    """Bits of the significand, with the hidden one."""


FORMATS = {
    torch.float16: Format("float16", 65504.0, -14, -24, 11),
    torch.bfloat16: Format("bfloat16", (2 - 2**-7) * 2.0**127, -126, -133, 8),
}


@dataclasses.dataclass
class Range:
    """Of one value, over all batches. Infs and NaNs are counted and left out of the rest."""

    dtype: str = ""
    """Of the value as it was traced."""
    elements: int = 0
    absmax: float = 0.0
    square_sum: float = 0.0
    infs: int = 0
    nans: int = 0
    exponents: Counter[int] = dataclasses.field(default_factory=Counter)
    """How many nonzero elements lie in [2^e, 2^(e+1))."""
    head_logits: list[float] | None = None
    """For each head, the largest logit that enters the softmax of attention."""

    @property
    def nonzero(self) -> int:
        """Finite elements that are not zero."""
        return sum(self.exponents.values())

    @property
    def rms(self) -> float:
        """Root of the mean square of the finite elements."""
        finite = self.elements - self.infs - self.nans
        return math.sqrt(self.square_sum / finite) if finite else 0.0

    def below(self, exponent: int) -> float:
        """Share of the nonzero elements whose magnitude is below 2^exponent."""
        less = sum(n for e, n in self.exponents.items() if e < exponent)
        return less / self.nonzero if less else 0.0

    def headroom(self, form: Format) -> float:
        """log2 of how much larger the values could be; negative if they overflow."""
        return math.log2(form.largest / self.absmax) if self.absmax else math.inf

    def add(self, value: Tensor) -> None:
        """Count the elements of `value`."""
        flat = value.detach().reshape(-1)
        for chunk in torch.split(flat, _CHUNK):
            self._add_chunk(chunk)
        self.elements += flat.numel()

    def _add_chunk(self, chunk: Tensor) -> None:
        if chunk.numel() == 0:
            return
        wide = chunk if chunk.dtype is torch.float64 else chunk.float()
        infs, nans = wide.isinf() | (wide <= _MASK), wide.isnan()
        size = wide.abs().masked_fill(infs | nans, 0.0)
        exponent = torch.frexp(size)[1].long() - 1
        slot = exponent.clamp(_FIRST, _LAST) - _FIRST
        slot = torch.where(size == 0, _ZERO, slot)
        figures = torch.stack([size.max().double(), size.double().square().sum()])
        numbers = torch.cat([infs.sum()[None], nans.sum()[None], _counts(slot)]).tolist()
        largest, squares = figures.tolist()
        self.absmax = max(self.absmax, largest)
        self.square_sum += squares
        self.infs += numbers[0]
        self.nans += numbers[1]
        for index, count in enumerate(numbers[2 : _ZERO + 2]):
            if count:
                self.exponents[index + _FIRST] += count

    def add_logits(self, logits: Iterable[float]) -> None:
        """Take the largest logits of one batch, by head, into account."""
        given = list(logits)
        if self.head_logits is None or len(self.head_logits) != len(given):
            self.head_logits = given
        else:
            self.head_logits = list(map(max, self.head_logits, given))


def _counts(slot: Tensor) -> Tensor:
    return torch.bincount(slot, minlength=_ZERO + 1)


def logits_of_attention(query: Tensor, key: Tensor, scale: float | None) -> list[float]:
    """The largest of q·kᵀ·scale in each head, masked positions included, a few rows at a time."""
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1])
    heads = query.shape[-3]
    shared = heads // max(1, key.shape[-3])
    key = key.repeat_interleave(shared, dim=-3) if shared > 1 else key
    column = key.float().transpose(-1, -2)
    width = max(1, column.shape[-1] * heads * query.shape[0])
    rows = max(1, _CHUNK * 4 // width)
    found = [_largest_by_head(q.float() @ column * scale) for q in torch.split(query, rows, dim=-2)]
    return [max(each) for each in zip(*found, strict=True)]


def logits_of_softmax(logits: Tensor) -> list[float]:
    """The largest finite element in each head of (batch, heads, queries, keys)."""
    return _largest_by_head(logits.float())


def _largest_by_head(logits: Tensor) -> list[float]:
    lowest = torch.finfo(torch.float32).min
    finite = logits.nan_to_num(nan=lowest, posinf=lowest, neginf=lowest)
    values: list[float] = finite.amax(dim=(0, 2, 3)).tolist()
    return values
