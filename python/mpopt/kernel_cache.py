"""Compiled kernels on disk, one file each, shared by all processes of a user.

MPOPT_KERNEL_CACHE names the folder; without it, it is beside Inductor's cache if that has a
folder of its own, else in the user's cache. A folder that cannot be written is no failure.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from . import log


def folder() -> Path:
    """Where kernels are kept."""
    named = os.environ.get("MPOPT_KERNEL_CACHE")
    if named:
        return Path(named)
    inductor = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    if inductor:
        return Path(inductor) / "mpopt"
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "mpopt"


class KernelCache:
    """The files of one kind, such as "cubin". Keys are digests."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def _path(self, key: str) -> Path:
        return folder() / self.kind / key[:2] / f"{key}.{self.kind}"

    def get(self, key: str) -> bytes | None:
        """What was put under `key`, None if nothing was."""
        try:
            data = self._path(key).read_bytes()
        except OSError:
            return None
        log.counters[f"{self.kind}_cache_hits"] += 1
        return data

    def put(self, key: str, data: bytes) -> None:
        """Keep `data`. Another process never sees a part of it."""
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent)
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            os.replace(name, path)
        except OSError as error:
            log.get_logger("backend").info("a kernel is not kept: %s", error)
            with contextlib.suppress(OSError, UnboundLocalError):
                os.unlink(name)
