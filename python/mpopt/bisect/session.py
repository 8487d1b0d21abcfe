"""One bisection: both ends, the search, and what was found."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

from ..errors import MpoptError
from .checks import Check, Judgement, Metric, Run
from .search import Outcome, Verdict, search
from .subjects import Program, Subject

Say = Callable[[str], None]
"""Shows a line of progress."""


@dataclasses.dataclass
class Finding:
    """What a bisection says. `status` is "found", "range", or why there is nothing to find."""

    status: str
    text: str
    rewrites: int = 0
    outcome: Outcome | None = None
    culprits: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    """Entries of the rewrites after which the result is bad; one if it is exact."""
    runs: list[tuple[Run, Judgement]] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)


class Bisection:
    """Runs `subject` as often as it takes. `say` gets a line for each run."""

    def __init__(
        self, subject: Subject, check: Check, say: Say, *, probes: int = 2, confirm: bool = True
    ) -> None:
        self.subject, self.check, self.say = subject, check, say
        self.probes, self.confirm = probes, confirm
        self.runs: list[tuple[Run, Judgement]] = []
        self.notes: list[str] = []
        self.reference: Run
        self.all: list[dict[str, Any]] = []

    def find(self) -> Finding:
        """Both ends first: halving says nothing unless they are good and bad."""
        refused = self._try_ends()
        if refused is not None:
            return refused
        known = {run.limit: judgement.verdict for run, judgement in self.runs}
        ends = {0: known[0], len(self.all): known[None]}

        def test(limit: int) -> Verdict:
            return ends.pop(limit) if limit in ends else self._run(limit).verdict

        outcome = search(test, len(self.all), probes=self.probes, confirm=self.confirm)
        return self._found(outcome)

    # Both ends ---------------------------------------------------------------

    def _try_ends(self) -> Finding | None:
        self.reference = self.subject.run(0)
        first = self._judge(self.reference)
        if self.reference.entries:
            raise MpoptError(
                f"{len(self.reference.entries)} rewrites were applied although none was allowed: "
                "bisect_limit in options= of the script wins over the environment; remove it"
            )
        if first.verdict is Verdict.SKIP:
            return self._nothing("unusable", f"without rewrites: {first.text}")
        if first.verdict is Verdict.BAD:
            return self._nothing("bad without rewrites", self._blame_of_zero())
        full = self.subject.run(None)
        last = self._judge(full)
        self.all = full.entries
        if not self.all:
            return self._nothing("no rewrites", "no rewrite was applied: nothing to find")
        if last.verdict is Verdict.SKIP:
            return self._nothing("unusable", f"with all rewrites: {last.text}")
        if last.verdict is Verdict.GOOD:
            return self._nothing("good", f"good with all {len(self.all)} rewrites: {last.text}")
        if isinstance(self.check, Metric) and self.confirm:
            again = self._run(0)
            if again.verdict is not Verdict.GOOD:
                text = f"two runs without rewrites differ: {again.text}; "
                return self._nothing("noise", text + "fix the seeds or allow more")
        return None

    def _blame_of_zero(self) -> str:
        text = f"bad without any rewrite: {self.runs[0][1].text}"
        if not isinstance(self.subject, Program):
            return text
        without = self._judge(self.subject.run_without(), "without mpopt")
        if without.verdict is Verdict.BAD:
            return f"{text}\nand bad with MPOPT_DISABLE=1: mpopt is not the reason"
        if without.verdict is Verdict.SKIP:
            return f"{text}\nand nothing can be said of MPOPT_DISABLE=1: {without.text}"
        return (
            f"{text}\nbut good with MPOPT_DISABLE=1: not a rewrite moves the result, but what "
            "mpopt does beside them; try MPOPT_HALF_WEIGHTS=0 and MPOPT_NUMERICS=strict"
        )

    def _nothing(self, status: str, text: str) -> Finding:
        return Finding(status, text, len(self.all), None, [], self.runs, self.notes)

    # Runs --------------------------------------------------------------------

    def _run(self, limit: int) -> Judgement:
        run = self.subject.run(limit)
        self._compare_lists(run, limit)
        return self._judge(run)

    def _judge(self, run: Run, name: str = "") -> Judgement:
        judgement = self.check.judge(run, self.reference)
        if not name:
            self.runs.append((run, judgement))
            of = f" of {len(self.all)}" if self.all else ""
            name = "all rewrites" if run.limit is None else f"first {run.limit}{of} rewrites"
        self.say(f"{name}: {judgement.verdict.value} ({judgement.text})")
        return judgement

    def _compare_lists(self, run: Run, limit: int) -> None:
        """Numbers name the same rewrites only if each run compiles the same graphs."""
        expected = [entry for entry in self.all if entry["number"] <= limit]
        if run.timed_out or not self.all or _identities(run.entries) == _identities(expected):
            return
        note = (
            "runs do not compile the same graphs in the same order, so a number may name "
            "different rewrites; the culprit is the one that the last bad run applied last"
        )
        if note not in self.notes:
            self.notes.append(note)

    # The result --------------------------------------------------------------

    def _found(self, outcome: Outcome) -> Finding:
        runs = {run.limit: run for run, _ in self.runs}
        entries = (runs[outcome.bad] if outcome.bad in runs else runs[None]).entries
        culprits = [e for e in entries if outcome.good < e["number"] <= outcome.bad]
        if outcome.flaky:
            numbers = ", ".join(map(str, outcome.flaky))
            self.notes.append(
                f"not reproducible: a second run with {numbers} rewrites said something else; "
                "fix the seeds or allow more"
            )
        if outcome.good_again:
            numbers = ", ".join(map(str, outcome.good_again))
            self.notes.append(
                f"bad with {outcome.bad} rewrites, but good again with {numbers}: later rewrites "
                "make up for this one, and there may be more than one culprit"
            )
        if step := self._step(outcome):
            self.notes.append(step)
        status = "found" if outcome.is_exact else "range"
        text = f"rewrite {outcome.bad} of {len(self.all)} moves the result"
        if not outcome.is_exact:
            text = f"one of the rewrites {outcome.good + 1} to {outcome.bad} moves the result; "
            text += "the runs between said nothing"
        return Finding(status, text, len(self.all), outcome, culprits, self.runs, self.notes)

    def _step(self, outcome: Outcome) -> str:
        """Where many rewrites move a number a little, the culprit is only the last straw."""
        distances = {run.limit: j.distance for run, j in self.runs if j.distance is not None}
        last = len(self.all)
        low = distances.get(outcome.good)
        high = distances.get(outcome.bad if outcome.bad != last else None)
        if low is None or high is None or not math.isfinite(high) or high - low > high / 2:
            return ""
        return (
            f"the distance was {low:.3g} before this rewrite and is {high:.3g} after it: others "
            "moved the result as well, this one over what is allowed"
        )


def _identities(entries: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    keys = ("number", "graph", "rule", "module", "op", "node")
    return sorted({tuple(str(entry.get(key)) for key in keys) for entry in entries})
