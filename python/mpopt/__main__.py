"""The commands of the program `mpopt` that need PyTorch: `python -m mpopt COMMAND`."""

from __future__ import annotations

import sys

from .commands import main

if __name__ == "__main__":
    sys.exit(main())
