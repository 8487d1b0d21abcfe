"""From PTX to a cubin, with what is at hand.

In this order, unless MPOPT_PTXAS names one: nvJitLink, which PyTorch's wheel for CUDA brings,
in this process; the assembler inside of triton; that of a CUDA toolkit; and if there is none,
the driver, which compiles PTX whenever a process loads it. Cubins are kept on disk.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from . import log
from .errors import MpoptError, OptionError, did_you_mean
from .kernel_cache import KernelCache

VARIABLE = "MPOPT_PTXAS"
_PTX_INPUT = 2  # NVJITLINK_INPUT_PTX
_BLACKWELL = 100


class UnavailableError(Exception):
    """There is no such assembler here."""


def assemble(ptx: str, chip: str) -> bytes:
    """What the driver loads for `chip`, such as "sm_90a": a cubin, or the PTX itself.

    Raises MpoptError if the assembler that MPOPT_PTXAS names is missing or refuses the text,
    OptionError if it names none.
    """
    named = os.environ.get(VARIABLE, "")
    if named:
        return _with(named, ptx, chip)
    reasons = []
    for name in ASSEMBLERS:
        try:
            return _with(name, ptx, chip)
        except MpoptError as error:
            reasons.append(str(error))
    log.counters["fallbacks.assembler"] += 1
    log.get_logger("backend").info("the driver assembles a kernel: %s", "; ".join(reasons))
    return _for_driver(ptx)


def _with(name: str, ptx: str, chip: str) -> bytes:
    if name == "driver":
        return _for_driver(ptx)
    try:
        identity, run = _assembler(name, chip)
    except UnavailableError as error:
        raise MpoptError(f"{name}: {error}") from None
    key = hashlib.sha256("\n".join((identity, chip, ptx)).encode()).hexdigest()
    cache = KernelCache("cubin")
    cubin = cache.get(key)
    if cubin is None:
        cubin = run(ptx, chip)
        cache.put(key, cubin)
    return cubin


def _for_driver(ptx: str) -> bytes:
    return ptx.encode() + b"\0"


Run = Callable[[str, str], bytes]


def _assembler(name: str, chip: str) -> tuple[str, Run]:
    """Its identity, which differs when its output may, and how to run it."""
    if name in ASSEMBLERS:
        return ASSEMBLERS[name](chip)
    if os.sep in name:
        if not os.access(name, os.X_OK):
            raise MpoptError(f"{VARIABLE}: {name!r} is no program")
        return _program(name)
    raise OptionError(f"{VARIABLE}={name!r}{did_you_mean(name, [*ASSEMBLERS, 'driver'])}")


# --- ptxas ------------------------------------------------------------------------


def _program(path: str) -> tuple[str, Run]:
    return _version(path), functools.partial(_run_ptxas, path)


@functools.cache
def _version(path: str) -> str:
    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    return done.stdout


def _run_ptxas(path: str, ptx: str, chip: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="mpopt-ptx-") as folder:
        source, target = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(ptx)
        command = [path, f"-arch={chip}", "-o", str(target), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise MpoptError(f"{path} refuses a kernel for {chip}: {_first_lines(done.stderr)}")
        return target.read_bytes()


def _first_lines(text: str) -> str:
    return "\n".join(text.strip().splitlines()[:5])


def _triton(chip: str) -> tuple[str, Run]:
    names = ["ptxas-blackwell", "ptxas"] if _number(chip) >= _BLACKWELL else ["ptxas"]
    for folder in _package_folders("triton"):
        for name in names:
            path = folder / "backends/nvidia/bin" / name
            if path.is_file():
                return _program(str(path))
    raise UnavailableError("there is no triton with an assembler")


def _toolkit(chip: str) -> tuple[str, Run]:
    del chip
    folders = [os.environ.get(name, "") for name in ("CUDA_HOME", "CUDA_PATH")]
    candidates = [Path(folder) / "bin/ptxas" for folder in folders if folder]
    on_path = shutil.which("ptxas")
    candidates += [Path(on_path)] if on_path else []
    for path in (*candidates, Path("/usr/local/cuda/bin/ptxas")):
        if path.is_file():
            return _program(str(path))
    raise UnavailableError("there is no CUDA toolkit; set CUDA_HOME")


def _number(chip: str) -> int:
    digits = re.search(r"\d+", chip)
    return int(digits[0]) if digits else 0


def _package_folders(name: str) -> list[Path]:
    """Where a package lies, without importing it."""
    spec = importlib.util.find_spec(name)
    return [Path(folder) for folder in (spec.submodule_search_locations or ())] if spec else []


def libdevice_places() -> list[str]:
    """Folders that may hold libdevice: that of triton. Those of a toolkit are known anyway."""
    return [str(folder / "backends/nvidia/lib") for folder in _package_folders("triton")]


# --- nvJitLink --------------------------------------------------------------------


def _nvjitlink(chip: str) -> tuple[str, Run]:
    del chip
    library = _Linker.find()
    return library.identity, library.run


class _Linker:
    """libnvJitLink through ctypes. Its functions carry its version in their names."""

    def __init__(self, path: str) -> None:
        self.library = ctypes.CDLL(path)
        self.suffix = self._find_suffix()
        self.identity = f"nvjitlink {self.suffix} {os.path.getsize(path)}"

    @staticmethod
    @functools.cache
    def find() -> _Linker:
        """The one of this process, of PyTorch's wheel, or none: raises UnavailableError."""
        for path in (*_mapped("libnvJitLink"), *_in_wheels("libnvJitLink.so.*")):
            try:
                return _Linker(path)
            except (OSError, AttributeError):
                continue
        raise UnavailableError("there is no libnvJitLink; PyTorch's wheels for CUDA bring it")

    def _find_suffix(self) -> str:
        for major in (14, 13, 12):
            for minor in reversed(range(10)):
                if hasattr(self.library, f"__nvJitLinkCreate_{major}_{minor}"):
                    return f"_{major}_{minor}"
        raise AttributeError("no version of nvJitLinkCreate")

    def call(self, name: str, *arguments: Any) -> int:
        return int(getattr(self.library, f"__nvJitLink{name}{self.suffix}")(*arguments))

    def run(self, ptx: str, chip: str) -> bytes:
        """The cubin of a text. Raises MpoptError with the linker's words."""
        options = (ctypes.c_char_p * 1)(f"-arch={chip}".encode())
        handle = ctypes.c_void_p()
        if self.call("Create", ctypes.byref(handle), ctypes.c_uint32(1), options):
            raise MpoptError(f"nvJitLink knows no {chip}")
        try:
            return self._link(handle, ptx, chip)
        finally:
            self.call("Destroy", ctypes.byref(handle))

    def _link(self, handle: ctypes.c_void_p, ptx: str, chip: str) -> bytes:
        data = ptx.encode()
        size = ctypes.c_size_t(len(data))
        failed = self.call("AddData", handle, _PTX_INPUT, data, size, b"kernel")
        if failed or self.call("Complete", handle):
            said = self._buffer(handle, "ErrorLog").decode(errors="replace")
            raise MpoptError(f"nvJitLink refuses a kernel for {chip}: {_first_lines(said)}")
        return self._buffer(handle, "LinkedCubin")

    def _buffer(self, handle: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self.call(f"Get{what}Size", handle, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self.call(f"Get{what}", handle, buffer)
        return buffer.raw[: size.value]


def _mapped(name: str) -> list[str]:
    """Libraries of that name that this process has loaded."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return []
    paths = {line.split(maxsplit=5)[-1] for line in lines if name in line}
    return sorted(paths)


def _in_wheels(pattern: str) -> Iterable[str]:
    """Libraries that NVIDIA's Python packages hold, newest first."""
    found = [p for folder in _package_folders("nvidia") for p in folder.glob(f"*/lib/{pattern}")]
    return sorted(map(str, found), reverse=True)


ASSEMBLERS: dict[str, Callable[[str], tuple[str, Run]]] = {
    "nvjitlink": _nvjitlink,
    "triton": _triton,
    "toolkit": _toolkit,
}
"""In the order in which they are tried."""
