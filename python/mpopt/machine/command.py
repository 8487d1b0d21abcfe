"""Measure this machine and write its cost model."""

from __future__ import annotations

import argparse

from ..commands import BAD_INPUT


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `mpopt calibrate`."""
    parser.add_argument("--out", metavar="FILE", help="where to write it (default stdout)")


def run(arguments: argparse.Namespace) -> int:
    """Measure, write, and return the exit code."""
    return BAD_INPUT
