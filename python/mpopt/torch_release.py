"""Which releases of PyTorch mpopt works with: those that pyproject.toml declares."""

from __future__ import annotations

import re

from . import log
from .errors import MpoptError

FIRST, LAST = (2, 11), (2, 15)
"""The first and the last minor release that the tests were run with."""


def check(version: str) -> None:
    """Raises MpoptError for a PyTorch that is too old; warns of one that is newer than known.

    An older one lacks what the backend is built on. A newer one may have everything: what
    differs between releases is looked for, not read off the version.
    """
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is None:
        raise MpoptError(f"cannot read the version of PyTorch: {version!r}")
    release = (int(found[1]), int(found[2]))
    if release < FIRST:
        raise MpoptError(
            f"mpopt works with PyTorch {known()}, and this is {version}; "
            f"install it with pip install '{requirement()}'"
        )
    if release > LAST:
        log.get_logger("backend").warning(
            "PyTorch %s is newer than what mpopt was tested with, %s", version, known()
        )


def known() -> str:
    """The range in words, as "2.11 to 2.15"."""
    return f"{FIRST[0]}.{FIRST[1]} to {LAST[0]}.{LAST[1]}"


def requirement() -> str:
    """The range as pip has it."""
    return f"torch>={FIRST[0]}.{FIRST[1]},<{LAST[0]}.{LAST[1] + 1}"
