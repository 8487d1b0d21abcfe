"""Checks the wheel in a folder: contents, symbols, and use in an empty environment.

Usage: check_wheel.py FOLDER, with the development environment's interpreter, whose
torch the empty environment borrows. Exits with 1 at the first thing that is wrong.
"""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import tempfile
import venv
import zipfile
from pathlib import Path

WANTED = [
    r"mpopt/_mpopt\.[\w-]+\.so",
    r"mpopt/_mpopt\.pyi",
    r"mpopt/_mpopt_torch\.so",
    r"mpopt/_codegen\.[\w-]+\.so",
    r"mpopt/py\.typed",
    r"mpopt/backend\.py",
    r"mpopt-[\d.]+\.data/scripts/mpopt",
    r"mpopt-[\d.]+\.dist-info/entry_points\.txt",
    r"mpopt-[\d.]+\.dist-info/licenses/LICENSE",
]
IMPORT_ORDERS = [
    "import mpopt._mpopt, torch, triton",
    "import torch, triton, mpopt._mpopt",
    "import triton, mpopt._mpopt, torch",
]
OPERATOR = "from mpopt import kernels, region_op; region_op.load(); kernels.codegen()"
BACKEND = """
import importlib.metadata as m, torch, mpopt, sys
assert {borrowed!r} not in mpopt.__file__ and "site-packages" in mpopt.__file__, mpopt.__file__
assert [e.value for e in m.entry_points(group="torch_dynamo_backends") if e.name == "mpopt"]
assert "mpopt" in torch._dynamo.list_backends(exclude_tags=())
"""


class WheelError(Exception):
    """Something is wrong with the wheel."""


def output_of(*command: str) -> str:
    """Returns a command's output; raises WheelError with it if the command fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise WheelError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def check_contents(names: list[str]) -> None:
    """Raises WheelError unless each wanted file is in the wheel exactly once."""
    for pattern in WANTED:
        found = [name for name in names if re.fullmatch(pattern, name)]
        if len(found) != 1:
            raise WheelError(f"expected one file like {pattern}, found {found}")


def check_binary(path: Path) -> None:
    """Raises WheelError if the file needs LLVM's libraries or shows its symbols."""
    needed = re.findall(
        r"NEEDED.*\[(lib(?:MLIR|LLVM)[^]]*)\]", output_of("readelf", "-d", str(path))
    )
    if needed:
        raise WheelError(f"{path.name} needs {needed}; link LLVM statically")
    symbols = output_of("nm", "-D", "--defined-only", "-C", str(path)).splitlines()
    shown = [line for line in symbols if re.search(r"\b(?:llvm|mlir)::", line)]
    if shown:
        raise WheelError(f"{path.name} exports {len(shown)} symbols of LLVM, such as {shown[0]}")


def check_use(wheel: Path, folder: Path) -> None:
    """Raises WheelError unless package and program work in an empty environment."""
    venv.create(folder, with_pip=True, symlinks=True)
    python = str(folder / "bin/python")
    output_of(python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", str(wheel))
    borrowed = sysconfig.get_path("purelib")
    site = next(folder.glob("lib/python*/site-packages"))
    # A path line, unlike a site folder, does not run the path files in it.
    (site / "borrowed.pth").write_text(borrowed + "\n")
    for order in IMPORT_ORDERS:
        output_of(python, "-c", order)
    output_of(python, "-c", OPERATOR)
    output_of(python, "-c", BACKEND.format(borrowed=borrowed))
    if "USAGE" not in (text := output_of(str(folder / "bin/mpopt"), "--help")).upper():
        raise WheelError(f"mpopt --help prints no usage:\n{text}")


def check(wheel: Path) -> None:
    """Runs all checks on the wheel."""
    with tempfile.TemporaryDirectory() as temporary, zipfile.ZipFile(wheel) as archive:
        check_contents(archive.namelist())
        archive.extractall(temporary)
        for path in Path(temporary).rglob("*"):
            if path.is_file() and path.open("rb").read(4) == b"\x7fELF":
                check_binary(path)
        check_use(wheel, Path(temporary) / "venv")
    print(f"{wheel} is good ({wheel.stat().st_size / 1e6:.1f} MB)")


if __name__ == "__main__":
    found = sorted(Path(sys.argv[1]).glob("mpopt-*.whl"))
    try:
        if len(found) != 1:
            raise WheelError(f"expected one wheel in {sys.argv[1]}, found {len(found)}")
        check(found[0])
    except WheelError as error:
        sys.exit(f"check_wheel: error: {error}")
