"""Starts a new pass: source, Passes.td entry, CMake line, lit test and example.

Usage: new_pass.py NAME "SUMMARY", such as SinkCasts "Move a cast to its readers".
The result builds, and its test passes, before the first line of it is written.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NoReturn

from sources import ROOT

TEMPLATES = Path(__file__).resolve().parent / "templates"
NAME = re.compile(r"^[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)*$")
TD_END = "#endif // MP_PASSES_TD"
CMAKE_LIST = re.compile(r"(mpopt_library\(MPPasses\n)((?:  [\w/]+\.cpp\n)+)")


def fail(reason: str) -> NoReturn:
    """Ends the program with one error line."""
    sys.exit(f"new-pass: error: {reason}")


def check_arguments(name: str, summary: str) -> None:
    """Ends the program unless the name and the summary follow the house style."""
    if not NAME.match(name) or name.endswith("Pass"):
        fail(f"NAME must be CamelCase without the suffix Pass, such as SinkCasts, not '{name}'")
    if not summary[:1].isupper() or summary.endswith(".") or '"' in summary:
        fail("SUMMARY must start with a capital and have no period at the end and no quote")
    if len(summary.split()) > 8:
        fail(f"SUMMARY has {len(summary.split())} words, at most 8 are allowed")


def fill(template: str, names: dict[str, str]) -> str:
    """Returns the template's text with each @key@ replaced."""
    text = (TEMPLATES / f"{template}.in").read_text()
    return re.sub(r"@(\w+)@", lambda found: names[found[1]], text)


def with_td_entry(entry: str) -> str:
    """Returns Passes.td with the entry at its end."""
    text = (ROOT / "passes/Passes.td").read_text()
    if text.count(TD_END) != 1:
        fail(f"passes/Passes.td has no line '{TD_END}' to insert before")
    return text.replace(TD_END, entry + TD_END)


def with_cmake_line(file: str) -> str:
    """Returns passes/CMakeLists.txt with the source in its sorted place."""
    text = (ROOT / "passes/CMakeLists.txt").read_text()
    found = CMAKE_LIST.search(text)
    if found is None:
        fail("passes/CMakeLists.txt has no list of sources after mpopt_library(MPPasses")
    lines = [*found[2].splitlines(), f"  {file}"]
    lines.sort(key=lambda line: ("/" not in line, line))  # folders first, as it is
    return text[: found.start(2)] + "\n".join(lines) + "\n" + text[found.end(2) :]


def main() -> None:
    """Writes the files of the pass that the arguments name."""
    if len(sys.argv) != 3:
        fail('usage: tools/dev.sh new-pass NAME "SUMMARY"')
    name, summary = sys.argv[1:]
    check_arguments(name, summary)
    stem = re.sub(r"(?<!^)(?=[A-Z])", "-", name).lower()
    arg = f"mp-{stem}"
    rule = "-" * max(3, 80 - len(f"//===- {name}.cpp - {arg} ===//"))
    names = {"File": name, "DEF": name.upper(), "stem": stem, "arg": arg, "rule": rule}
    names["summary"] = summary
    new = {
        ROOT / f"passes/{name}.cpp": fill("Pass.cpp", names),
        ROOT / f"test/Passes/{stem}.mlir": fill("test.mlir", names),
        ROOT / f"test/Passes/Examples/{stem}.mlir": fill("example.mlir", names),
    }
    for path in new:
        if path.exists():
            fail(f"{path.relative_to(ROOT)} exists")
    changed = {
        ROOT / "passes/Passes.td": with_td_entry(fill("Pass.td", names)),
        ROOT / "passes/CMakeLists.txt": with_cmake_line(f"{name}.cpp"),
    }
    for path, text in {**new, **changed}.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        print(f"{'wrote' if path in new else 'changed'} {path.relative_to(ROOT)}")
    print(
        f"Next: write the description in passes/Passes.td, the rewrite in passes/{name}.cpp,\n"
        f"a positive per shape and a negative per guard in test/Passes/{stem}.mlir; add the pass\n"
        "to a pipeline in passes/Pipelines.cpp with the reason for its place, and to its test;\n"
        "then tools/dev.sh test and tools/dev.sh docs."
    )


if __name__ == "__main__":
    main()
