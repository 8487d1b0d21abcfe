"""A progress bar."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ..errors import MpoptError
from ._base import Callback

if TYPE_CHECKING:
    from ._metrics import NonFinite, StepMetrics


class Progress(Callback):
    """A bar on the terminal with loss, loss scale, throughput and skipped steps.

    `total` is the number of steps of the whole run, None if it is not known. `console` is a
    `rich.console.Console`, None for the terminal. Events are printed above the bar. Reads the
    loss in every step.

    Raises:
        MpoptError: the package rich is not installed.
    """

    def __init__(self, total: int | None = None, *, console: Any = None) -> None:
        self._total, self._console = total, console
        self._rich = _rich_progress()
        self._bar: Any = None
        self._task: Any = None
        self._skipped = 0

    def on_nonfinite(self, event: NonFinite) -> None:
        """Print one line."""
        self._skipped += event.skipped
        origin = ""
        if event.bad_op is not None:
            bad = event.bad_op
            origin = f"; first {bad.op} in {bad.module or 'the model'} ({bad.phase}) {bad.line}"
        outcome = "skipped" if event.skipped else "not finite"
        text = f"step {event.step} {outcome}: {event.kind} in {event.parameter}{origin}"
        self._start().console.print(text, markup=False, highlight=False)

    def on_step(self, metrics: StepMetrics) -> None:
        """Move the bar."""
        self._start().update(
            self._task,
            completed=metrics.step,
            loss=f"{metrics.loss:.4g}",
            scale=f"{metrics.loss_scale:g}",
            speed=f"{metrics.throughput:.4g}/s",
            skipped=str(self._skipped),
        )

    def on_end(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _start(self) -> Any:
        """The bar, which appears with the first step."""
        if self._bar is None:
            names = ("loss", "scale", "speed", "skipped")
            texts = [f"{name} {{task.fields[{name}]}}" for name in names]
            columns = ["{task.completed:.0f}", self._rich.BarColumn(), *texts]
            self._bar = self._rich.Progress(*columns, console=self._console)
            fields: dict[str, Any] = dict.fromkeys(names, "-")
            self._task = self._bar.add_task("", total=self._total, **fields)
            self._bar.start()
        return self._bar


def _rich_progress() -> Any:
    try:
        return importlib.import_module("rich.progress")
    except ImportError as error:
        raise MpoptError(
            "callbacks.Progress needs the package rich, which is not installed; "
            "run: pip install rich"
        ) from error
