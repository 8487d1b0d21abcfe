"""The main job on a real model: `python -m mpopt.demo`.

Trains a GPT-2 of the transformers package under bf16 autocast, through Inductor and
through mpopt, step by step in turn, from the same weights on the same batch. Prints
the losses, the kernels that only convert, the bytes and the step times, and writes
an HTML report of every rewrite. Exit code 1 if a loss is out of its bound.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from .bench import instrument
from .bench._errors import require
from .bench.casts import kernel_metrics, saved_bytes
from .bench.families import Size
from .bench.instrument import Kernel, Phase
from .bench.runner import Runner, StepTimes
from .bench.variants import VARIANTS

STOCK, OURS, EXACT = "compile-autocast-bf16", "mpopt-autocast-bf16", "eager-fp32"
_MIB = 2**20


@dataclass
class Run:
    """One variant's training, step by step."""

    runner: Runner
    kernels: list[Kernel] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    times: list[StepTimes] = field(default_factory=list)

    def compile_and_step(self) -> None:
        """The first step, in which everything is compiled: it is not timed."""
        with instrument.record_kernels() as kernels:
            self._step()
        self.kernels = list(kernels)

    def timed_step(self) -> None:
        """One more step."""
        self.times.append(self._step())

    def _step(self) -> StepTimes:
        times = self.runner.step()
        self.losses.append(self.runner.last_loss)
        return times

    def median(self, part: str) -> float:
        """Milliseconds of a part of the step."""
        return float(statistics.median(getattr(times, part) for times in self.times))

    def metric(self, phase: Phase, name: str) -> float:
        """A count or a number of bytes of the kernels that Inductor scheduled."""
        return kernel_metrics(self.kernels, phase)[name][0]


def train(steps: int, size: Size, dump: Path) -> dict[str, Run]:
    """Run `steps` optimizer steps of each variant, in turn."""
    runs = {}
    instrument.reset()
    for name in (EXACT, STOCK, OURS):
        options = {"dump": str(dump)} if name == OURS else None
        runs[name] = Run(Runner("gpt2", size, VARIANTS[name], options))
        runs[name].compile_and_step()
    for _ in range(steps - 1):
        for run in runs.values():
            run.timed_step()
    return runs


def bounds(runs: dict[str, Run]) -> list[float]:
    """How far mpopt's loss may be from stock's in each step.

    Both compute in half precision. A difference no larger than stock's own distance
    from fp32, as seen up to that step, is within the noise of the precision.
    """
    result, worst = [], 0.0
    for stock, exact in zip(runs[STOCK].losses, runs[EXACT].losses, strict=True):
        worst = max(worst, abs(stock - exact))
        result.append(worst)
    return result


def loss_table(runs: dict[str, Run], table: Any) -> bool:
    """Fill the table of losses; True if every step is within its bound."""
    for title in ("step", "fp32", "stock", "mpopt", "difference", "bound"):
        table.add_column(title, justify="right")
    within = True
    for step, bound in enumerate(bounds(runs)):
        exact, stock, ours = (runs[name].losses[step] for name in (EXACT, STOCK, OURS))
        difference = abs(ours - stock)
        within = within and difference <= bound
        texts = (f"{x:.6f}" for x in (exact, stock, ours))
        table.add_row(str(step + 1), *texts, f"{difference:.1e}", f"{bound:.1e}")
    return within


def cost_table(runs: dict[str, Run], table: Any) -> None:
    """Fill the table of kernels, bytes and times."""
    for title in ("per step", "stock", "mpopt"):
        table.add_column(title, justify="left" if title == "per step" else "right")
    stock, ours = runs[STOCK], runs[OURS]
    for phase in get_args(Phase):
        for role in ("activation", "weight", "gradient"):
            name = f"cast_only_kernels.{role}"
            counts = [f"{run.metric(phase, name):.0f}" for run in (stock, ours)]
            table.add_row(f"{phase}: kernels that only convert, {role}s", *counts)
        for name in ("cast_only_bytes", "pointwise_bytes"):
            sizes = [f"{run.metric(phase, name) / _MIB:.1f} MiB" for run in (stock, ours)]
            table.add_row(f"{phase}: {name.replace('_', ' ')}", *sizes)
    saved = [f"{saved_bytes(run.runner) / _MIB:.1f} MiB" for run in (stock, ours)]
    table.add_row("saved for backward", *saved)
    table.add_row("median step", *(f"{run.median('step'):.1f} ms" for run in (stock, ours)))
    shares = [run.median("update") / run.median("step") for run in (stock, ours)]
    updates = [run.median("update") for run in (stock, ours)]
    texts = [f"{ms:.1f} ms, {share:.0%}" for ms, share in zip(updates, shares, strict=True)]
    table.add_row("of it the optimizer's update", *texts)
    pairs = zip(stock.times, ours.times, strict=True)
    ratio = statistics.median(s.step / o.step for s, o in pairs)
    table.add_row("stock time / mpopt time, median of pairs", "", f"{ratio:.3f}")


def write_report(dump: Path, report: Path) -> str:
    """Write the HTML report of the joint graph; what to tell the user about it."""
    tool = shutil.which("mpopt") or shutil.which("mpopt", path="build/dev/bin")
    bundles = sorted(dump.glob("*_joint"))
    if tool is None or not bundles:
        return f"no report: {'no bundle in ' + str(dump) if tool else 'mpopt is not on PATH'}"
    command = [tool, "explain", str(bundles[0]), "--format=html", "-o", str(report)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return f"no report: {done.stderr.strip()}"
    return f"report of every conversion: {report}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m mpopt.demo", description=__doc__)
    parser.add_argument("--steps", type=int, default=8, help="optimizer steps (8)")
    parser.add_argument("--size", choices=get_args(Size), default="quick")
    parser.add_argument("--out", type=Path, default=Path("build/demo"), help="folder for results")
    chosen = parser.parse_args(arguments)
    if chosen.steps < 2:
        parser.error("--steps must be at least 2: the first one compiles and is not timed")

    console = require("rich.console", "the demo").Console()
    make_table = require("rich.table", "the demo").Table
    shutil.rmtree(chosen.out / "dump", ignore_errors=True)
    console.print(f"training gpt2 ({chosen.size}), bf16 autocast, {chosen.steps} steps")
    runs = train(chosen.steps, chosen.size, chosen.out / "dump")

    losses = make_table(title="loss after each step")
    within = loss_table(runs, losses)
    console.print(losses)
    costs = make_table(title="what a training step costs")
    cost_table(runs, costs)
    console.print(costs)
    console.print(write_report(chosen.out / "dump", chosen.out / "report.html"))
    if not within:
        console.print("a loss is further from stock than stock is from fp32")
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
