"""One folder per graph with every stage in order: the bundle that `mpopt` reads.

index.md
000_joint/00_import.mlir   the graph as traced
          NN_<pass>.mlir   after each pass
          after.mlir       what went back to PyTorch
          rewrites.json    what passes did and did not do, with reasons
          meta.json        versions, options, autocast state
"""

from __future__ import annotations

import json
import os
import re
import threading
from pathlib import Path
from typing import Any

_lock = threading.Lock()
_NUMBERED = re.compile(r"(\d+)_")


class Bundle:
    """A new folder `NNN_<name>` in `root`, which is made if need be."""

    def __init__(self, root: str | os.PathLike[str], name: str) -> None:
        self.root = Path(root)
        with _lock:
            self.root.mkdir(parents=True, exist_ok=True)
            self.path = self._claim(name)
        self.stages: list[str] = []

    def _claim(self, name: str) -> Path:
        """Another process may dump into the same folder, so a taken number is no error."""
        numbers = [int(m.group(1)) for m in map(_NUMBERED.match, os.listdir(self.root)) if m]
        number = max(numbers, default=-1) + 1
        while True:
            path = self.root / f"{number:03d}_{name}"
            try:
                path.mkdir()
                return path
            except FileExistsError:
                number += 1

    def stage(self, name: str, text: str) -> None:
        """Write the module after a stage."""
        file = f"{len(self.stages):02d}_{_slug(name)}.mlir"
        (self.path / file).write_text(text)
        self.stages.append(file)

    def finish(
        self, after: str, rewrites: list[dict[str, Any]], meta: dict[str, Any], status: str
    ) -> None:
        """Write the result and add the graph to the index."""
        (self.path / "after.mlir").write_text(after)
        write_json(self.path / "rewrites.json", rewrites)
        write_json(self.path / "meta.json", {**meta, "status": status, "stages": self.stages})
        self._index(rewrites, meta, status)

    def _index(self, rewrites: list[dict[str, Any]], meta: dict[str, Any], status: str) -> None:
        applied = sum(entry.get("status") == "applied" for entry in rewrites)
        missed = len(rewrites) - applied
        link = f"[{self.path.name}]({self.path.name}/)"
        row = f"| {link} | {meta.get('nodes', '')} | {applied} | {missed} | {status} |\n"
        index = self.root / "index.md"
        with _lock, open(index, "a") as file:
            if file.tell() == 0:
                file.write("# Graphs\n\n| graph | nodes | applied | missed | status |\n")
                file.write("|---|---|---|---|---|\n")
            file.write(row)


def _slug(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]+", "-", name.partition("{")[0]).strip("-") or "pass"


def write_json(path: Path, value: Any) -> None:
    """Write `value` for people and programs: indented, keys as given."""
    path.write_text(json.dumps(value, indent=1) + "\n")
