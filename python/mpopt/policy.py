"""Policies: a TOML file, or a dictionary of the same form, that says which values stay as
they are and which are wanted in fp32 or half. `passes/docs/Policy.md` has the keys.

The compiler reads and checks the text; here it is found, hashed and handed over.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import os
from collections.abc import Mapping
from typing import Any

from . import native
from .errors import OptionError

FROM_DICTIONARY = "<policy>"
"""The name of a policy that was given as a dictionary."""


@dataclasses.dataclass(frozen=True)
class Policy:
    """A policy that was read without an error."""

    name: str
    text: str = dataclasses.field(repr=False)
    sha256: str
    level: str | None
    epsilon: float | None

    def as_dict(self) -> dict[str, str]:
        """What reports say of it. The text goes with the graph."""
        return {"file": self.name, "sha256": self.sha256}


def load(given: str | os.PathLike[str] | Mapping[str, Any]) -> Policy:
    """A policy from the path of a file, or from a dictionary. Raises OptionError."""
    if isinstance(given, Mapping):
        return read(_toml(given), FROM_DICTIONARY)
    path = os.fspath(given)
    try:
        with open(path, encoding="utf-8", newline="") as file:
            text = file.read()
    except OSError as error:
        raise OptionError(f"{path}: cannot read the policy: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise OptionError(f"{path}: the policy is not UTF-8: {error.reason}") from error
    return read(text, path)


@functools.lru_cache(maxsize=64)
def read(text: str, name: str) -> Policy:
    """The policy of a TOML text. Raises OptionError naming line, column and key."""
    try:
        found = native.load().read_policy(text, name)
    except ValueError as error:
        raise OptionError(f"policy {error}") from None
    return Policy(name, text, found["sha256"], found["level"], found["epsilon"])


def _toml(table: Mapping[str, Any]) -> str:
    """`table` as TOML: plain values first, for what follows a header belongs to it."""
    lines = [f"{_key(k)} = {_value(v, k)}" for k, v in table.items() if not _is_table(v)]
    for key, value in table.items():
        if isinstance(value, Mapping):
            lines += [f"[{_key(key)}]", *_rows(value)]
        elif _is_table(value):
            for row in value:
                lines += [f"[[{_key(key)}]]", *_rows(row)]
    return "".join(line + "\n" for line in lines)


def _is_table(value: Any) -> bool:
    """True for a table, or a list of tables."""
    if isinstance(value, Mapping):
        return True
    rows = isinstance(value, list | tuple) and len(value) > 0
    return rows and all(isinstance(row, Mapping) for row in value)


def _rows(table: Mapping[str, Any]) -> list[str]:
    return [f"{_key(k)} = {_value(v, k)}" for k, v in table.items()]


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise OptionError(f"policy {FROM_DICTIONARY}: the key {key!r} is no text")
    return _quoted(key)


def _quoted(text: str) -> str:
    """JSON's escapes are TOML's, but for DEL, which TOML wants escaped."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


def _value(value: Any, key: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else str(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(item, key) for item in value) + "]"
    raise OptionError(f"policy {FROM_DICTIONARY}: {key!r} cannot be {value!r}")
