"""How large gradients are: a histogram over powers of two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ._base import Callback, check_every, due

if TYPE_CHECKING:
    from ._metrics import StepMetrics

SMALL = 1e-7
"""About the least number of fp16, 2 ** -24; what is smaller is lost there without a scale."""

# Of fp64: frexp gives -1073 for its least number, 1024 for its largest.
_LEAST, _BINS = -1074, 2099


@dataclass(frozen=True)
class Histogram:
    """Counts of |gradient| over all parameters, without the loss scale."""

    first_exponent: int
    """Of the first bin. A bin holds 2 ** e <= |g| < 2 ** (e + 1)."""
    counts: tuple[int, ...]
    """From `first_exponent` on; zeros and what is not finite are in no bin."""
    elements: int
    zeros: float
    """Share of elements that are 0."""
    below_1e_7: float
    """Share of elements with |g| < 1e-7, zeros included."""
    nonfinite: int


class Counter:
    """Counts tensors into one histogram."""

    def __init__(self) -> None:
        self.counts = torch.zeros(_BINS, dtype=torch.int64)
        self.elements = self.zeros = self.small = self.nonfinite = 0

    def add(self, values: Tensor) -> None:
        """Count a real or complex tensor of fp32 or fp64; complex ones by parts."""
        flat = torch.view_as_real(values) if values.is_complex() else values
        flat = flat.reshape(-1).abs()
        finite = flat[flat.isfinite()]
        self.elements += flat.numel()
        self.nonfinite += flat.numel() - finite.numel()
        self.zeros += int((finite == 0).sum())
        self.small += int((finite < SMALL).sum())
        exponents = torch.frexp(finite[finite != 0]).exponent - 1
        self.counts += torch.bincount((exponents - _LEAST).cpu(), minlength=_BINS)

    def histogram(self) -> Histogram:
        """What was counted so far."""
        used = self.counts.nonzero().flatten().tolist()
        first, last = (used[0], used[-1] + 1) if used else (-_LEAST, -_LEAST)
        return Histogram(
            first_exponent=first + _LEAST,
            counts=tuple(self.counts[first:last].tolist()),
            elements=self.elements,
            zeros=self.zeros / max(1, self.elements),
            below_1e_7=self.small / max(1, self.elements),
            nonfinite=self.nonfinite,
        )


class GradientHistogram(Callback):
    """Gives `StepMetrics.gradient_histogram` in the first step and then in every n-th.

    The other callbacks write it, in whatever order they are. Reads the gradients, and makes a
    copy of one at a time.
    """

    def __init__(self, every: int = 1) -> None:
        self.every = check_every(every)

    def on_gradients(self, metrics: StepMetrics) -> None:
        """Count."""
        if not due(metrics.step, self.every):
            return
        counter = Counter()
        for _, grad in metrics.gradients.unscaled():
            counter.add(grad)
        metrics.gradient_histogram = counter.histogram()
