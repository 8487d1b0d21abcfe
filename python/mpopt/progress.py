"""Progress of a command on a terminal; nothing where the error stream is none."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterator

Advance = Callable[[str], None]
"""Moves the bar by one step and shows what comes next."""


@contextlib.contextmanager
def bar(title: str, steps: int) -> Iterator[Advance]:
    """Yield a function that moves a bar of `steps` steps on the error stream.

    Without the package rich, steps are printed as lines of text.
    """
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    try:
        rich = importlib.import_module("rich.progress")
        console = importlib.import_module("rich.console").Console(stderr=True)
    except ImportError:
        yield lambda text: print(f"{title}: {text}", file=sys.stderr)
        return
    columns = [
        "{task.description}",
        rich.BarColumn(),
        rich.TimeElapsedColumn(),
        "{task.fields[now]}",
    ]
    with rich.Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=steps, now="")
        yield lambda text: progress.update(task, advance=1, now=text)
