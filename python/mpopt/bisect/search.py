"""Halving: where along 0 ... N does a verdict turn from good to bad?

Knows nothing about rewrites. A verdict may be SKIP (could not be told), change from run to
run, or turn good again further on; none of these is taken for something else.
"""

from __future__ import annotations

import dataclasses
import enum
import itertools
from collections.abc import Callable, Iterable


class Verdict(enum.Enum):
    """What one run says."""

    GOOD = "good"
    BAD = "bad"
    SKIP = "skip"


Test = Callable[[int], Verdict]
"""Runs with the first n rewrites. Called a second time for the same n, it must run again."""


@dataclasses.dataclass
class Outcome:
    """Where the verdict turns, and what speaks against it."""

    good: int
    """Good with so many rewrites, ..."""
    bad: int
    """... bad with so many. All numbers between were skipped."""
    verdicts: dict[int, Verdict]
    """The first verdict of each number that was run."""
    flaky: list[int] = dataclasses.field(default_factory=list)
    """Numbers that said something else when they were run again."""

    @property
    def is_exact(self) -> bool:
        """True if one rewrite makes the difference."""
        return self.bad == self.good + 1

    @property
    def good_again(self) -> list[int]:
        """Numbers above `bad` that are good: the verdict does not turn only once."""
        above = (n for n, v in self.verdicts.items() if n > self.bad and v is Verdict.GOOD)
        return sorted(above)


def search(test: Test, last: int, *, probes: int = 2, confirm: bool = True) -> Outcome:
    """Halve between 0, which is good, and `last`, which is bad.

    Afterwards `probes` more numbers are run, in the widest gaps that halving left: halving by
    itself assumes that the verdict turns once, and never meets what contradicts it. A bad one
    below starts the search again, below. `confirm` runs both sides of the result again.

    Raises ValueError if the ends are not known to be good and bad.
    """
    verdicts = {0: test(0)}
    if last > 0:
        verdicts[last] = test(last)
    if last < 1 or verdicts[0] is not Verdict.GOOD or verdicts[last] is not Verdict.BAD:
        raise ValueError("the search needs a good and a bad end")
    good, bad = _halve(test, 0, last, verdicts)
    for _ in range(probes):
        number = _widest_gap(verdicts, good, bad)
        if number is None:
            break
        verdicts[number] = test(number)
        if number < good and verdicts[number] is Verdict.BAD:
            below = max(n for n, v in verdicts.items() if v is Verdict.GOOD and n < number)
            good, bad = _halve(test, below, number, verdicts)
    outcome = Outcome(good, bad, verdicts)
    if confirm:
        outcome.flaky = [n for n in (good, bad) if test(n) is not verdicts[n]]
    return outcome


def _halve(test: Test, good: int, bad: int, verdicts: dict[int, Verdict]) -> tuple[int, int]:
    while (number := _middle(good, bad, verdicts)) is not None:
        verdicts[number] = test(number)
        if verdicts[number] is Verdict.GOOD:
            good = number
        elif verdicts[number] is Verdict.BAD:
            bad = number
    return good, bad


def _middle(good: int, bad: int, verdicts: Iterable[int]) -> int | None:
    """The number nearest to the middle that was not run yet."""
    free = [n for n in range(good + 1, bad) if n not in verdicts]
    middle = (good + bad) / 2
    return min(free, key=lambda n: abs(n - middle), default=None)


def _widest_gap(verdicts: dict[int, Verdict], good: int, bad: int) -> int | None:
    """The middle of the widest stretch, outside of good ... bad, where nothing was run."""
    known = sorted(verdicts)
    outside = (
        (low, high)
        for low, high in itertools.pairwise(known)
        if high - low > 1 and (high <= good or low >= bad)
    )
    gap = max(outside, key=lambda pair: pair[1] - pair[0], default=None)
    return None if gap is None else (gap[0] + gap[1]) // 2
