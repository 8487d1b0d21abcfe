"""All checks of `tools/dev.sh lint`, in one report.

Each step prints its name and time, then its findings; the exit status is 1 if any
step found something. `--fix` lets clang-format and ruff repair what they can first.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import house_rules
import tidy
from sources import ROOT, project_files

Step = Callable[[], list[str]]


def _run(*command: str) -> list[str]:
    """Returns the output of a command that fails, nothing if it succeeds."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode == 0:
        return []
    return [(done.stdout + done.stderr).rstrip() or f"{command[0]} exited {done.returncode}"]


def _module(*command: str) -> list[str]:
    return _run(sys.executable, "-m", *command)


def _clang_format(*flags: str) -> list[str]:
    files = [str(path) for path in project_files(".cpp", ".h")]
    return _run("clang-format-22", *flags, *files) if files else []


def _clang_format_check() -> list[str]:
    """Returns one line per file that needs formatting, not one per line of it."""
    text = "\n".join(_clang_format("--dry-run", "-Werror"))
    bad = sorted(set(re.findall(r"^([^\s:]+):\d+:\d+: error", text, re.MULTILINE)))
    if text and not bad:
        return [text]
    return [f"{name}: not formatted; tools/dev.sh lint --fix does it" for name in bad]


def _mypy_tools() -> list[str]:
    # For the running Python only: below 3.11 these need a package that others lack.
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    files = [str(path) for path in project_files(".py") if path.parts[0] == "tools"]
    return _module("mypy", "--python-version", version, *files)


def _shell_syntax() -> list[str]:
    scripts = [*map(str, project_files(".sh")), ".ci/run"]
    return [line for script in scripts for line in _run("bash", "-n", script)]


def _steps(build: Path, jobs: int) -> dict[str, Step]:
    return {
        "house rules": house_rules.check,
        "shell syntax": _shell_syntax,
        "clang-format": _clang_format_check,
        "ruff check": lambda: _module("ruff", "check", "--quiet", "--output-format", "concise"),
        "ruff format": lambda: _module("ruff", "format", "--check", "--quiet"),
        "mypy --strict": lambda: _module("mypy"),
        "mypy --strict (tools)": _mypy_tools,
        "clang-tidy": lambda: tidy.check(build, jobs),
    }


def main() -> int:
    """Runs the steps; returns the exit status."""
    parser = argparse.ArgumentParser(prog="tools/dev.sh lint", description=__doc__)
    parser.add_argument("--build", type=Path, required=True, help="build folder")
    parser.add_argument("--jobs", type=int, default=1, help="parallel clang-tidy processes")
    parser.add_argument("--no-tidy", action="store_true", help="leave clang-tidy out")
    parser.add_argument("--fix", action="store_true", help="repair formatting first")
    arguments = parser.parse_args()
    if arguments.fix:
        _clang_format("-i")
        _module("ruff", "check", "--quiet", "--fix")
        _module("ruff", "format", "--quiet")
    steps = _steps((ROOT / arguments.build).resolve(), arguments.jobs)
    if arguments.no_tidy:
        del steps["clang-tidy"]
    bad = 0
    for name, step in steps.items():
        start = time.monotonic()
        findings = step()
        state = "FAILED" if findings else "ok"
        print(f"   {name}: {state} ({time.monotonic() - start:.1f} s)", flush=True)
        for finding in findings:
            print(finding, flush=True)
        bad += bool(findings)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
