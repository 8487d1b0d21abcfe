"""Tidy result rows: one value per row, with everything that names it."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """One measured value.

    Attributes:
        command: casts, step, compile, scale, update, placement, gemm or accuracy.
        family: model family.
        variant: precision and backend.
        phase: forward, backward, update, step, training or compile; of `gemm` the phase
            and the product, "wgrad mm 1024x256x256 bf16 TN +1.caf3": m x n x k, types, which
            operands are transposed, and how many operators follow.
        metric: a dotted suffix splits a metric (`cast_only_bytes.weight`) or
            describes its spread (`step_ms.q1`).
        value: may be non-finite; JSON then holds null.
        unit: kernels, bytes, bytes/s, gflops, ms, s, ratio, graphs, nodes, steps, loss.
        n: how many samples the value summarises.
    """

    command: str
    family: str
    variant: str
    phase: str
    metric: str
    value: float
    unit: str
    n: int = 1


def to_json(rows: Iterable[Row]) -> str:
    """Return the rows as a JSON array, one row per line."""
    lines = []
    for row in rows:
        record = asdict(row)
        if not math.isfinite(row.value):
            record["value"] = None
        lines.append(json.dumps(record, allow_nan=False))
    return "[\n" + ",\n".join(lines) + "\n]\n"


def write_json(rows: Iterable[Row], target: str) -> None:
    """Write the rows to the file `target`, or to standard output for `-`.

    Raises:
        OSError: the file cannot be written.
    """
    text = to_json(rows)
    if target == "-":
        sys.stdout.write(text)
        return
    Path(target).write_text(text, encoding="utf-8")


def read_json(path: str) -> list[Row]:
    """Return the rows of a file that `write_json` wrote.

    Raises:
        OSError: the file cannot be read.
        ValueError: it holds no rows.
    """
    records = json.loads(Path(path).read_text(encoding="utf-8"))
    try:
        rows = [Row(**record) for record in records]
    except TypeError as error:
        raise ValueError(f"no row of a benchmark: {error}") from None
    return [replace(r, value=math.nan) if r.value is None else r for r in rows]
