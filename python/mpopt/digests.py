"""Hashes of what decides about code, for the keys of caches."""

from __future__ import annotations

import hashlib
import os


def file_digest(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file's content. Raises OSError if it cannot be read."""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()
