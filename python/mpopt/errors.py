"""The exceptions that mpopt raises on purpose."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class MpoptError(RuntimeError):
    """Base of all errors of this package: what went wrong and what to do."""


class OptionError(MpoptError, ValueError):
    """A bad option, environment variable or configuration file."""


class UnsupportedError(MpoptError):
    """A graph that the importer cannot describe; it is compiled as it is."""


class StageError(MpoptError):
    """A failure inside one stage of the joint pass. `stage` names it."""

    def __init__(self, stage: str, message: str) -> None:
        super().__init__(f"{stage}: {message}")
        self.stage = stage


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The clause "; did you mean 'x'?" or a list of what is known."""
    names = sorted(known)
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    if near:
        return f"; did you mean {near[0]!r}?"
    return "; known: " + ", ".join(names)
