"""`step`: times of a training step, all variants interleaved in one process.

Each round runs one step of every variant, in an order that rotates, so that what
the machine does meanwhile hits all of them alike.  Peak memory is measured in one
fresh process per variant.
"""

from __future__ import annotations

import ctypes
import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from ._errors import BenchError
from .child import run_child
from .families import Size
from .rows import Row
from .runner import Runner, StepTimes, every_variant_compiled
from .variants import BASELINE, Variant

_PARTS = ("forward", "backward", "update", "step")
_LEAST_ROUNDS = 3
Say = Callable[[str], None]


def tune_malloc() -> None:
    """Make glibc keep freed memory, so that no step maps and faults its tensors anew.

    Raises:
        BenchError: the C library is not glibc.
    """
    m_trim_threshold, m_top_pad, m_mmap_max, m_arena_max = -1, -2, -4, -8
    settings = (
        (m_mmap_max, 0),
        (m_trim_threshold, 2**31 - 1),
        (m_top_pad, 2**26),
        (m_arena_max, 1),
    )
    try:
        libc = ctypes.CDLL("libc.so.6")
        done = all(libc.mallopt(option, value) == 1 for option, value in settings)
    except (OSError, AttributeError):
        done = False
    if not done:
        raise BenchError("the allocator cannot be tuned here; use --malloc stock")


def interleave(
    runners: Mapping[str, Runner], rounds: int, seconds: float
) -> dict[str, list[StepTimes]]:
    """Return the times of every runner's steps: one per round, as many for each runner.

    Stops after `rounds`, or after `seconds` once three rounds are in.  One more
    round goes first and is not counted.
    """
    names = list(runners)
    times: dict[str, list[StepTimes]] = {name: [] for name in names}
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        for index in range(rounds + 1):
            shift = index % len(names)
            for name in names[shift:] + names[:shift]:
                taken = runners[name].step()
                if index > 0:
                    times[name].append(taken)
            if index >= _LEAST_ROUNDS and time.perf_counter() - start > seconds:
                break
    finally:
        gc.enable()
    return times


def spread(samples: Sequence[float]) -> dict[str, float]:
    """Return median ("") and the suffixed minimum and quartiles of the samples."""
    data = torch.tensor(samples, dtype=torch.float64)
    return {
        "": statistics.median(samples),
        ".min": min(samples),
        ".q1": float(data.quantile(0.25)),
        ".q3": float(data.quantile(0.75)),
    }


def speedups(
    times: Mapping[str, Sequence[StepTimes]], baseline: str
) -> dict[str, tuple[float, float]]:
    """Return per variant (ratio of median step times, median of the rounds' ratios).

    Both are baseline time over variant time: above 1 the variant is faster.
    """
    base = [t.step for t in times[baseline]]
    result = {}
    for name, samples in times.items():
        mine = [t.step for t in samples]
        paired = statistics.median(b / m for b, m in zip(base, mine, strict=True))
        result[name] = (statistics.median(base) / statistics.median(mine), paired)
    return result


def _peak_rss(
    family: str, size: Size, variants: Sequence[Variant], options: Mapping[str, Any], say: Say
) -> list[Row]:
    rows = []
    for variant in variants:
        say(f"{family}: memory of {variant.name}")
        peak = run_child("memory", family, size, variant.name, options)["peak_rss_bytes"]
        rows.append(Row("step", family, variant.name, "step", "peak_rss_bytes", peak, "bytes"))
    return rows


def measure_step(
    family: str,
    size: Size,
    variants: Sequence[Variant],
    options: Mapping[str, Any],
    *,
    rounds: int,
    seconds: float,
    memory: bool,
    say: Say,
) -> list[Row]:
    """Time the variants' steps and return median and spread of each part.

    Args:
        family: which model.
        size: at which size.
        variants: in any order; the first rounds start with the first.
        options: of the mpopt backend.
        rounds: timed steps of each variant.
        seconds: stop earlier after this long.
        memory: measure peak memory too, in fresh processes.
        say: told what is going on.
    """
    runners = {}
    with every_variant_compiled():
        for variant in variants:
            say(f"{family}: first step of {variant.name}")
            runners[variant.name] = Runner(family, size, variant, options)
            runners[variant.name].step()
        say(f"{family}: timing")
        times = interleave(runners, rounds, seconds)
    rows = []
    for name, samples in times.items():
        for part in _PARTS:
            values = spread([getattr(t, part) for t in samples])
            rows += [
                Row("step", family, name, part, f"{part}_ms{suffix}", value, "ms", len(samples))
                for suffix, value in values.items()
            ]
    if BASELINE in times:
        for name, (medians, paired) in speedups(times, BASELINE).items():
            n = len(times[name])
            rows += [
                Row("step", family, name, "step", "step_speedup", medians, "ratio", n),
                Row("step", family, name, "step", "step_speedup.paired", paired, "ratio", n),
            ]
    runners.clear()
    gc.collect()
    if memory:
        rows += _peak_rss(family, size, variants, options, say)
    return rows
