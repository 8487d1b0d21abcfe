"""Checks the wheel in a folder: contents, libraries, and use in an environment of its own.

Usage: check_wheel.py FOLDER, with the development environment's interpreter, whose
torch the other environment borrows. Exits with 1 at the first thing that is wrong.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tempfile
import venv
import zipfile
from pathlib import Path

PROBES = Path(__file__).with_name("wheel_probe.py")
WANTED = [
    r"mpopt/_mpopt\.[\w-]+\.so",
    r"mpopt/_mpopt\.pyi",
    r"mpopt/_mpopt_torch\.so",
    r"mpopt/_codegen\.[\w-]+\.so",
    r"mpopt/_codegen\.pyi",
    r"mpopt/py\.typed",
    r"mpopt/backend\.py",
    r"mpopt-[\d.]+\.data/scripts/mpopt",
    r"mpopt-[\d.]+\.dist-info/entry_points\.txt",
    r"mpopt-[\d.]+\.dist-info/licenses/LICENSE",
]
UNWANTED = r"(^|/)__pycache__/|^(?!mpopt/|mpopt-[\d.]+\.(data|dist-info)/)"
MOST_BYTES = 45_000_000
"""More than LLVM needs today: whoever links another part of it shall see it here."""

# Libraries that the machine, or PyTorch, has; LLVM is no such.
NEEDED = r"(ld-linux-[\w-]+|lib(c|m|dl|gcc_s|pthread|rt|stdc\+\+|torch_cpu|z|zstd))\.so[\d.]*"
SHOWN = r"PyInit__(mpopt|codegen)|mpopt[A-Z]\w+"

OURS = ["mpopt._mpopt", "mpopt._codegen", "operators"]
ORDERS = [
    ["torch", "triton", *OURS],
    [*OURS[:2], "torch", "triton", OURS[2]],
    ["triton", OURS[1], "torch", OURS[0], OURS[2]],
    ["global", "triton", "torch", *OURS],
    ["global", *OURS[:2], "triton", "torch", OURS[2]],
]


class WheelError(Exception):
    """Something is wrong with the wheel."""


def output_of(*command: str, folder: Path | None = None) -> str:
    """Returns a command's output; raises WheelError with it if the command fails.

    `folder` is where it runs and has its caches. Of ours, only what is installed is found.
    """
    ours = ("PYTHON", "MPOPT_", "TORCHINDUCTOR_")
    environment = {name: text for name, text in os.environ.items() if not name.startswith(ours)}
    if folder is not None:
        environment["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "cache")
        environment["MPOPT_STRICT"] = "1"
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)
    if done.returncode != 0:
        raise WheelError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def expect(pattern: str, text: str, what: str) -> None:
    """Raises WheelError unless the pattern is in the text."""
    if not re.search(pattern, text):
        raise WheelError(f"{what} prints no {pattern!r}:\n{text}")


def check_contents(names: list[str]) -> None:
    """Raises WheelError unless each wanted file is in the wheel exactly once."""
    for pattern in WANTED:
        found = [name for name in names if re.fullmatch(pattern, name)]
        if len(found) != 1:
            raise WheelError(f"expected one file like {pattern}, found {found}")
    if strange := [name for name in names if re.search(UNWANTED, name)]:
        raise WheelError(f"{strange[0]} and {len(strange) - 1} others are nothing for a wheel")


def check_binary(path: Path) -> None:
    """Raises WheelError if a file needs libraries that may be missing, or shows symbols."""
    dynamic = output_of("readelf", "-d", str(path))
    for name in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
        if not re.fullmatch(NEEDED, name):
            raise WheelError(f"{path.name} needs {name}; link it statically")
    if folders := re.search(r"\((?:RPATH|RUNPATH)\).*", dynamic):
        raise WheelError(f"{path.name} looks for libraries in folders: {folders[0]}")
    table = output_of("nm", "-D", "--defined-only", str(path))
    symbols = [line.split()[-1] for line in table.splitlines()]
    shown = [name for name in symbols if not re.fullmatch(SHOWN, name)]
    if path.suffix == ".so" and shown:
        raise WheelError(f"{path.name} shows {len(shown)} symbols, such as {shown[0]}")
    if any("4llvm" in name or "4mlir" in name for name in shown):
        raise WheelError(f"{path.name} shows symbols of LLVM")


def install(wheel: Path, folder: Path) -> Path:
    """Installs the wheel alone into a new environment; returns the folder of its programs."""
    venv.create(folder, with_pip=True, symlinks=True)
    python = str(folder / "bin/python")
    output_of(python, "-m", "pip", "install", "-q", "--no-deps", "--no-index", str(wheel))
    return folder / "bin"


def lend_torch(folder: Path) -> None:
    """Lets an environment import the packages of the one that runs this."""
    site = next(folder.glob("lib/python*/site-packages"))
    # A path line, unlike a site folder, does not run the path files in it.
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")


def check_alone(programs: Path, work: Path) -> None:
    """Raises WheelError unless package and program work where there is no PyTorch."""
    output_of(str(programs / "python"), str(PROBES), "alone", folder=work)
    expect("(?i)usage", output_of(str(programs / "mpopt"), "--help", folder=work), "mpopt --help")


def check_with_torch(programs: Path, work: Path) -> None:
    """Raises WheelError unless backend, kernels, program and benchmark work with PyTorch."""

    def probe(*arguments: str) -> None:
        output_of(str(programs / "python"), str(PROBES), *arguments, folder=work)

    def mpopt(*arguments: str) -> str:
        return output_of(str(programs / "mpopt"), *arguments, folder=work)

    probe("backend")
    for order in ORDERS:
        probe("orders", *order)
    probe("model", "off")
    probe("model", "cpu", "dump")
    probe("no_triton")
    expect("autocast", mpopt("explain", "dump/000_joint"), "mpopt explain BUNDLE")
    expect("3 operations", mpopt("explain", "dump/model.pt2"), "mpopt explain model.pt2")
    expect("(?i)usage", mpopt("calibrate", "--help"), "mpopt calibrate --help")
    text = output_of(str(programs / "python"), "-m", "mpopt.bench", "--help", folder=work)
    expect("(?i)usage", text, "mpopt.bench --help")


def check(wheel: Path) -> None:
    """Runs all checks on the wheel."""
    size = wheel.stat().st_size
    if size > MOST_BYTES:
        raise WheelError(f"{wheel} has {size} bytes, more than {MOST_BYTES}")
    with tempfile.TemporaryDirectory() as temporary, zipfile.ZipFile(wheel) as archive:
        work = Path(temporary)
        check_contents(archive.namelist())
        archive.extractall(work / "content")
        for path in sorted((work / "content").rglob("*")):
            if path.is_file() and path.open("rb").read(4) == b"\x7fELF":
                check_binary(path)
                print(f"   {path.name}: {path.stat().st_size / 1e6:.1f} MB")
        programs = install(wheel, work / "venv")
        check_alone(programs, work)
        lend_torch(work / "venv")
        check_with_torch(programs, work)
    print(f"{wheel} is good ({size / 1e6:.1f} MB)")


if __name__ == "__main__":
    found = sorted(Path(sys.argv[1]).glob("mpopt-*.whl"))
    try:
        if len(found) != 1:
            raise WheelError(f"expected one wheel in {sys.argv[1]}, found {len(found)}")
        check(found[0])
    except WheelError as error:
        sys.exit(f"check_wheel: error: {error}")
