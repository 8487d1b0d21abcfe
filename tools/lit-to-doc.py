#!/usr/bin/env python3
"""Shows the examples of a pass reference as they really run.

Reads Markdown (of `mlir-tblgen -gen-pass-doc`) from standard input. A line

    Example: test/Passes/Examples/eliminate-casts.mlir

becomes the test's command, its input without test directives, and what the built
`mpopt` prints for it. So the reference cannot show what the passes do not do.

Usage: lit-to-doc.py --bin build/dev/bin < Passes.md.in > Passes.md
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = re.compile(r"^Example: (\S+\.mlir)$", re.MULTILINE)
RUN = re.compile(r"^// RUN: (mpopt .*)$", re.MULTILINE)
DIRECTIVE = re.compile(r"^\s*// (RUN|[A-Z][A-Z0-9-]*)(-[A-Z]+)?:")
PURPOSE = re.compile(r"\A(?://[^\n]*\n)+\n*")


class ExampleError(Exception):
    """An example that cannot be shown; the text names its file."""


def command_of(path: str, text: str) -> list[str]:
    """Returns the mpopt command of the test's first RUN line, without its check.

    Raises ExampleError if the test has no RUN line that starts with mpopt.
    """
    joined = re.sub(r"\\\n// RUN: *", "", text)
    found = RUN.search(joined)
    if found is None:
        raise ExampleError(f"{path}: no line '// RUN: mpopt ...'")
    command = found[1].split("|", 1)[0]
    return shlex.split(command.replace("%s", path))


def source_of(text: str) -> str:
    """Returns the test's IR without RUN and CHECK lines and opening comment."""
    kept = [line for line in text.splitlines() if not DIRECTIVE.match(line)]
    return PURPOSE.sub("", "\n".join(kept).strip() + "\n").strip()


def show(path: str, programs: Path) -> str:
    """Returns the Markdown for one example: command, input, output.

    Raises ExampleError if the file is missing or its command fails.
    """
    if not (ROOT / path).is_file():
        raise ExampleError(f"{path}: no such file")
    text = (ROOT / path).read_text()
    command = command_of(path, text)
    done = subprocess.run(
        [str(programs / command[0]), *command[1:]], cwd=ROOT, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise ExampleError(f"{path}: '{shlex.join(command)}' failed:\n{done.stderr.rstrip()}")
    return "\n".join(
        [
            f"Example ([{path}](../../{path})):",
            f"\n```console\n{shlex.join(command)}\n```",
            f"\nInput:\n\n```mlir\n{source_of(text)}\n```",
            f"\nOutput:\n\n```mlir\n{done.stdout.strip()}\n```",
        ]
    )


def main() -> int:
    """Rewrites standard input to standard output; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--bin", type=Path, required=True, help="folder of the program mpopt")
    programs = parser.parse_args().bin.resolve()
    page = sys.stdin.read()
    errors: list[str] = []

    def replace(found: re.Match[str]) -> str:
        try:
            return show(found[1], programs)
        except ExampleError as error:
            errors.append(str(error))
            return found[0]

    sys.stdout.write(EXAMPLE.sub(replace, page))
    for error in errors:
        print(f"lit-to-doc: error: {error}", file=sys.stderr)
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
