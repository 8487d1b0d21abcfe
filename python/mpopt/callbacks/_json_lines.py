"""One line of JSON per step."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from typing import IO, TYPE_CHECKING, Any

from ._base import Callback, check_every, due

if TYPE_CHECKING:
    from ._metrics import NonFinite, StepMetrics


class JSONLines(Callback):
    """Appends an object per step to the file `path`, and flushes it.

    Keys are the figures of `StepMetrics`, "gradient_histogram" where there is one, and
    "nonfinite" in a step whose gradients were not finite, which is written in any case. A
    number that is not finite is null. A run that resumes goes on in the same file: where a
    step is there twice, the later line counts.

    Raises:
        OSError: the file cannot be opened or written.
    """

    def __init__(self, path: str | os.PathLike[str], every: int = 1) -> None:
        self.path = os.fspath(path)
        self.every = check_every(every)
        self._file: IO[str] | None = None
        self._event: dict[str, Any] | None = None
        self._open()

    def on_nonfinite(self, event: NonFinite) -> None:
        """Keep it for the line of this step."""
        self._event = dataclasses.asdict(event)

    def on_step(self, metrics: StepMetrics) -> None:
        """Write the line."""
        event, self._event = self._event, None
        if event is None and not due(metrics.step, self.every):
            return
        entry = metrics.as_dict()
        if event is not None:
            entry["nonfinite"] = event
        self._write(entry)

    def on_end(self) -> None:
        """Write an event whose step was broken off, and close the file."""
        if self._event is not None:
            self._write({"step": self._event["step"], "nonfinite": self._event})
            self._event = None
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> IO[str]:
        if self._file is None:
            self._file = open(self.path, "a", encoding="utf-8")  # noqa: SIM115, closed in on_end
        return self._file

    def _write(self, entry: dict[str, Any]) -> None:
        file = self._open()
        file.write(json.dumps(_plain(entry), allow_nan=False) + "\n")
        file.flush()


def _plain(value: Any) -> Any:
    """`value` in terms of JSON."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = dataclasses.asdict(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
