"""What is run with the first n rewrites: a script, a command, or a graph."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from ..errors import MpoptError
from .checks import Judgement, Run
from .search import Verdict

GRAPH_SUFFIXES = (".mlir", ".mlirbc", ".pt2", ".json")
_STOPPING = {signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGHUP}
"""Signals that somebody sends, or the system when memory runs out: no verdict on a program."""


class Subject(Protocol):
    """Something that can be run with any number of rewrites."""

    name: str

    def run(self, limit: int | None) -> Run:
        """Raises MpoptError when it cannot be started or was stopped from outside."""


def is_graph(word: str) -> bool:
    """True for a bundle or a file of a graph."""
    return os.path.isdir(word) or word.endswith(GRAPH_SUFFIXES)


class Program:
    """A process that compiles with the backend. `words` is its command line."""

    def __init__(self, words: Sequence[str], name: str, timeout: float | None = None) -> None:
        self.words, self.name, self.timeout = list(words), name, timeout

    def run(self, limit: int | None) -> Run:
        """A fresh process; its output is kept, not shown."""
        with tempfile.TemporaryDirectory(prefix="mpopt-bisect-") as folder:
            listed = Path(folder) / "rewrites.jsonl"
            variables = {"MPOPT_REWRITE_LOG": str(listed)}
            if limit is not None:
                variables["MPOPT_BISECT_LIMIT"] = str(limit)
            run = self._execute(limit, variables)
            run.entries = _read_lines(listed)
        return run

    def run_without(self) -> Run:
        """The same with mpopt switched off."""
        return self._execute(None, {"MPOPT_DISABLE": "1"})

    def _execute(self, limit: int | None, variables: dict[str, str]) -> Run:
        kept = {k: v for k, v in os.environ.items() if k != "MPOPT_BISECT_LIMIT"}
        environment = {"PYTHONHASHSEED": "0", **kept, **variables}
        start = time.monotonic()
        try:
            process = subprocess.Popen(
                self.words,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise MpoptError(f"cannot start {self.words[0]!r}: {error.strerror}") from error
        output, errors, timed_out = _finish(process, self.timeout)
        if not timed_out and process.returncode < 0 and -process.returncode in _STOPPING:
            name = signal.Signals(-process.returncode).name
            raise MpoptError(f"the run with {limit} rewrites was ended by {name}")
        seconds = time.monotonic() - start
        return Run(limit, process.returncode, output, errors, [], seconds, timed_out)


def _finish(process: subprocess.Popen[str], timeout: float | None) -> tuple[str, str, bool]:
    """Output, errors, and whether the time was up; nothing of the process stays behind."""
    try:
        return *process.communicate(timeout=timeout), False
    except subprocess.TimeoutExpired:
        _kill_group(process)
        return *process.communicate(), True
    except BaseException:
        _kill_group(process)
        process.wait()
        raise


def _kill_group(process: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _read_lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    lines = [json.loads(line) for line in path.read_text().splitlines() if line]
    return sorted(lines, key=lambda entry: int(entry["number"]))


def script(words: Sequence[str], timeout: float | None = None) -> Program:
    """A Python script with its arguments."""
    if not os.path.isfile(words[0]):
        raise MpoptError(f"no script and no graph {words[0]!r}")
    child = [sys.executable, "-m", "mpopt.bisect.child"]
    return Program([*child, *words], words[0], timeout)


class Graph:
    """A graph that `mpopt measure` runs the passes on and evaluates."""

    def __init__(self, path: str, options: Sequence[str] = ()) -> None:
        self.name = path
        self.words = [find_program(), "measure", path, "--format=json", *options]

    def run(self, limit: int | None) -> Run:
        """Runs the program once."""
        words = self.words if limit is None else [*self.words, f"--limit={limit}"]
        start = time.monotonic()
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise MpoptError(done.stderr.strip().removeprefix("mpopt: error: "))
        entries = json.loads(done.stdout)["applied"]
        return Run(limit, 0, done.stdout, done.stderr, entries, time.monotonic() - start)


class GraphDistance:
    """Bad if results move by more than `allowed`, relative to the largest of a result.

    Against "before" from those of the graph before the passes; against "f64" counts only by
    how much the error grows.
    """

    def __init__(self, allowed: float, against: str) -> None:
        self.allowed, self.against = allowed, against

    def judge(self, run: Run, reference: Run) -> Judgement:
        """By the figures of `mpopt measure`."""
        figures = {k: math.inf if v is None else v for k, v in json.loads(run.output).items()}
        off = float(figures["distance"])
        if self.against == "f64":
            off = max(0.0, float(figures["error_after"] - figures["error_before"]))
        text = f"distance {off:.3g}, allowed {self.allowed:.3g}"
        return Judgement(Verdict.BAD if off > self.allowed else Verdict.GOOD, text, off)


def find_program() -> str:
    """The program `mpopt`: MPOPT_TOOL, beside this Python, or on PATH."""
    named = os.environ.get("MPOPT_TOOL")
    beside = shutil.which("mpopt", path=os.path.dirname(sys.executable))
    found = named or beside or shutil.which("mpopt")
    if not found:
        raise MpoptError("the program 'mpopt' is not on PATH; set MPOPT_TOOL to it")
    return found
