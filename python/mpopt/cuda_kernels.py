"""Kernels for a GPU: from the code generator's PTX to what the launch path has loaded."""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from . import assembler, kernels, log
from .errors import MpoptError


class _Extent(ctypes.Structure):
    """Extent of runtime/Kernel.h."""

    _fields_ = (("factor", ctypes.c_int64), ("size", ctypes.c_int32))


class _Map(ctypes.Structure):
    """TensorMap of runtime/Kernel.h."""

    _fields_ = (
        ("buffer", ctypes.c_int32),
        ("element", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("extents", _Extent * 3),
        ("box", ctypes.c_uint32 * 3),
    )


class _Grid(ctypes.Structure):
    """CudaGrid of runtime/Kernel.h."""

    _fields_ = (
        ("extent", ctypes.c_int64 * 3),
        ("factor", ctypes.c_int64 * 3),
        ("tile", ctypes.c_int64 * 3),
        ("flat", ctypes.c_bool),
        ("blocks_per_processor", ctypes.c_int32),
    )


class _Kernel(ctypes.Structure):
    """CudaKernel of runtime/Kernel.h."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("grid", _Grid),
        ("block", ctypes.c_uint32 * 3),
        ("dynamic_shared_bytes", ctypes.c_uint32),
        ("workspace_per_block", ctypes.c_int64),
        ("workspace_bytes", ctypes.c_int64),
        ("maps", ctypes.POINTER(_Map)),
        ("map_count", ctypes.c_int32),
    )


class _Image(ctypes.Structure):
    """CudaImage of runtime/CUDA/Program.h."""

    _fields_ = (("kernel", _Kernel), ("code", ctypes.c_char_p))


def compile_for(native: Any, text: str, device: int) -> None:
    """Compile a kernel's text for a device of this machine, and load it there.

    Raises MpoptError with what failed.
    """
    load(native, text, device, compile_text(text, chip_of(architecture(native, device))))


def compile_text(text: str, chip: str) -> Made:
    """The kernels of a text with their code for a chip. Raises what the code generator and
    the assembler raise.

    MPOPT_KERNEL_DUMP names a folder that gets all stages, from MLIR to the cubin.
    """
    places = assembler.libdevice_places()
    return _assembled(
        text, chip, lambda *dump: kernels.codegen().compile_cuda(text, chip, places, *dump)
    )


def compile_update(text: str, chip: str) -> Made:
    """The same for a kernel of the update, by its line (codegen/CUDA/Update/Text.h)."""
    return _assembled(
        text, chip, lambda *dump: kernels.codegen().compile_cuda_update(text, chip, *dump)
    )


def _assembled(text: str, chip: str, compile_it: Callable[..., Any]) -> Made:
    folder = os.environ.get("MPOPT_KERNEL_DUMP", "")
    name = hashlib.sha256(text.encode()).hexdigest()[:12] + f"-{chip}"
    made = compile_it(folder, name)
    for note in filter(None, (kernel.get("note") for kernel in made)):
        log.get_logger("backend").info("kernel %s: %s", name, note)
    result = [(kernel, assembler.assemble(kernel["ptx"], chip)) for kernel in made]
    for number, (_, code) in enumerate(result if folder else ()):
        (Path(folder) / f"{name}.{number}.cubin").write_bytes(code)
    return result


def architecture(native: Any, device: int) -> str:
    """Of a device, as "sm_90". Raises MpoptError if the driver cannot say."""
    name = ctypes.create_string_buffer(32)
    if not native.mpoptCudaArchitecture(device, name, ctypes.c_size_t(len(name))):
        raise MpoptError(native.mpoptError().decode())
    return name.value.decode()


def chip_of(found: str) -> str:
    """The chip of the code generator that suits an architecture best: its own with all
    that only it has ("sm_90a"), or itself, or the next lower one of its generation."""
    known: Sequence[str] = kernels.codegen().chips()
    for name in (found + "a", found):
        if name in known:
            return name
    number = int(found.removeprefix("sm_"))
    lower = [int(n[3:]) for n in known if n[3:].isdigit() and int(n[3:]) <= number]
    suitable = [n for n in lower if n // 10 == number // 10] or lower
    if not suitable:
        raise MpoptError(f"no kernels for {found}; known: {', '.join(known)}")
    return f"sm_{max(suitable)}"


Made = Sequence[tuple[Mapping[str, Any], bytes]]
"""Kernels with their code."""


def load(native: Any, text: str, device: int, made: Made) -> None:
    """Hand the kernels of a text, with their code, to the launch path."""
    images = _images(made)
    data = text.encode()
    if not native.mpoptLoadCuda(
        data, ctypes.c_size_t(len(data)), device, images, ctypes.c_size_t(len(made))
    ):
        raise MpoptError(native.mpoptError().decode())


def load_program(native: Any, device: int, made: Made) -> int:
    """Kernels that are no regions, loaded for good: what `mpoptLaunch` takes."""
    program = native.mpoptLoadProgram(device, _images(made), ctypes.c_size_t(len(made)))
    if not program:
        raise MpoptError(native.mpoptError().decode())
    return int(program)


def _images(made: Made) -> Any:
    return (_Image * len(made))(*[_image(kernel, code) for kernel, code in made])


_ELEMENTS = ("f16", "bf16", "f32")
"""TensorMap::Element."""


def _image(kernel: Mapping[str, Any], code: bytes) -> _Image:
    maps = [_map(given) for given in kernel.get("maps", ())]
    grid = _Grid(
        (ctypes.c_int64 * 3)(*kernel["extent"]),
        (ctypes.c_int64 * 3)(*kernel.get("factor", (1, 1, 1))),
        (ctypes.c_int64 * 3)(*kernel["tile"]),
        kernel.get("flat", False),
        kernel.get("blocks_per_processor", 0),
    )
    launch = _Kernel(
        kernel["name"].encode(),
        grid,
        (ctypes.c_uint32 * 3)(*kernel["block"]),
        kernel.get("shared_bytes", 0),
        kernel.get("workspace_per_block", 0),
        kernel.get("workspace_bytes", 0),
        (_Map * len(maps))(*maps),
        len(maps),
    )
    return _Image(launch, code)


def _map(given: Mapping[str, Any]) -> _Map:
    extents = (_Extent * 3)(*[_Extent(*extent) for extent in given["extents"]])
    box = (ctypes.c_uint32 * 3)(*given["box"])
    element = _ELEMENTS.index(given["element"])
    return _Map(given["buffer"], element, len(given["extents"]), extents, box)
