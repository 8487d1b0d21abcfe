"""Commands that are written in Python, in one table.

The program `mpopt` starts `python -m mpopt COMMAND` for the names in its own table,
`tools/mpopt/PythonCommands.def`, which lists the same ones. A command is a module with two
functions: `add_arguments(parser)` and `run(arguments)`, which returns the exit code. Only the
module of the command that is run is imported. An MpoptError becomes one line and exit code 2.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

from .errors import MpoptError, did_you_mean

OK, DIFFERENT, BAD_INPUT = 0, 1, 2
"""Exit codes, the same as the program's."""
_INTERRUPTED = 130


class Command(NamedTuple):
    """One row: what a user types, what `--help` says, and the module behind it."""

    name: str
    summary: str
    module: str


COMMANDS = (
    Command("bisect", "find the rewrite that moved a result", "mpopt.bisect.command"),
    Command("calibrate", "measure this machine and write its cost model", "mpopt.machine.command"),
)


class UsageError(MpoptError):
    """A bad command line; the text names the word and what to give instead."""


class _Parser(argparse.ArgumentParser):
    """Reports errors the way the rest of the program does."""

    def error(self, message: str) -> Any:
        raise UsageError(f"{self.prog}: {message}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that the first word names and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words or words[0] in ("-h", "--help"):
        print(_help())
        return OK if words else BAD_INPUT
    try:
        return _run(words[0], words[1:])
    except MpoptError as error:
        print(f"mpopt: error: {error}", file=sys.stderr)
        return BAD_INPUT
    except KeyboardInterrupt:
        return _INTERRUPTED


def _run(name: str, words: list[str]) -> int:
    rows = {command.name: command for command in COMMANDS}
    if name not in rows:
        raise UsageError(f"no command {name!r} is written in Python{did_you_mean(name, rows)}")
    module = importlib.import_module(rows[name].module)
    parser = _Parser(prog=f"mpopt {name}", description=module.__doc__, allow_abbrev=False)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    module.add_arguments(parser)
    arguments, unknown = parser.parse_known_args(words)
    if unknown:
        raise UsageError(f"mpopt {name}: unexpected {unknown[0]!r}{_near(parser, unknown[0])}")
    return int(module.run(arguments))


def _near(parser: argparse.ArgumentParser, word: str) -> str:
    """A hint for an option that no command has; none for a superfluous input."""
    if not word.startswith("-"):
        return ""
    names = [option for action in parser._actions for option in action.option_strings]
    return did_you_mean(word.partition("=")[0], names)


def _help() -> str:
    width = max(len(command.name) for command in COMMANDS)
    rows = [f"  {command.name:{width}}  {command.summary}" for command in COMMANDS]
    return "\n".join(["usage: mpopt COMMAND [options]", "", "commands in Python:", *rows])
