"""Commands of the program `mpopt` that are written in Python."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from mpopt import commands
from mpopt.commands import BAD_INPUT, COMMANDS, OK, main
from mpopt.errors import MpoptError
from test_tool import find_tool

SOURCE = Path(__file__).resolve().parents[2] / "tools/mpopt"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--colour", choices=("red", "blue"))


def run(arguments: argparse.Namespace) -> int:
    if arguments.colour == "red":
        raise MpoptError("red is out; take blue")
    print("painted", arguments.colour)
    return OK


@pytest.fixture(autouse=True)
def _paint(monkeypatch):
    row = commands.Command("paint", "paint it", __name__)
    monkeypatch.setattr(commands, "COMMANDS", (*COMMANDS, row))


def test_a_row_runs(capsys):
    assert main(["paint", "--colour", "blue"]) == OK
    assert capsys.readouterr().out == "painted blue\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["pain"], "no command 'pain' is written in Python; did you mean 'paint'?"),
        (["paint", "--color=red"], "unexpected '--color=red'; did you mean '--colour'?"),
        (["paint", "wall"], "unexpected 'wall'"),
        (["paint", "--colour", "green"], "invalid choice: 'green'"),
        (["paint", "--colour", "red"], "red is out; take blue"),
    ],
)
def test_mistakes_are_one_line(capsys, words, message):
    assert main(words) == BAD_INPUT
    error = capsys.readouterr().err
    assert error.startswith("mpopt: error: ") and message in error and error.count("\n") == 1


def test_help_lists_all(capsys):
    assert main(["--help"]) == OK
    out = capsys.readouterr().out
    assert all(f"  {row.name} " in out and row.summary in out for row in commands.COMMANDS)
    assert main([]) == BAD_INPUT


def test_the_program_has_the_same_rows():
    rows = re.findall(
        r'^MP_PYTHON_COMMAND\("(\w+)",\s*"(.+)"\)',
        (SOURCE / "PythonCommands.def").read_text(),
        re.MULTILINE,
    )
    assert [name for name, _ in rows] == [row.name for row in COMMANDS]


def test_the_program_hands_over():
    import mpopt

    package = Path(mpopt.__file__).parents[1]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(package)}
    done = subprocess.run(
        [find_tool(), COMMANDS[0].name, "--nothing"],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
    )
    assert done.returncode == BAD_INPUT
    assert f"mpopt: error: mpopt {COMMANDS[0].name}: unexpected '--nothing'" in done.stderr
