"""What makes a run good or bad: its exit status, a number it prints, or a user's function."""

from __future__ import annotations

import dataclasses
import importlib.util
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from ..errors import MpoptError
from .search import Verdict

SKIP_STATUS = 125
"""The exit status that says "cannot be told", as for `git bisect run`."""
LOSS = r"\bloss\b\W*?([-+]?(?:\d[\d.]*(?:[eE][-+]?\d+)?|inf|nan))"
"""The numbers that `--loss-distance` compares."""


@dataclasses.dataclass
class Run:
    """One run with the first `limit` rewrites; None for all, without a limit."""

    limit: int | None
    status: int
    output: str
    errors: str = ""
    entries: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    """The rewrites that were applied, in order."""
    seconds: float = 0.0
    timed_out: bool = False


@dataclasses.dataclass
class Judgement:
    """A verdict with what it is based on."""

    verdict: Verdict
    text: str
    distance: float | None = None
    """From the run without rewrites, in units of what is allowed."""


class Check(Protocol):
    """Judges a run by comparison with the one without rewrites."""

    def judge(self, run: Run, reference: Run) -> Judgement:
        """Raises MpoptError if nothing can be said of any run."""


def _unusable(run: Run) -> Judgement | None:
    """A run that did not come to its end says nothing about what it computed."""
    if run.timed_out:
        return Judgement(Verdict.SKIP, "timed out")
    if run.status == SKIP_STATUS:
        return Judgement(Verdict.SKIP, f"exit status {SKIP_STATUS}")
    if run.status != 0:
        return Judgement(Verdict.SKIP, f"exit status {run.status}{_last_line(run.errors)}")
    return None


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return f" ({lines[-1].strip()[:120]})" if lines else ""


class ExitStatus:
    """0 is good, 125 says nothing, everything else is bad."""

    def judge(self, run: Run, reference: Run) -> Judgement:
        """By the exit status alone."""
        if run.timed_out:
            return Judgement(Verdict.SKIP, "timed out")
        if run.status == SKIP_STATUS:
            return Judgement(Verdict.SKIP, f"exit status {SKIP_STATUS}")
        verdict = Verdict.BAD if run.status else Verdict.GOOD
        tail = _last_line(run.errors) if run.status else ""
        return Judgement(verdict, f"exit status {run.status}{tail}")


class Metric:
    """Numbers that `pattern` finds in the output, each within atol + rtol * |reference|."""

    def __init__(self, pattern: str, rtol: float, atol: float) -> None:
        try:
            self.pattern = re.compile(pattern, re.IGNORECASE | re.MULTILINE)
        except re.error as error:
            raise MpoptError(f"--metric {pattern!r}: {error}") from error
        if self.pattern.groups > 1:
            raise MpoptError(f"--metric {pattern!r}: more than one group; use (?:...)")
        self.rtol, self.atol = rtol, atol

    def judge(self, run: Run, reference: Run) -> Judgement:
        """The number that is farthest off decides."""
        if (unusable := _unusable(run)) is not None:
            return unusable
        expected, found = self._numbers(reference), self._numbers(run)
        if len(found) != len(expected):
            text = f"prints {len(found)} numbers, not {len(expected)}"
            return Judgement(Verdict.BAD, text, math.inf)
        worst, pair = 0.0, (expected[-1], found[-1])
        for old, new in zip(expected, found, strict=True):
            if (off := self._distance(old, new)) > worst:
                worst, pair = off, (old, new)
        verdict = Verdict.BAD if worst > 1 else Verdict.GOOD
        text = f"{pair[1]:.8g}" + (f" for {pair[0]:.8g}" if worst else "")
        return Judgement(verdict, f"{text}, {worst:.3g} x what is allowed", worst)

    def _numbers(self, run: Run) -> list[float]:
        found = self.pattern.findall(run.output)
        if not found:
            raise MpoptError(
                f"--metric {self.pattern.pattern!r} finds nothing in the output of the run with "
                f"{run.limit if run.limit is not None else 'all'} rewrites"
            )
        try:
            return [float(text) for text in found]
        except ValueError as error:
            raise MpoptError(f"--metric {self.pattern.pattern!r}: {error}") from error

    def _distance(self, old: float, new: float) -> float:
        """1 is just allowed."""
        if old == new or (math.isnan(old) and math.isnan(new)):
            return 0.0
        allowed = self.atol + self.rtol * abs(old)
        off = abs(new - old)
        if not math.isfinite(off) or not math.isfinite(allowed) or allowed == 0:
            return math.inf
        return off / allowed


class Predicate:
    """A function of the user: output of the run in, True for good."""

    def __init__(self, spec: str) -> None:
        path, _, name = spec.rpartition(":")
        if not path or not name.isidentifier():
            raise MpoptError(f"--check takes FILE.py:FUNCTION, not {spec!r}")
        self.spec = spec
        self.function = _load_function(Path(path), name)

    def judge(self, run: Run, reference: Run) -> Judgement:
        """Only True and False are answers."""
        if (unusable := _unusable(run)) is not None:
            return unusable
        try:
            answer = self.function(run.output)
        except Exception as error:
            text = f"--check {self.spec} raised {type(error).__name__}: {error}"
            raise MpoptError(text) from error
        if not isinstance(answer, bool):
            raise MpoptError(f"--check {self.spec} returned {answer!r}, not True or False")
        return Judgement(Verdict.GOOD if answer else Verdict.BAD, f"{self.spec} says {answer}")


def _load_function(path: Path, name: str) -> Callable[[str], Any]:
    module_spec = importlib.util.spec_from_file_location("mpopt_bisect_check", path)
    if not path.is_file() or module_spec is None or module_spec.loader is None:
        raise MpoptError(f"--check: no Python file {str(path)!r}")
    module = importlib.util.module_from_spec(module_spec)
    try:
        module_spec.loader.exec_module(module)
    except Exception as error:
        raise MpoptError(f"--check: {path}: {type(error).__name__}: {error}") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise MpoptError(f"--check: {path} has no function {name!r}")
    return function  # type: ignore[no-any-return]
