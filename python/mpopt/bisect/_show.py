"""Lines of progress on the error stream, with a spinner on a terminal."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def lines() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows one line. Without the package rich there is no spinner."""

    def plain(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    if not sys.stderr.isatty():
        yield plain
        return
    try:
        console = importlib.import_module("rich.console").Console(stderr=True)
    except ImportError:
        yield plain
        return
    with console.status("running"):
        yield lambda text: console.print(text, markup=False, highlight=False)
