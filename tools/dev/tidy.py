"""clang-tidy over the project's C++ files, each content only once.

A file that was clean is not looked at again until the file itself, a header of
ours that it includes, its compile command, the configuration or clang-tidy
changes. The compile commands carry the build's precompiled header, which
clang-tidy of the same LLVM release can read: parsing MLIR's headers would
otherwise take most of the time.
"""

from __future__ import annotations

import hashlib
import json
import shlex
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from sources import ROOT, project_files

PROGRAM = "clang-tidy-22"


@dataclass(frozen=True)
class Unit:
    """One translation unit: its source, what it is compiled with, its digest."""

    source: Path
    digest: str


def _dependencies(build: Path) -> dict[str, list[str]]:
    """Returns, per object file, what ninja recorded that it was made from."""
    done = subprocess.run(
        ["ninja", "-C", str(build), "-t", "deps"], capture_output=True, check=True, text=True
    )
    table: dict[str, list[str]] = {}
    current: list[str] = []
    for line in done.stdout.splitlines():
        if line.startswith(" "):
            current.append(line.strip())
        elif ": #deps" in line:
            current = table.setdefault(line.split(": #deps", 1)[0], [])
    return table


def _object_of(command: str) -> str:
    """Returns the object file of a compile command; CMake 3.25 gives it only there."""
    words = shlex.split(command)
    return words[words.index("-o") + 1]


class Digests:
    """Content digests of files, each read once."""

    def __init__(self, build: Path) -> None:
        self._build = build
        self._known: dict[Path, bytes] = {}

    def of(self, name: str) -> bytes:
        """Returns the digest of a file named relative to the build folder."""
        path = (self._build / name).resolve()
        if path not in self._known:
            data = path.read_bytes() if path.is_file() else b""
            self._known[path] = hashlib.sha256(data).digest()
        return self._known[path]


def units(build: Path) -> list[Unit]:
    """Returns the units of our own sources that the build compiles."""
    version = subprocess.run([PROGRAM, "--version"], capture_output=True, check=True).stdout
    settings = (ROOT / ".clang-tidy").read_bytes()
    ours = {str(ROOT / path) for path in project_files(".cpp")}
    made_from = _dependencies(build)
    digests = Digests(build)
    found = []
    for entry in json.loads((build / "compile_commands.json").read_text()):
        if entry["file"] not in ours:
            continue
        digest = hashlib.sha256(version + settings + entry["command"].encode())
        digest.update(digests.of(entry["file"]))
        for name in sorted(made_from.get(_object_of(entry["command"]), [])):
            # System headers change with the compiler's version only.
            if not name.startswith("/usr/") and not name.endswith(".pch"):
                digest.update(digests.of(name))
        found.append(Unit(Path(entry["file"]).relative_to(ROOT), digest.hexdigest()))
    return found


def _tidy(build: Path, unit: Unit) -> str:
    """Returns what clang-tidy has to say about the unit; empty if it is clean."""
    done = subprocess.run(
        [PROGRAM, "--quiet", "-p", str(build), str(unit.source)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if done.returncode == 0:
        return ""
    return done.stdout or done.stderr


def check(build: Path, jobs: int) -> list[str]:
    """Runs clang-tidy where it is needed and returns its messages."""
    if shutil.which(PROGRAM) is None:
        return [f"{PROGRAM} is not installed; tools/dev.sh setup installs it"]
    cache = ROOT / "build" / "tidy-cache"
    cache.mkdir(parents=True, exist_ok=True)
    current = units(build)
    names = {unit.digest for unit in current}
    for old in cache.iterdir():
        if old.name not in names:
            old.unlink()
    stale = [unit for unit in current if not (cache / unit.digest).exists()]
    print(f"   clang-tidy: {len(current)} files, {len(stale)} new or changed", flush=True)
    messages = []
    with ThreadPoolExecutor(jobs) as pool:
        for unit, text in zip(stale, pool.map(lambda unit: _tidy(build, unit), stale), strict=True):
            if text:
                messages.append(text.rstrip())
            else:
                (cache / unit.digest).touch()
    return messages
