"""Which files of the working tree are the project's own."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SKIPPED_FOLDERS = frozenset({".git", ".venv", "build", "dist", "__pycache__"})


def _git_files() -> list[str] | None:
    """Returns the tracked and the new, not ignored files; None without git."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return [name for name in done.stdout.split("\0") if name]


def project_files(*suffixes: str) -> list[Path]:
    """Returns the project's files, sorted, relative to the root.

    With suffixes (".cpp", ...), only the files that end so. In an unpacked archive,
    where git knows nothing, all files outside build folders count.
    """
    names = _git_files()
    if names is None:
        paths = [path.relative_to(ROOT) for path in ROOT.rglob("*")]
        paths = [path for path in paths if SKIPPED_FOLDERS.isdisjoint(path.parts)]
    else:
        paths = [Path(name) for name in names]
    return sorted(
        path
        for path in paths
        if (not suffixes or path.suffix in suffixes) and (ROOT / path).is_file()
    )
