"""House rules that no other linter knows, for every text file of the project.

- a to-do names an issue: `TODO(#12): ...`;
- no absolute path of somebody's machine;
- no tabs, no blanks at a line's end, a newline at the file's end;
- no monster files (see LIMITS);
- every source file opens with what it is for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from sources import ROOT, project_files

# Lines a file may have, by suffix; tests of passes must stay readable in one sitting.
LIMITS = {".cpp": 600, ".h": 600, ".py": 600, ".td": 300, ".mlir": 250, ".sh": 300}
COMMENT_STARTS: dict[str, str | tuple[str, ...]] = {
    ".cpp": "//",
    ".h": "//",
    ".td": "//",
    ".def": "//",
    ".py": ('"""', "#", 'r"""'),
    ".pyi": ('"""', "#"),
    ".cmake": "#",
    ".sh": "#",
}
TODO = re.compile(r"\b(?:TODO|FIXME|XXX)\b(?!\(#\d+\))")
MACHINE_PATH = re.compile(r"(?<![\w.$}/~-])/(?:work|tmp|home|root|Users)/\w")
NOT_OURS = frozenset({Path("LICENSE")})
THIS = Path(__file__).resolve().relative_to(ROOT)


def _line_faults(path: Path, lines: list[str]) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        where = f"{path}:{number}: error: "
        if "\t" in line:
            yield where + "tab"
        if line != line.rstrip():
            yield where + "blanks at the end of the line"
        if MACHINE_PATH.search(line):
            yield where + "absolute path of one machine"
        if path != THIS and TODO.search(line):
            yield where + "to-do without an issue; write TODO(#NUMBER)"


def faults(path: Path, text: str) -> Iterator[str]:
    """Yields a message for each rule that the file breaks."""
    lines = text.split("\n")
    yield from _line_faults(path, lines)
    if text and not text.endswith("\n"):
        yield f"{path}:{len(lines)}: error: no newline at the end of the file"
    limit = LIMITS.get(path.suffix)
    if limit is not None and len(lines) - 1 > limit:
        yield f"{path}:1: error: {len(lines) - 1} lines, at most {limit} are allowed; split it"
    start = COMMENT_STARTS.get(path.suffix)
    if start is not None and text and not text.startswith(start):
        yield f"{path}:1: error: no purpose line; open with a comment that says what it is for"


def check() -> list[str]:
    """Returns the messages for all text files of the project."""
    found: list[str] = []
    for path in project_files():
        data = (ROOT / path).read_bytes()
        if path not in NOT_OURS and b"\0" not in data:
            found += faults(path, data.decode(errors="replace"))
    return found
