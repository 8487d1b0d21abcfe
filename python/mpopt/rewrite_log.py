"""The rewrites of this process, counted over all graphs, and a file that lists them.

The option `bisect_limit` counts by these numbers: the first rewrite of the first graph is 1.
The file, `MPOPT_REWRITE_LOG`, gets a JSON object per line and rewrite: `number`, `process`,
`graph`, `pass`, `rule`, `contract`, `module`, `op`, `node`, `fx`, `source` and `why`.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable
from typing import Any

_lock = threading.Lock()
_applied = 0
_is_listed = False


def left(limit: int) -> int:
    """How many more rewrites this process may apply."""
    return max(0, limit - _applied)


def add(entries: Iterable[dict[str, Any]], path: str) -> None:
    """Count rewrites in the order they were applied; list them in the file, "" for none.

    Raises OSError when the file cannot be written.
    """
    global _applied, _is_listed
    lines = []
    with _lock:
        for entry in entries:
            _applied += 1
            lines.append(json.dumps({"number": _applied, "process": os.getpid(), **entry}) + "\n")
        if not path:
            return
        _is_listed = True
        # One write, so that several processes may share the file.
        with open(path, "a") as file:
            file.write("".join(lines))


def reset() -> None:
    """Count from 1 again. Numbers in a file go on, so that each names one rewrite."""
    global _applied
    if not _is_listed:
        _applied = 0
