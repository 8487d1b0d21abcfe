"""What people read: tables of rows, the list of left-over casts, progress on a terminal."""

from __future__ import annotations

import contextlib
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TextIO

from ._errors import require
from .instrument import Kernel
from .rows import Row

_KIB = 1024
_FILE_WIDTH = 160
_DETAIL = (".min", ".q1", ".q3")


def _rich(module: str) -> Any:
    require("rich", "the benchmark's output")
    return require(f"rich.{module}", "the benchmark's output")


def _bytes(value: float) -> str:
    for unit in ("B", "KiB"):
        if value < _KIB:
            return f"{value:.4g} {unit}"
        value /= _KIB
    return f"{value:.1f} MiB"


def format_value(value: float, unit: str) -> str:
    """Return a value as people read it: bytes in binary units, small ratios in scientific form."""
    if not math.isfinite(value):
        return "not finite"
    if unit == "bytes":
        return _bytes(value)
    if unit == "bytes/s":
        return f"{value / 1e9:.1f} GB/s"
    if unit == "gflops":
        return f"{value:.1f} GFLOP/s"
    if unit in ("ms", "s"):
        return f"{value:.2f} {unit}"
    if unit == "ratio":
        return f"{value:.3f}" if value >= 0.01 else f"{value:.2e}"
    return f"{value:g}"


def _cell(rows: Sequence[Row], variant: str, phase: str, metric: str) -> str:
    """A median with its quartiles, where they are known."""
    found = {r.metric: r for r in rows if r.variant == variant and r.phase == phase}
    row = found.get(metric)
    if row is None:
        return ""
    text = format_value(row.value, row.unit)
    low, high = found.get(metric + ".q1"), found.get(metric + ".q3")
    if low is not None and high is not None:
        text += f" [{low.value:.2f}–{high.value:.2f}]"
    return text


class Output:
    """Where tables go: standard output, or standard error if JSON takes the former."""

    def __init__(self, stream: TextIO) -> None:
        width = None if stream.isatty() else _FILE_WIDTH
        console = _rich("console").Console
        self._console = console(file=stream, width=width, highlight=False, markup=False)

    def rows(self, rows: Sequence[Row], *, verbose: bool = False) -> None:
        """Print one table of a family's rows: metrics down, variants across."""
        if not rows:
            return
        variants = list(dict.fromkeys(r.variant for r in rows))
        table = _rich("table").Table(title=f"{rows[0].command}: {rows[0].family}")
        table.add_column("phase", no_wrap=True)
        table.add_column("metric", no_wrap=True)
        for variant in variants:
            table.add_column(variant, justify="right", overflow="fold")
        for phase, metric in dict.fromkeys((r.phase, r.metric) for r in rows):
            if verbose or not metric.endswith(_DETAIL):
                cells = [_cell(rows, variant, phase, metric) for variant in variants]
                table.add_row(phase, metric, *cells)
        self._console.print(table)

    def lines(self, texts: Sequence[str]) -> None:
        """Print texts, one a line."""
        for text in texts:
            self._console.print(text)

    def kernels(self, title: str, kernels: Sequence[Kernel], *, verbose: bool = False) -> None:
        """Print the kernels that only convert activations; with `verbose` all that only convert."""
        shown = [k for k in kernels if k.role == "activation" or (verbose and k.role is not None)]
        if not shown:
            self._console.print(f"{title}: no kernel that only converts an activation")
            return
        table = _rich("table").Table(title=f"{title}: kernels that only convert")
        for name in ("phase", "role", "shape", "from", "to", "bytes", "moves", "origin"):
            table.add_column(name, overflow="fold")
        for k in shown:
            ops = ", ".join(origin.removesuffix(".default") for origin in k.origins)
            table.add_row(
                k.phase,
                str(k.role),
                "×".join(map(str, k.shape)),
                "/".join(k.source),
                "/".join(k.target),
                _bytes(k.bytes),
                "yes" if k.moves else "",
                f"{k.module} ({ops})" if k.module else ops,
            )
        self._console.print(table)


@contextlib.contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows what is going on, on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    console = _rich("console").Console(stderr=True)
    with console.status("starting") as status:
        yield status.update
