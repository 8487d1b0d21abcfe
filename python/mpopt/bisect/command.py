"""Find the rewrite that moved a result, by halving.

  mpopt bisect [options] SCRIPT.py [words of the script ...]
  mpopt bisect [options] --command "make test"
  mpopt bisect [options] GRAPH        (a bundle, .mlir, .mlirbc, .pt2)

A script runs in a fresh process with fixed seeds, with the first n rewrites of the process. It
is good if its exit status is 0 (125 says nothing), if the numbers that --metric finds in its
output stay, or if --check says so. A graph is evaluated with the reference interpreter before
and after n rewrites. Options stand before the script.

Exit codes: 0 found, 1 nothing to find or no single rewrite, 2 bad usage or a failed run.
"""

from __future__ import annotations

import argparse
import math
import os
import shlex
from pathlib import Path

from ..commands import DIFFERENT, OK, UsageError
from ..dump import write_json
from ..errors import MpoptError
from . import _show, report
from .checks import LOSS, Check, ExitStatus, Metric, Predicate
from .session import Bisection
from .subjects import Graph, GraphDistance, Program, Subject, is_graph, script

_RTOL = 1e-3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `mpopt bisect`."""
    add = parser.add_argument
    add("--check", metavar="FILE.py:FUNCTION", help="FUNCTION(output) returns True if it is good")
    add("--metric", metavar="REGEX", help="compare the numbers that it finds in the output")
    add("--loss-distance", metavar="X", type=_share, help="losses in the output may move by X")
    add("--rtol", metavar="X", type=_share, help=f"of a number or a graph (default {_RTOL})")
    add("--atol", metavar="X", type=_share, help="of a number (default 0)")
    add("--command", metavar="WORDS", help="run this instead of a script")
    add("--timeout", metavar="SECONDS", type=_share, help="a longer run says nothing")
    add("--probes", metavar="N", type=_count, default=2, help="further runs, after the search")
    add("--no-confirm", action="store_true", help="do not run the result a second time")
    add("--against", choices=("before", "f64"), default="before", help="what a graph is held to")
    add("--numerics", choices=("strict", "precise"), help="contract of the passes of a graph")
    add("--seed", metavar="N", type=_count, help="of the inputs of a graph")
    add("--trials", metavar="N", type=_count, help="inputs of a graph")
    add("--json", metavar="FILE", help="write the result there, for programs")
    add("subject", metavar="SCRIPT|GRAPH", nargs="?", help="what to run")
    add("words", metavar="...", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.set_defaults(parser=parser)


def _share(text: str) -> float:
    value = float(text)
    if not (value >= 0 and math.isfinite(value)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 on")
    return value


def _count(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not a count")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Bisect, print and return the exit code."""
    if arguments.subject and is_graph(arguments.subject) and arguments.words:
        _take_options_behind(arguments)
    check, subject = _check(arguments), _subject(arguments)
    with _show.lines() as say:
        bisection = Bisection(
            subject,
            check,
            say,
            probes=arguments.probes,
            confirm=not arguments.no_confirm,
        )
        finding = bisection.find()
    if arguments.json:
        _write(Path(arguments.json), report.json_of(finding, subject.name))
    print(report.text_of(finding))
    return OK if finding.status == "found" else DIFFERENT


def _take_options_behind(arguments: argparse.Namespace) -> None:
    """A graph has no words of its own: what stands behind it are options."""
    words, graph = arguments.words, arguments.subject
    arguments.parser.parse_args([*words, graph], namespace=arguments)
    if arguments.subject != graph or arguments.words:
        raise UsageError(f"mpopt bisect: one graph, not {arguments.subject!r} as well")


def _subject(arguments: argparse.Namespace) -> Subject:
    if arguments.command is not None:
        if arguments.subject:
            raise UsageError(f"mpopt bisect: --command or {arguments.subject!r}, not both")
        words = shlex.split(arguments.command)
        if not words:
            raise UsageError("mpopt bisect: --command is empty")
        return Program(words, arguments.command, arguments.timeout)
    if not arguments.subject:
        raise UsageError("mpopt bisect: needs a SCRIPT, a GRAPH or --command")
    if not is_graph(arguments.subject):
        return script([arguments.subject, *arguments.words], arguments.timeout)
    if not os.path.exists(arguments.subject):
        raise MpoptError(f"{arguments.subject}: no such file")
    names = ("numerics", "seed", "trials")
    given = {name: getattr(arguments, name) for name in names}
    return Graph(
        arguments.subject,
        [f"--{name}={value}" for name, value in given.items() if value is not None],
    )


def _check(arguments: argparse.Namespace) -> Check:
    chosen = [
        option
        for option in ("check", "metric", "loss_distance")
        if getattr(arguments, option) is not None
    ]
    if len(chosen) > 1:
        names = " and ".join("--" + name.replace("_", "-") for name in chosen)
        raise UsageError(f"mpopt bisect: {names} exclude each other")
    if arguments.check is not None:
        return Predicate(arguments.check)
    if arguments.subject and is_graph(arguments.subject):
        if chosen:
            raise UsageError("mpopt bisect: a graph is judged by --rtol or --check")
        rtol = arguments.rtol if arguments.rtol is not None else _RTOL
        return GraphDistance(rtol, arguments.against)
    if arguments.loss_distance is not None:
        return Metric(LOSS, 0.0, arguments.loss_distance)
    if arguments.metric is not None:
        return Metric(arguments.metric, *_tolerances(arguments))
    if arguments.rtol is not None or arguments.atol is not None:
        raise UsageError("mpopt bisect: --rtol and --atol need --metric")
    return ExitStatus()


def _tolerances(arguments: argparse.Namespace) -> tuple[float, float]:
    """A tolerance that is given stands alone."""
    rtol, atol = arguments.rtol, arguments.atol
    if rtol is None and atol is None:
        return _RTOL, 0.0
    return rtol or 0.0, atol or 0.0


def _write(path: Path, value: dict[str, object]) -> None:
    try:
        write_json(path, value)
    except OSError as error:
        raise MpoptError(f"--json: cannot write {str(path)!r}: {error.strerror}") from error
