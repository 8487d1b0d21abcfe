"""`accuracy`: what each level does to gradients and to training, beside stock autocast.

Gradients of one step are compared with those in fp64. Then each level trains from the same few
starts on the same batches; its loss curves are to lie where stock's lie that differ by nothing but
the seed. A curve is the mean loss in each of ten parts of the run.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from . import instrument
from .families import Batch, Size, build
from .reference import reference
from .rows import Row
from .runner import Runner
from .step import Say
from .variants import VARIANTS

PARTS = 10
"""Points of a loss curve."""
BATCHES = 8
"""Batches that training goes through again and again."""
RATE = 1e-3
"""Learning rate: high enough that the loss of small models falls within a run."""
_EXACT = {"emulate_precision_casts": True}


@dataclass(frozen=True)
class Level:
    """A variant of the bench and the options of its backend."""

    variant: str
    options: Mapping[str, Any]


LEVELS: dict[str, Level] = {
    "stock": Level("compile-autocast-bf16", {}),
    "strict": Level("mpopt-autocast-bf16", {"numerics": "strict", "inductor": _EXACT}),
    "precise": Level("mpopt-autocast-bf16", {"numerics": "precise"}),
    "relaxed": Level("mpopt-autocast-bf16", {"numerics": "relaxed"}),
}

Curve = list[float]


def measure_accuracy(
    family: str, size: Size, *, steps: int, seeds: int, options: Mapping[str, Any], say: Say
) -> list[Row]:
    """Return the errors of one step, and what the loss curves of `seeds` runs say."""
    curves: dict[str, list[Curve]] = {}
    rows: list[Row] = []
    for name, level in LEVELS.items():
        chosen = {**level.options, **(options if name != "stock" else {})}
        say(f"{family}: {name}, gradients")
        instrument.reset()
        runner = Runner(family, size, VARIANTS[level.variant], chosen, rate=RATE)
        rows += _errors(family, size, name, runner)
        for seed in range(seeds if steps else 0):
            say(f"{family}: {name}, training {seed + 1} of {seeds}")
            runner.restart(seed)
            batches = _batches(family, size, seed)
            curves.setdefault(name, []).append(_train(runner, batches, steps, seed))
    for name, mine in curves.items():
        rows += curve_rows(family, name, mine, curves["stock"], steps)
    return rows


def _errors(family: str, size: Size, name: str, runner: Runner) -> list[Row]:
    exact = reference(family, size)
    loss = runner.forward()
    runner.backward(loss)
    errors = exact.grad_error(runner.gradients()), exact.loss_error(loss.item())
    return [
        Row("accuracy", family, name, "backward", "grad_error", errors[0], "ratio"),
        Row("accuracy", family, name, "forward", "loss_error", errors[1], "ratio"),
    ]


def _train(runner: Runner, batches: Sequence[Batch], steps: int, seed: int) -> Curve:
    torch.manual_seed(seed)
    losses = []
    for step in range(steps):
        runner.batch = batches[step % len(batches)]
        loss = runner.forward()
        runner.backward(loss)
        runner.update()
        losses.append(loss.detach())
    return curve_of([loss.item() for loss in losses])


def _batches(family: str, size: Size, seed: int) -> list[Batch]:
    """The same for every level."""
    return [build(family, size, 1000 * (seed + 1) + i)[1] for i in range(BATCHES)]


def curve_of(losses: Sequence[float]) -> Curve:
    """Return the mean loss of each tenth of a run; fewer points if there are fewer steps."""
    parts = min(PARTS, len(losses))
    ends = [len(losses) * i // parts for i in range(parts + 1)]
    return [statistics.fmean(losses[a:b]) for a, b in itertools.pairwise(ends)]


def curve_rows(
    family: str, name: str, mine: list[Curve], stock: list[Curve], steps: int
) -> list[Row]:
    """Return what a level's curves say beside stock's of the same seeds."""
    seeds = len(mine)

    def row(metric: str, value: float, unit: str) -> Row:
        return Row("accuracy", family, name, "training", metric, value, unit, seeds)

    rows = [row("steps", steps, "steps")]
    for seed, curve in enumerate(mine):
        rows += [row(f"loss.seed{seed}.part{i}", loss, "loss") for i, loss in enumerate(curve)]
    rows.append(row("final_loss", statistics.fmean(curve[-1] for curve in mine), "loss"))
    rows.append(row("overlap", overlap(mine, stock), "ratio"))
    rows.append(row("distance", distance(mine, stock), "ratio"))
    rows.append(row("seed_distance", seed_distance(stock), "ratio"))
    return rows


def overlap(mine: list[Curve], stock: list[Curve]) -> float:
    """Return the share of parts in which the ranges of both over all seeds have a point in
    common."""
    pairs = list(zip(zip(*mine, strict=True), zip(*stock, strict=True), strict=True))
    common = [max(min(a), min(b)) <= min(max(a), max(b)) for a, b in pairs]
    return float(sum(common) / len(common))


def distance(mine: list[Curve], stock: list[Curve]) -> float:
    """Return the mean of |loss − stock's| / stock's over parts and runs of the same seed."""
    pairs = [pair for a, b in zip(mine, stock, strict=True) for pair in zip(a, b, strict=True)]
    return statistics.fmean(abs(a - b) / abs(b) for a, b in pairs)


def seed_distance(curves: list[Curve]) -> float:
    """Return the same between runs of different seeds: what chance alone does. 0 for one run."""
    others = [curves[i:] + curves[:i] for i in range(1, len(curves))]
    return statistics.fmean(distance(curves, each) for each in others) if others else 0.0


def table(rows: Sequence[Row]) -> str:
    """Return the page's two tables: errors of one step, and curves."""
    values = {(row.family, row.variant, row.metric): row.value for row in rows}
    families = list(dict.fromkeys(row.family for row in rows))
    lines = ["Error of all gradients against fp64, and x stock's:", ""]
    lines += _head(["family", *LEVELS])
    lines += [f"| {f} | " + " | ".join(_error_cells(values, f)) + " |" for f in families]
    trained = [f for f in families if (f, "stock", "steps") in values]
    if trained:
        lines += ["", _curves_title(rows), ""]
        lines += _head(["family", "stock between seeds", *list(LEVELS)[1:]])
        lines += [f"| {f} | " + " | ".join(_curve_cells(values, f)) + " |" for f in trained]
    return "\n".join(lines)


