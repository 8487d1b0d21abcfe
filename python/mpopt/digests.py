"""Hashes of what decides about code, for the keys of caches."""

from __future__ import annotations

import hashlib
import os


def file_digest(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file's content. Raises OSError if it cannot be read."""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


_BUILD_ID = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0"
"""Head of the note that a linker writes near a file's start; 20 bytes of SHA-1 follow it."""


def library_file_digest(path: str | os.PathLike[str]) -> str:
    """Digest of a library's content: the linker's, or `file_digest` where it wrote none.

    Our code generator has tens of megabytes; to hash them takes longer than to load them.
    """
    with open(path, "rb") as file:
        head = file.read(4096)
    start = head.find(_BUILD_ID) + len(_BUILD_ID)
    if start < len(_BUILD_ID) or len(head) < start + 20:
        return file_digest(path)
    return head[start : start + 20].hex()
