"""Kernels by their text: compiled at most once per process, for the CPU or a GPU.

The launch path (`_mpopt_torch.so`) asks for a kernel that it has not seen; the code generator
(`_codegen`) makes it. This module knows both.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import threading
from collections.abc import Callable
from typing import Any

from . import kernel_cache, log, native
from .digests import library_file_digest
from .errors import MpoptError

CompileCpu = Callable[[str], int]
"""From a kernel's text to the address of a CpuKernel (runtime/Kernel.h)."""
CompileCuda = Callable[[str, int], None]
"""Compiles a kernel's text for a device and hands it to `load_cuda`."""

_lock = threading.Lock()
_native: Any = None


def connect(library: Any) -> None:
    """Tell the launch path, a `ctypes.CDLL`, whom to ask for kernels."""
    global _native
    library.mpoptError.restype = ctypes.c_char_p
    library.mpoptRegionCopies.restype = ctypes.c_int64
    library.mpoptLoadProgram.restype = ctypes.c_void_p
    library.mpoptSetCompilers(*_CALLBACKS)
    _native = library


def copies() -> int:
    """How many inputs the operator had to copy in this process: 0, but for a bug."""
    return int(_native.mpoptRegionCopies()) if _native is not None else 0


def prepare(text: str, device: str, index: int = 0) -> None:
    """Compile a kernel now. Raises MpoptError, with the reason, if that fails."""
    data = text.encode()
    if device == "cpu":
        done = _native.mpoptPrepareCpu(data, ctypes.c_size_t(len(data)))
    else:
        done = _native.mpoptPrepareCuda(data, ctypes.c_size_t(len(data)), index)
    if not done:
        raise MpoptError(_native.mpoptError().decode())


def launch_path() -> Any:
    """The library that `connect` was told of, loaded by the first call. Raises MpoptError."""
    if _native is None:
        from . import region_op

        region_op.load()
    return _native


@functools.cache
def codegen() -> Any:
    """The code generator. Raises MpoptError if it is missing or does not load."""
    return native.load_extension("_codegen")


@functools.cache
def digest() -> str:
    """Of the code generator, which is not loaded for it; "" without one."""
    found = importlib.util.find_spec("._codegen", __package__)
    return library_file_digest(found.origin) if found and found.origin else ""


def _compile_cpu(text: str) -> int:
    # Objects of another code generator are of no use to this one.
    folder = kernel_cache.folder() / "cpu" / digest()[:16]
    loaded = codegen().cpu_counters()["loaded"]
    address = int(codegen().compile_cpu(text, cache_directory=str(folder)))
    log.counters["cpu_cache_hits"] += codegen().cpu_counters()["loaded"] - loaded
    return address


def _compile_cuda(text: str, device: int) -> None:
    from . import cuda_kernels

    cuda_kernels.compile_for(_native, text, device)


compilers: dict[str, Any] = {"cpu": _compile_cpu, "cuda": _compile_cuda}
"""Who compiles for a device type. Tests put others here."""


def _on_cpu(address: int, length: int) -> int | None:
    return _guarded(lambda text: compilers["cpu"](text), address, length)


def _on_cuda(address: int, length: int, device: int) -> int:
    def compile_it(text: str) -> int:
        compilers["cuda"](text, device)
        return 1

    return _guarded(compile_it, address, length) or 0


def _guarded(compile_it: Callable[[str], int], address: int, length: int) -> int | None:
    """What a compiler returns; None with a reason if it raises."""
    text = ctypes.string_at(address, length).decode()
    try:
        with _lock:
            made = compile_it(text)
    except Exception as error:  # it may not leave this function, whose caller is C++
        _native.mpoptFail(f"cannot compile a kernel: {error}".encode())
        log.counters["kernels_failed"] += 1
        return None
    log.counters["kernels"] += 1
    return made


_CALLBACKS = (
    ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)(_on_cpu),
    ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)(_on_cuda),
)