def _curves_title(rows: Sequence[Row]) -> str:
    steps, seeds = next((row.value, row.n) for row in rows if row.metric == "steps")
    return (
        f"Loss curves of {steps:.0f} steps over {seeds} seeds: mean distance from stock's curve of "
        "the same seed / parts of ten in which the ranges over seeds overlap / final loss:"
    )


def _head(names: Sequence[str]) -> list[str]:
    return ["| " + " | ".join(names) + " |", "|---" * len(names) + "|"]


def _error_cells(values: Mapping[tuple[str, str, str], float], family: str) -> list[str]:
    stock = values[family, "stock", "grad_error"]
    errors = [values[family, level, "grad_error"] for level in LEVELS]
    return [f"{stock:.2e}", *(f"{error:.2e} (x {error / stock:.3f})" for error in errors[1:])]


def _curve_cells(values: Mapping[tuple[str, str, str], float], family: str) -> list[str]:
    def of(level: str, metric: str) -> float:
        return values[family, level, metric]

    first = f"{of('stock', 'seed_distance'):.2%} / {of('stock', 'final_loss'):.4g}"
    return [
        first,
        *(
            f"{of(level, 'distance'):.2%} / {PARTS * of(level, 'overlap'):.0f} / "
            f"{of(level, 'final_loss'):.4g}"
            for level in list(LEVELS)[1:]
        ),
    ]
