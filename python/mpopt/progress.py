"""Progress of a command on a terminal; nothing where the error stream is none."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator
from typing import Any, Protocol


class Advance(Protocol):
    """Shows what goes on."""

    def __call__(self, text: str, done: int | None = None) -> None:
        """`text` is next; `done` steps are done, or one more than before."""


def _silent(text: str, done: int | None = None) -> None:
    pass


@contextlib.contextmanager
def bar(title: str, steps: int) -> Iterator[Advance]:
    """Yield a function that moves a bar of `steps` steps on the error stream.

    Without the package rich, the title is all that is shown.
    """
    if not sys.stderr.isatty():
        yield _silent
        return
    try:
        rich: Any = importlib.import_module("rich.progress")
        console = importlib.import_module("rich.console").Console(stderr=True)
    except ImportError:
        print(f"{title} (pip install rich shows a progress bar)", file=sys.stderr)
        yield _silent
        return
    columns = ("{task.description}", rich.BarColumn(), rich.TimeElapsedColumn())
    with rich.Progress(*columns, "{task.fields[now]}", console=console, transient=True) as progress:
        task = progress.add_task(title, total=steps, now="")

        def advance(text: str, done: int | None = None) -> None:
            move = {"advance": 1} if done is None else {"completed": done}
            progress.update(task, now=text, **move)

        yield advance
