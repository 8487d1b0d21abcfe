"""The interface of callbacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._metrics import NonFinite, StepMetrics


class Callback:
    """Hears of each optimizer step, in the order in which `TrainStep` got its callbacks.

    An exception that is raised in one of them ends the step and reaches its caller.
    """

    def on_gradients(self, metrics: StepMetrics) -> None:
        """The gradients are complete and the update has not run. Here a callback may add a
        figure that the others write, as `GradientHistogram` does."""

    def on_nonfinite(self, event: NonFinite) -> None:
        """A gradient is inf or NaN; the weights are those before the step. Raise to keep them.

        Overriding it costs one read of the gradients where neither a scaler nor clipping
        reads them anyway.
        """

    def on_step(self, metrics: StepMetrics) -> None:
        """The step is over, applied or skipped; its gradients are still there."""

    def on_end(self) -> None:
        """No step follows (`TrainStep.close`): close files. May be called again."""

    def overrides(self, name: str) -> bool:
        """True if this class has its own method `name`."""
        return getattr(type(self), name) is not getattr(Callback, name)


def due(step: int, every: int) -> bool:
    """True for the steps of which a callback with `every=` hears: the first, then each n-th."""
    return (step - 1) % every == 0


def check_every(every: int) -> int:
    """`every` if it is a count of steps. Raises ValueError."""
    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        raise ValueError(f"every must be a number of steps, at least 1, not {every!r}")
    return every
