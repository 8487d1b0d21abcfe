"""`gemm`: the matrix products of a step with what follows them, ours against PyTorch's.

Each case (see `gemm_cases`) is compiled by stock Inductor and by mpopt with its own kernels, and
called in turn in one process. What Dynamo adds per call is left out: in a step it is paid once
per graph. Inputs rotate through several copies, so that weights are not always in the cache.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, fx

from .. import kernels, log
from ..errors import MpoptError
from ._errors import BenchError, UsageError
from .families import Size
from .gemm_cases import Case, gemm_cases, in_double
from .rows import Row
from .step import Say, spread

LEAST_RATIO = 0.85
"""A shape below this share of PyTorch's speed is listed."""
_WORST_ERROR = 2.0
_CACHED_BYTES = 64 << 20
_MOST_COPIES = 4
_SAMPLE_SECONDS = {"full": 4e-3, "quick": 1e-3}
Compiled = Callable[..., Sequence[Tensor]]


@dataclass
class Measured:
    """One case at one number of threads.

    Attributes:
        seconds: of one call, a sample per round, by who computes.
        errors: distance to fp64 relative to it, of the worst result.
        regions: how many kernels of ours are in it.
    """

    case: Case
    threads: int
    seconds: dict[str, list[float]]
    errors: dict[str, float]
    regions: int

    @property
    def medians(self) -> dict[str, float]:
        """Median seconds by who computes."""
        return {name: spread(samples)[""] for name, samples in self.seconds.items()}

    @property
    def ratio(self) -> float:
        """How many times as fast as PyTorch we are: the median over rounds, in each of which
        both met the same machine."""
        pairs = zip(self.seconds["torch"], self.seconds["mpopt"], strict=True)
        return statistics.median(theirs / ours for theirs, ours in pairs)

    @property
    def is_wrong(self) -> bool:
        """True if our results are much farther from fp64 than PyTorch's. Inductor leaves
        roundings out between operators that it fuses; eager code, like ours, does not."""
        theirs = max(self.errors["torch"], self.errors["eager"])
        return not self.errors["mpopt"] <= _WORST_ERROR * theirs + 1e-6


def parse_threads(text: str | None) -> list[int]:
    """The numbers of a comma-separated list; without one, one and two as far as there are.

    Raises:
        UsageError: it holds something else.
    """
    if text is None:
        return list(range(1, min(2, os.cpu_count() or 1) + 1))
    try:
        counts = [int(part) for part in text.split(",")]
    except ValueError:
        counts = [0]
    if min(counts) < 1:
        raise UsageError(f"--threads takes numbers such as 1,2, not '{text}'")
    return counts


def measure_gemm(
    family: str,
    size: Size,
    options: Mapping[str, Any],
    *,
    threads: Sequence[int],
    rounds: int,
    most: int,
    say: Say,
) -> list[Measured]:
    """Measure the `most` heaviest products of a family.

    Raises:
        BenchError: the family has no product.
    """
    say(f"{family}: tracing")
    cases = gemm_cases(family, size)[:most]
    if not cases:
        raise BenchError(f"{family}: no matrix product in its step")
    measured = []
    for count in threads:
        for number, case in enumerate(cases):
            say(f"{family}, {count} threads, {number + 1} of {len(cases)}: {case.label}")
            with _threads(count):
                measured.append(_measure(case, count, size, options, rounds))
    return measured


