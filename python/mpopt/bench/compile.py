"""`compile`: time of a cold compilation, one fresh process and cache per sample."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from ._errors import UsageError
from .child import run_child
from .families import Size
from .rows import Row
from .step import Say, spread
from .variants import BASELINE, Variant


def measure_compile(
    family: str,
    size: Size,
    variants: Sequence[Variant],
    options: Mapping[str, Any],
    *,
    repeats: int,
    say: Say,
) -> list[Row]:
    """Return `compile_s`: the first forward and backward minus the second, caches empty.

    What a process pays once, whatever it compiles, is left out. Variants take turns
    within each of the `repeats`.

    Raises:
        UsageError: a variant compiles nothing.
        BenchError: a process failed.
    """
    for variant in variants:
        if variant.backend is None:
            raise UsageError(
                f"'{variant.name}' compiles nothing; give compile-… or mpopt-… variants"
            )
    samples: dict[str, list[float]] = {variant.name: [] for variant in variants}
    for index in range(repeats):
        for name in samples:
            say(f"{family}: compiling {name} ({index + 1} of {repeats})")
            result = run_child("compile", family, size, name, options, fresh_cache=True)
            samples[name].append(result["first_s"] - result["second_s"])
    rows = []
    for name, values in samples.items():
        rows += [
            Row("compile", family, name, "compile", f"compile_s{suffix}", value, "s", repeats)
            for suffix, value in spread(values).items()
        ]
    if BASELINE in samples:
        base = statistics.median(samples[BASELINE])
        rows += [
            Row(
                "compile",
                family,
                name,
                "compile",
                "compile_ratio",
                statistics.median(values) / base,
                "ratio",
                repeats,
            )
            for name, values in samples.items()
        ]
    return rows
