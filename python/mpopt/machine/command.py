"""Measure this machine and write its cost model.

The backend takes it with options={"cost_model": FILE}. Measure on a machine that does
nothing else, with as many threads as training will have.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import TYPE_CHECKING, Any

from .. import native, progress
from ..commands import OK
from ..errors import MpoptError

if TYPE_CHECKING:
    from .probes import Sizes

_STEPS = 1000
_DEFAULT_SECONDS = 15.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `mpopt calibrate`."""
    add = parser.add_argument
    add("--out", metavar="FILE", help="where to write it (default: standard output)")
    add("--device", choices=("cpu", "cuda"), help="what to measure (default: a GPU if there is)")
    text = f"how long to measure (default {_DEFAULT_SECONDS:g})"
    add("--seconds", type=float, default=_DEFAULT_SECONDS, metavar="N", help=text)


def run(arguments: argparse.Namespace) -> int:
    """Measure, write, and return the exit code."""
    if not 0 < arguments.seconds < float("inf"):
        raise MpoptError(f"--seconds must be positive, not {arguments.seconds:g}")
    _check_writable(arguments.out)
    model = _measure(arguments.device or _default_device(), arguments.seconds)
    text = to_text(model)
    if arguments.out is None:
        sys.stdout.write(text)
    else:
        with open(arguments.out, "w", encoding="utf-8") as file:
            file.write(text)
    print("\n".join(summary(text)), file=sys.stderr)
    return OK


def _check_writable(path: str | None) -> None:
    """A path that cannot be written is an error before the measurement, not after it."""
    if path is None:
        return
    try:
        with open(path, "a", encoding="utf-8"):
            pass
    except OSError as error:
        raise MpoptError(f"{path}: cannot write: {error.strerror}") from error
    if os.path.getsize(path) == 0:
        os.remove(path)


def _default_device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _measure(device: str, seconds: float, sizes: Sizes | None = None) -> dict[str, Any]:
    from . import measure

    with progress.bar(f"measuring {device}", _STEPS) as advance:
        return measure.measure(
            device,
            seconds=seconds,
            sizes=sizes,
            say=lambda text, done: advance(text, round(_STEPS * done)),
        )


_LONGEST_ROW = 160
"""Letters; how long a row of rates is depends on the machine."""


def to_text(model: dict[str, Any]) -> str:
    """The model as JSON that people can read: a line for each figure or row of figures."""
    return _lines(model, "", depth=3) + "\n"


def _lines(value: Any, indent: str, depth: int) -> str:
    """`value` with one member per line down to `depth` levels, and where a row is too long."""
    row = json.dumps(value)
    flat = all(not isinstance(item, dict | list) for item in _members(value))
    is_row = depth == 0 or (flat and depth < 2)
    if not isinstance(value, dict | list) or (is_row and len(row) <= _LONGEST_ROW):
        return row
    inner = indent + "  "
    rows = [inner + _lines(item, inner, max(depth - 1, 0)) for item in _members(value)]
    if isinstance(value, dict):
        names = map(json.dumps, value)
        rows = [f"{inner}{name}: {row.lstrip()}" for name, row in zip(names, rows, strict=True)]
    start, end = "{}" if isinstance(value, dict) else "[]"
    return f"{start}\n" + ",\n".join(rows) + f"\n{indent}{end}"


def _members(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def summary(text: str) -> list[str]:
    """What a person wants to know of a model: its memory, and where half types pay."""
    model = native.load().CostModel.parse(text, "model")
    lines = [
        f"{model.name}: {model.bandwidth / 1e9:.3g} GB/s, {model.launch * 1e6:.3g} us a kernel"
    ]
    for half in ("bf16", "f16"):
        for shape in ((1, 1024, 1024, 1024), (1, 1, 1024, 1024), (64, 64, 64, 64)):
            lines.append("  " + model.half_pays(half, "f32", *shape)[2])
    return lines