@contextlib.contextmanager
def _threads(count: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _measure(
    case: Case, threads: int, size: Size, options: Mapping[str, Any], rounds: int
) -> Measured:
    sets = _inputs(case)
    chosen = {"regions": "cpu", **options}
    with torch.no_grad():
        stock, _ = _compiled(case, "inductor", None, sets[0])
        ours, regions = _compiled(case, importlib.import_module("mpopt").mpopt, chosen, sets[0])
        calls = {"torch": stock, "mpopt": ours}
        expected = in_double(case.module)(*map(_to_double, sets[0]))
        everybody: dict[str, Compiled] = {**calls, "eager": case.module}
        errors = {name: _error(run(*sets[0]), expected) for name, run in everybody.items()}
        sample = _SAMPLE_SECONDS.get(size, 1e-3)
        seconds = _interleave(calls, sets, rounds, sample)
    return Measured(case, threads, seconds, errors, regions)


def _compiled(
    case: Case, backend: Any, options: Any, inputs: Sequence[Tensor]
) -> tuple[Compiled, int]:
    """What a backend makes of a case, called without Dynamo's guards; how many kernels of
    ours are in it."""
    kept: list[Compiled] = []

    def keep(module: fx.GraphModule, examples: Any) -> Any:
        if backend == "inductor":
            from .._torch import compile_fx

            made = compile_fx(module, examples, {})
        else:
            made = backend(module, examples, options=options)
        kept.append(made)
        return made

    torch._dynamo.reset()
    before = log.counters["regions"]
    torch.compile(_in_order(case.module), backend=keep, dynamic=False, fullgraph=True)(*inputs)
    return kept[0], log.counters["regions"] - before


def _in_order(module: fx.GraphModule) -> Callable[..., Any]:
    """The module as a function that reads its inputs in order, as Dynamo's graph then does."""

    def run(*inputs: Tensor) -> Any:
        return module(*[each.view_as(each) for each in inputs])

    return run


def _inputs(case: Case) -> list[list[Tensor]]:
    """Several sets of equal form, with values of about 1."""
    size = sum(v.numel() * v.element_size() for v in case.inputs)
    count = max(1, min(_MOST_COPIES, _CACHED_BYTES // max(size, 1)))
    generator = torch.Generator().manual_seed(0)
    return [[_random(value, generator) for value in case.inputs] for _ in range(count)]


def _random(like: Tensor, generator: torch.Generator) -> Tensor:
    result = torch.empty_strided(like.shape, like.stride(), dtype=like.dtype)
    if not like.dtype.is_floating_point:
        return result.copy_(torch.randint(0, 2, like.shape, generator=generator))
    return result.copy_(torch.randn(like.shape, generator=generator))


def _to_double(value: Tensor) -> Tensor:
    return value.double() if value.dtype.is_floating_point else value


def _error(results: Sequence[Tensor], expected: Sequence[Tensor]) -> float:
    """The largest distance of a result to the expected one, relative to its size."""
    errors = []
    for result, right in zip(results, expected, strict=True):
        distance = (result.double() - right).norm() / right.double().norm().clamp_min(1e-30)
        errors.append(float(distance))
    return max(errors)


def _interleave(
    calls: Mapping[str, Compiled], sets: Sequence[Sequence[Tensor]], rounds: int, sample: float
) -> dict[str, list[float]]:
    """Seconds per call of each, one sample a round, in an order that rotates."""
    names = list(calls)
    once = min(_time(call, sets, 3) for call in calls.values())
    repeats = max(2, math.ceil(sample / once))
    times: dict[str, list[float]] = {name: [] for name in names}
    gc.collect()
    for index in range(rounds):
        shift = index % len(names)
        for name in names[shift:] + names[:shift]:
            times[name].append(_time(calls[name], sets, repeats))
    return times


def _time(call: Compiled, sets: Sequence[Sequence[Tensor]], repeats: int) -> float:
    start = time.perf_counter()
    for index in range(repeats):
        call(*sets[index % len(sets)])
    return (time.perf_counter() - start) / repeats


# --- rows -------------------------------------------------------------------------


def gemm_rows(family: str, measured: Sequence[Measured]) -> list[Row]:
    """One row per figure."""
    rows: list[Row] = []
    for one in measured:
        phase = f"{one.case.phase} {one.case.label}"
        for name, metric, value, unit in _figures(one):
            samples = len(one.seconds["torch"]) if unit == "ms" else 1
            variant = f"{name}-t{one.threads}"
            rows.append(Row("gemm", family, variant, phase, metric, value, unit, samples))
    return rows


def _figures(one: Measured) -> Iterator[tuple[str, str, float, str]]:
    """Who computes, metric, value and unit."""
    for name, samples in one.seconds.items():
        for suffix, value in spread(samples).items():
            yield name, f"gemm_ms{suffix}", value * 1e3, "ms"
        yield name, "gemm_gflops", one.case.operations / one.medians[name] / 1e9, "gflops"
    for name, error in one.errors.items():
        yield name, "gemm_error", error, "ratio"
    yield "mpopt", "gemm_ratio", one.ratio, "ratio"
    yield "mpopt", "gemm_regions", one.regions, "kernels"
    yield "mpopt", "gemm_count", one.case.count, "nodes"


def geometric_mean(values: Sequence[float]) -> float:
    """Of ratios; 1 of none."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else 1.0


def summary_rows(measured: Sequence[Measured]) -> list[Row]:
    """Over all families: geometric means, the slowest shape, and the peak."""
    rows = []
    for threads in sorted({one.threads for one in measured}):
        some = [one for one in measured if one.threads == threads]
        ours = [one for one in some if one.regions]
        figures = {
            "gemm_ratio.mean": geometric_mean([one.ratio for one in some]),
            "gemm_ratio.mean_of_ours": geometric_mean([one.ratio for one in ours]),
            "gemm_ratio.least_of_ours": min([one.ratio for one in ours], default=1.0),
            "gemm_share_ours": len(ours) / len(some),
        }
        variant = f"mpopt-t{threads}"
        rows += [Row("gemm", "all", variant, "step", k, v, "ratio") for k, v in figures.items()]
        for dtype, (rate, source) in peaks(some, threads).items():
            name = f"gemm_peak.{dtype}.{source}"
            rows.append(Row("gemm", "all", variant, "step", name, rate, "gflops"))
    return rows


def peaks(measured: Sequence[Measured], threads: int) -> dict[str, tuple[float, str]]:
    """The most operations per second by operand type, and whether a loop of the code
    generator measured it or it is the best that was seen."""
    best: dict[str, float] = {}
    for one in measured:
        dtype = one.case.label.split()[2]
        rate = one.case.operations / min(min(s) for s in one.seconds.values()) / 1e9
        best[dtype] = max(rate, best.get(dtype, 0.0))
    found = {}
    for dtype, rate in best.items():
        loop = _loop_peak(dtype) * threads
        found[dtype] = (loop, "loop") if loop else (rate, "seen")
    return found


def _loop_peak(dtype: str) -> float:
    """GFLOP/s of one core in a loop without memory; 0 where the code generator has none."""
    try:
        measure = getattr(kernels.codegen(), "peak_gflops", None)
    except MpoptError:
        return 0.0
    return float(measure(dtype)) if measure is not None else 0.0


def wrong_shapes(measured: Sequence[Measured]) -> list[str]:
    """Lines for people: which results are wrong."""
    return [
        f"wrong: {one.case.label}, {one.threads} threads: our error is {one.errors['mpopt']:.2e}, "
        f"PyTorch's {one.errors['torch']:.2e}"
        for one in measured
        if one.is_wrong
    ]


def slow_shapes(measured: Sequence[Measured]) -> list[str]:
    """Lines for people: which kernels of ours are too slow."""
    slow = [one for one in measured if one.regions and one.ratio < LEAST_RATIO]
    return [
        f"{one.ratio:.2f} x of PyTorch's speed: {one.case.label}, {one.threads} threads"
        for one in sorted(slow, key=lambda one: one.ratio)
    ]
