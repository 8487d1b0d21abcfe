"""Errors of the benchmark, and the one way in which it rejects an unknown name."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable
from typing import Any


class BenchError(Exception):
    """A measurement that cannot be made; the text says what and why."""


class UsageError(BenchError):
    """A bad argument; the text names it and what to give instead."""


def check_name(kind: str, name: str, known: Iterable[str]) -> str:
    """Return `name` if it is one of `known`.

    Raises:
        UsageError: names the nearest known one, or all of them if none is near.
    """
    names = list(known)
    if name in names:
        return name
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(names)}"
    raise UsageError(f"unknown {kind} '{name}'; {hint}")


def require(package: str, reason: str) -> Any:
    """Import the module `package`, which only part of the benchmark needs.

    Raises:
        BenchError: the package is missing; names the pip package.
    """
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise BenchError(
            f"{reason} needs the package {package}, which is not installed; "
            f"run: pip install {package}"
        ) from error
