"""Command line: `python -m mpopt.bench casts|step|compile|scale|update|placement|gemm|accuracy`.

Exit codes: 0 done, 1 a measurement failed, 2 a bad argument.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from ._errors import BenchError, UsageError, check_name
from ._graphs import graph_files, graph_name, load_graph, trace
from ._markdown import check_page, placement_table, write_table
from ._table import Output, progress
from .accuracy import measure_accuracy
from .accuracy import table as accuracy_table
from .casts import measure_casts
from .compile import measure_compile
from .families import FAMILIES, SIZES, Size
from .gemm import (
    Measured,
    gemm_rows,
    measure_gemm,
    parse_threads,
    slow_shapes,
    summary_rows,
    wrong_shapes,
)
from .measured import measure_model
from .placement import measure_placement
from .rows import Row, read_json, write_json
from .scale import measure_scale
from .step import Say, measure_step, tune_malloc
from .update import DTYPES, measure_update
from .variants import BASELINE, VARIANTS, Variant, parse_variants

_COMMANDS = ("casts", "step", "compile", "scale", "update", "placement", "gemm", "accuracy")
_EPILOG = f"""families: {" ".join(FAMILIES)}
variants: {" ".join(VARIANTS)}"""


# What concerns only some commands: given to another, it would silently mean nothing.
_CONCERNS = {
    "rounds": ("step", "update", "gemm"),
    "seconds": ("step",),
    "no_memory": ("step",),
    "malloc": ("step",),
    "repeats": ("compile", "scale"),
    "nodes": ("scale",),
    "families": ("casts", "step", "compile", "scale", "placement", "gemm", "accuracy"),
    "threads": ("gemm",),
    "most": ("gemm",),
    "variants": ("casts", "step", "compile", "scale"),
    "size": ("casts", "step", "compile", "scale", "placement", "gemm", "accuracy"),
    "graphs": ("placement",),
    "measured": ("placement",),
    "markdown": ("placement", "accuracy"),
    "rows": ("placement", "accuracy"),
    "steps": ("accuracy",),
    "seeds": ("accuracy",),
    "numerics": ("casts", "step", "compile", "scale"),
    "option": ("casts", "step", "compile", "scale", "gemm", "accuracy"),
    "millions": ("update",),
    "dtype": ("update",),
    "no_compile": ("update",),
}


class _Parser(argparse.ArgumentParser):
    """Reports errors the way the rest of the benchmark does."""

    def error(self, message: str) -> Any:
        raise UsageError(message)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m mpopt.bench",
        description="Measure a training step: its casts, its time, its compilation.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    commands = "casts (kernels after Inductor, errors), step (times), compile (cold), scale"
    commands += " (mpopt alone on a large graph), update (optimizer step),"
    commands += " placement (what a GPU would move and keep, by the model of kernels),"
    commands += " gemm (matrix products with what follows them, ours against PyTorch's),"
    commands += " accuracy (gradients against fp64, and loss curves, of each level)"
    add("command", help=commands)
    add("--family", "--families", dest="families", metavar="F[,F…]|all")
    add("--variant", "--variants", dest="variants", metavar="V[,V…]", default=None)
    add("--json", metavar="FILE", help="write tidy rows; - for standard output")
    add("--quick", action="store_true", help="small models, few samples")
    add("--size", choices=SIZES, help="size of the models alone")
    add(
        "--numerics",
        choices=("strict", "precise", "relaxed"),
        help="contract of the mpopt variants",
    )
    add("--option", action="append", default=[], metavar="K=V", help="of the mpopt backend")
    add("--graphs", metavar="DIR", help="placement: joint graphs in files, not of families")
    add(
        "--measured",
        action="store_true",
        help="placement: beside the model what Inductor schedules on a CPU",
    )
    add("--markdown", metavar="FILE", help="placement, accuracy: put the table into this page")
    add("--rows", metavar="FILE", help="with --markdown: take these rows, and measure nothing")
    add("--steps", type=int, help="accuracy: steps of a loss curve, 0 for none (500; quick 50)")
    add("--seeds", type=int, help="accuracy: runs of each level (3; quick 2)")
    add("--rounds", type=int, help="step, update, gemm: timed rounds (20; quick 7)")
    add("--threads", metavar="N[,N…]", help="gemm: numbers of threads (1,2)")
    add("--most", type=int, help="gemm: how many products of a family (all; quick 6)")
    add("--seconds", type=float, help="step: stop timing after this long (120; quick 15)")
    add("--no-memory", action="store_true", help="step: no peak memory (a process per variant)")
    add(
        "--malloc",
        choices=("tuned", "stock"),
        help="step: let glibc keep freed memory, which steadies times (default), or not",
    )
    add("--repeats", type=int, help="compile, scale: samples per variant (3; quick 1)")
    add("--nodes", type=int, help="scale: least size of the graph (100000; quick 10000)")
    add("--millions", type=float, help="update: million elements (50; quick 5)")
    add("--dtype", choices=tuple(DTYPES), help="update: of the gradients (bf16)")
    add("--no-compile", action="store_true", help="update: without the compiled variant")
    add("--verbose", action="store_true", help="list every kernel that only converts")
    return parser


def _families(text: str) -> list[str]:
    if text == "all":
        return list(FAMILIES)
    names = [part.strip() for part in text.split(",") if part.strip()]
    return [check_name("family", name, FAMILIES) for name in dict.fromkeys(names)]


def _options(args: argparse.Namespace, variants: Sequence[Variant]) -> dict[str, Any]:
    """Return the options of the mpopt backend; a value that is JSON is read as such."""
    options: dict[str, Any] = {}
    for text in args.option:
        key, sign, value = text.partition("=")
        if not sign or not key:
            raise UsageError(f"--option takes KEY=VALUE, not '{text}'")
        try:
            options[key] = json.loads(value)
        except ValueError:
            options[key] = value
    if args.numerics is not None:
        options["numerics"] = args.numerics
    of_levels = args.command == "accuracy"
    if options and not of_levels and all(v.backend != "mpopt" for v in variants):
        raise UsageError("--numerics and --option concern mpopt variants; none is given")
    return options


def _check_concerns(args: argparse.Namespace) -> None:
    """Raise UsageError for an option that says nothing to the command."""
    for name, commands in _CONCERNS.items():
        value = getattr(args, name)
        is_given = value is not None and value is not False and value != []
        if is_given and args.command not in commands:
            option = "--" + name.replace("_", "-")
            raise UsageError(f"{option} concerns {' and '.join(commands)}, not {args.command}")


def _default_variant(command: str) -> str:
    return "mpopt-autocast-bf16" if command in ("scale", "gemm") else BASELINE


def _default_size(args: argparse.Namespace) -> Size:
    # A graph that is repeated anyway may be that of a small model.
    if args.command == "placement" and not args.quick and not args.measured:
        return "large"
    return "tiny" if args.command == "scale" else "quick" if args.quick else "full"


def _positive(value: float | None, name: str, default: float) -> float:
    if value is None:
        return default
    if not value > 0:
        raise UsageError(f"{name} must be positive, not {value:g}")
    return value


class _Session:
    """One invocation: checked arguments, and the rows that it has measured."""

    def __init__(self, args: argparse.Namespace) -> None:
        check_name("command", args.command, _COMMANDS)
        _check_concerns(args)
        if args.markdown is not None:
            check_page(args.markdown, args.command)
            if args.measured:
                raise UsageError("--measured has no table for --markdown")
        elif args.rows is not None:
            raise UsageError("--rows wants --markdown, the page to write")
        self.args = args
        self.families = self._named_families()
        self.variants = parse_variants(args.variants or _default_variant(args.command))
        self.options = _options(args, self.variants)
        self.size: Size = args.size or _default_size(args)
        self.rounds = int(_positive(args.rounds, "--rounds", 7 if args.quick else 20))
        self.seconds = _positive(args.seconds, "--seconds", 15 if args.quick else 120)
        self.repeats = int(_positive(args.repeats, "--repeats", 1 if args.quick else 3))
        self.steps = self._count("steps", 50 if args.quick else 500, least=0)
        self.seeds = self._count("seeds", 2 if args.quick else 3, least=1)
        self.nodes = int(_positive(args.nodes, "--nodes", 10_000 if args.quick else 100_000))
        self.output = Output(sys.stderr if args.json == "-" else sys.stdout)
        self.rows: list[Row] = []
        self.products: list[Measured] = []

    def _count(self, name: str, default: int, least: int) -> int:
        value = getattr(self.args, name)
        if value is not None and value < least:
            raise UsageError(f"--{name} must be {least} or more, not {value}")
        return default if value is None else int(value)

    def _named_families(self) -> list[str]:
        if self.args.rows is not None:
            return []
        if self.args.command == "update":
            return ["transformer"]
        if self.args.graphs is not None:
            if self.args.measured:
                raise UsageError("--measured compiles families; files of --graphs cannot be run")
            names = (self.args.families or "all").split(",")
            chosen = None if names == ["all"] else names
            return [graph_name(path) for path in graph_files(self.args.graphs, chosen)]
        if self.args.families is None:
            raise UsageError("--family is required: " + ", ".join(FAMILIES) + ", or all")
        return _families(self.args.families)

    def _casts(self, family: str, say: Say) -> list[Row]:
        rows = []
        for variant in self.variants:
            say(f"{family}: {variant.name}")
            report = measure_casts(family, self.size, variant, self.options)
            rows += report.rows
            if variant.backend is not None:
                title = f"{family}, {variant.name}"
                self.output.kernels(title, report.kernels, verbose=self.args.verbose)
        return rows

    def _placement(self, name: str, say: Say) -> list[Row]:
        if self.args.measured:
            return measure_model(name, self.size, say)
        if self.args.graphs is None:
            say(f"{name}: tracing")
            return measure_placement(name, trace(name, self.size), say)
        (path,) = graph_files(self.args.graphs, [name])
        return measure_placement(name, lambda: load_graph(path), say)

    def _gemm(self, family: str, say: Say) -> list[Row]:
        measured = measure_gemm(
            family,
            self.size,
            self.options,
            threads=parse_threads(self.args.threads),
            rounds=self.rounds,
            most=int(_positive(self.args.most, "--most", 6 if self.args.quick else 10**6)),
            say=say,
        )
        self.products += measured
        return gemm_rows(family, measured)

    def _measure(self, family: str, say: Say) -> list[Row]:
        if self.args.command == "gemm":
            return self._gemm(family, say)
        if self.args.command == "placement":
            return self._placement(family, say)
        if self.args.command == "accuracy":
            return measure_accuracy(
                family,
                self.size,
                steps=self.steps,
                seeds=self.seeds,
                options=self.options,
                say=say,
            )
        if self.args.command == "casts":
            return self._casts(family, say)
        if self.args.command == "compile":
            return measure_compile(
                family, self.size, self.variants, self.options, repeats=self.repeats, say=say
            )
        if self.args.command == "scale":
            return measure_scale(
                family,
                self.size,
                self.variants,
                self.options,
                nodes=self.nodes,
                repeats=self.repeats,
                say=say,
            )
        if self.args.command == "update":
            return measure_update(
                _positive(self.args.millions, "--millions", 5 if self.args.quick else 50),
                self.args.dtype or "bf16",
                rounds=self.rounds,
                compiled=not self.args.no_compile,
                say=say,
            )
        return measure_step(
            family,
            self.size,
            self.variants,
            self.options,
            rounds=self.rounds,
            seconds=self.seconds,
            memory=not self.args.no_memory,
            say=say,
        )

    def _save(self, *, final: bool) -> None:
        """Write the rows so far, so that an interrupted run keeps its families."""
        target = self.args.json
        if target is not None and (final or target != "-"):
            write_json(self.rows, target)

    def run(self) -> int:
        """Measure each family; one that fails is reported and does not stop the others."""
        if self.args.command == "step" and self.args.malloc != "stock":
            tune_malloc()
        failed = False
        for family in self.families:
            try:
                with progress() as say:
                    rows = self._measure(family, say)
            except UsageError:
                raise
            except Exception as error:  # whatever a backend raises must not lose other families
                failed = True
                print(f"error: {family}: {type(error).__name__}: {error}", file=sys.stderr)
                logging.getLogger(__name__).debug("traceback", exc_info=True)
                continue
            self.output.rows(rows, verbose=self.args.verbose)
            self.rows += rows
            self._save(final=False)
        if self.products:
            self.rows += (summary := summary_rows(self.products))
            self.output.rows(summary)
            wrong = wrong_shapes(self.products)
            self.output.lines([*slow_shapes(self.products), *wrong])
            failed |= bool(wrong)
        self._save(final=True)
        self._write_page()
        return 1 if failed else 0

    def _write_page(self) -> None:
        """Put the tables of the rows into the page that was named."""
        rows, command = self.rows, self.args.command
        if self.args.rows is not None:
            try:
                rows = [row for row in read_json(self.args.rows) if row.command == command]
            except ValueError as error:
                raise UsageError(f"--rows: '{self.args.rows}': {error}") from None
            if not rows:
                raise UsageError(f"--rows: '{self.args.rows}' has no rows of {command}")
        if self.args.markdown is not None and rows:
            table = accuracy_table(rows) if command == "accuracy" else placement_table(rows)
            write_table(table, self.args.markdown, command)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    warnings.filterwarnings("ignore", module=r"torch\..*|transformers\..*|timm\..*")
    try:
        return _Session(_parser().parse_args(argv)).run()
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except (BenchError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
