"""The search of `mpopt bisect` against brute force on random verdicts."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpopt.bisect.search import Verdict, search

GOOD, BAD, SKIP = Verdict.GOOD, Verdict.BAD, Verdict.SKIP


class Recorder:
    """Answers from a table and counts."""

    def __init__(self, table):
        self.table, self.asked = table, []

    def __call__(self, number):
        self.asked.append(number)
        return self.table[number]


@st.composite
def one_turn(draw):
    """A table that turns from good to bad once, with or without skips between the ends."""
    last = draw(st.integers(1, 200))
    turn = draw(st.integers(1, last))
    skipped = draw(st.sets(st.integers(1, last - 1))) if last > 1 and draw(st.booleans()) else set()
    verdicts = [BAD if n >= turn else GOOD for n in range(last + 1)]
    return [SKIP if n in skipped else v for n, v in enumerate(verdicts)]


@st.composite
def any_table(draw):
    inner = draw(st.lists(st.sampled_from([GOOD, BAD, SKIP]), max_size=60))
    return [GOOD, *inner, BAD]


def brute_force(table):
    """The last good and the first bad number of a table that turns once."""
    return (
        max(n for n, verdict in enumerate(table) if verdict is GOOD),
        min(n for n, verdict in enumerate(table) if verdict is BAD),
    )


@given(one_turn(), st.integers(0, 4), st.booleans())
def test_one_turn_is_found(table, probes, confirm):
    test = Recorder(table)
    found = search(test, len(table) - 1, probes=probes, confirm=confirm)
    assert (found.good, found.bad) == brute_force(table)
    assert found.good_again == [] and found.flaky == []
    assert found.is_exact == (found.bad == found.good + 1)
    bound = 2 + math.ceil(math.log2(len(table))) + table.count(SKIP) + probes + 2 * confirm
    assert len(test.asked) <= bound


@given(any_table(), st.integers(0, 4))
def test_what_is_said_is_true(table, probes):
    test = Recorder(table)
    found = search(test, len(table) - 1, probes=probes, confirm=False)
    assert table[found.good] is GOOD and table[found.bad] is BAD
    assert all(table[n] is SKIP for n in range(found.good + 1, found.bad))
    assert all(n > found.bad and table[n] is GOOD for n in found.good_again)
    assert len(test.asked) == len(set(test.asked)), "nothing is run twice"
    assert found.verdicts == {n: table[n] for n in test.asked}


@given(any_table())
def test_with_a_probe_for_each_number_the_first_turn_is_found(table):
    found = search(Recorder(table), len(table) - 1, probes=len(table), confirm=False)
    first_bad = table.index(BAD)
    assert found.bad == first_bad
    assert found.good == max(n for n in range(first_bad) if table[n] is GOOD)
    assert found.good_again == [n for n in range(first_bad, len(table)) if table[n] is GOOD]


@given(one_turn(), st.data())
def test_what_changes_from_run_to_run_is_told(table, data):
    good, bad = brute_force(table)
    wrong = data.draw(st.sets(st.sampled_from([good, bad])))
    runs = dict.fromkeys(range(len(table)), 0)

    def test(number):
        runs[number] += 1
        if number in wrong and runs[number] == 2:
            return SKIP
        return table[number]

    found = search(test, len(table) - 1)
    assert (found.good, found.bad) == (good, bad)
    assert set(found.flaky) == wrong


@pytest.mark.parametrize("table", [[GOOD], [BAD, BAD], [GOOD, GOOD], [SKIP, BAD], [GOOD, SKIP]])
def test_the_ends_must_be_good_and_bad(table):
    with pytest.raises(ValueError, match="a good and a bad end"):
        search(Recorder(table), len(table) - 1)
