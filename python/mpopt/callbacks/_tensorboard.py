"""Figures for TensorBoard."""

from __future__ import annotations

import dataclasses
import importlib
import os
from typing import TYPE_CHECKING, Any

from ..errors import MpoptError
from ._base import Callback, check_every, due

if TYPE_CHECKING:
    from ._histogram import Histogram
    from ._metrics import NonFinite, StepMetrics


class TensorBoard(Callback):
    """Writes scalars, gradient histograms and events (as text) under the step's number.

    `writer` is a folder or a `torch.utils.tensorboard.SummaryWriter`, which stays open at the
    end. Memory is in the scalars "memory/...", the shares of a histogram in
    "gradients/...".

    Raises:
        MpoptError: a folder is given and the package tensorboard is not installed.
    """

    def __init__(self, writer: Any, every: int = 1) -> None:
        self.every = check_every(every)
        self._is_own = isinstance(writer, str | os.PathLike)
        self.writer = _summary_writer(os.fspath(writer)) if self._is_own else writer
        if not hasattr(self.writer, "add_scalar"):
            raise TypeError(f"writer must be a folder or a SummaryWriter, not {writer!r}")

    def on_nonfinite(self, event: NonFinite) -> None:
        """Write the event as text."""
        lines = [f"{name}: {value}" for name, value in dataclasses.asdict(event).items()]
        self.writer.add_text("nonfinite", "  \n".join(lines), event.step)

    def on_step(self, metrics: StepMetrics) -> None:
        """Write what is a number."""
        if metrics.gradient_histogram is not None:
            self._add_histogram(metrics.gradient_histogram, metrics.step)
        if not due(metrics.step, self.every):
            return
        figures = metrics.as_dict()
        for name, value in dataclasses.asdict(figures["memory"]).items():
            figures[f"memory/{name}"] = value
        for name, value in figures.items():
            if isinstance(value, int | float) and name != "step":
                self.writer.add_scalar(name, value, metrics.step)

    def on_end(self) -> None:
        """Flush, and close a writer of our own."""
        self.writer.flush()
        if self._is_own:
            self.writer.close()

    def _add_histogram(self, histogram: Histogram, step: int) -> None:
        self.writer.add_scalar("gradients/zeros", histogram.zeros, step)
        self.writer.add_scalar("gradients/below_1e-7", histogram.below_1e_7, step)
        first, counts = histogram.first_exponent, histogram.counts
        if not counts:
            return
        # Sums of values are not counted; TensorBoard shows the bins only.
        self.writer.add_histogram_raw(
            "gradients/log2",
            min=first,
            max=first + len(counts),
            num=sum(counts),
            sum=0.0,
            sum_squares=0.0,
            bucket_limits=[first + i + 1 for i in range(len(counts))],
            bucket_counts=list(counts),
            global_step=step,
        )


def _summary_writer(folder: str) -> Any:
    try:
        module = importlib.import_module("torch.utils.tensorboard")
    except ImportError as error:
        raise MpoptError(
            "callbacks.TensorBoard needs the package tensorboard, which is not installed; "
            f"run: pip install tensorboard ({error})"
        ) from error
    return module.SummaryWriter(folder)
