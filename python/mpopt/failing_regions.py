"""Which region's rewrites make a stage fail, so that only that region stays as it was traced.

A region is a module of the model. With none of the rewrites a graph is what was traced, which
works; so there is a first rewrite with which the stage fails, and halving finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

MOST = 4
"""Regions of one graph that are left out before the whole graph is."""
_ALL = 2**40

Trial = Callable[[int], tuple[Sequence[dict[str, Any]], bool]]
"""Tries the first n rewrites: the records of those, and whether that works."""


def first_failing(trial: Trial) -> str:
    """The module of the first rewrite with which a trial fails.

    "" if no rewrite is at fault, if its module is not known, or if no trial fails.
    """
    if not trial(0)[1] or trial(_ALL)[1]:
        return ""
    good, bad = 0, 1
    while trial(bad)[1]:
        good, bad = bad, 2 * bad
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if trial(middle)[1] else (good, middle)
    records, _ = trial(bad)
    return str(records[good].get("module", "")) if len(records) > good else ""
