"""Runs a script as `python SCRIPT ...` would, with fixed seeds: `python -m mpopt.bisect.child`."""

from __future__ import annotations

import importlib.util
import random
import runpy
import sys
from pathlib import Path


def main() -> None:
    """The words after the script are the script's own."""
    sys.argv = sys.argv[1:]
    script = sys.argv[0]
    sys.path[0] = str(Path(script).resolve().parent)
    random.seed(0)
    if importlib.util.find_spec("torch") is not None:
        import torch

        torch.manual_seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
