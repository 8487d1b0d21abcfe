"""A GPU as the update sees it: kernels by their lines, PyTorch's current stream, and captures.

Nothing here waits for the device.
"""

from __future__ import annotations

import ctypes
import functools
import struct
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from .. import cuda_kernels, kernels, log
from ..errors import MpoptError

_lock = threading.Lock()


def is_gpu(device: torch.device) -> bool:
    """True if the kernels of `codegen/CUDA/Update` update parameters on `device`."""
    return device.type == "cuda"


def word(number: float) -> int:
    """A double as the whole number with its bits: parameters of kernels have eight bytes."""
    return int(struct.unpack("<q", struct.pack("<d", number))[0])


class Device:
    """One GPU. `of` gives the one object for a device."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._programs: dict[str, int] = {}

    @staticmethod
    @functools.cache
    def of(device: torch.device) -> Device:
        """The object for `device`."""
        return Device(device)

    @functools.cached_property
    def why_not(self) -> str:
        """Why kernels of ours do not run there; "" if they do."""
        try:
            self._program("poke")
        except MpoptError as error:
            return f"a parameter on {self.device}: {error}"
        return ""

    def stream(self) -> int:
        """PyTorch's current stream."""
        return int(torch.cuda.current_stream(self.device).cuda_stream)

    def is_capturing(self) -> bool:
        """True if the stream's work goes to a graph."""
        return bool(torch.cuda.is_current_stream_capturing())

    def launch(self, line: str, addresses: Sequence[int], numbers: Sequence[int] = ()) -> None:
        """Launch the kernel of a line. Raises MpoptError with what the driver says."""
        library = kernels.launch_path()
        done = library.mpoptLaunch(
            ctypes.c_void_p(self._program(line)),
            (ctypes.c_void_p * len(addresses))(*addresses),
            ctypes.c_size_t(len(addresses)),
            (ctypes.c_int64 * len(numbers))(*numbers),
            ctypes.c_size_t(len(numbers)),
            ctypes.c_void_p(self.stream()),
        )
        if not done:
            raise MpoptError(library.mpoptError().decode())

    def poke(self, target: int, data: bytes) -> None:
        """Write `data`, a multiple of eight bytes, to an address of the device.

        They travel as parameters of kernels: no memory of the host must live until the copy is
        done, and a captured graph holds its own.
        """
        size = int(kernels.codegen().poke_words)
        for start in range(0, len(data), 8 * size):
            piece = data[start : start + 8 * size]
            words = struct.unpack(f"<{len(piece) // 8}q", piece)
            rest = (0,) * (size - len(words))
            self.launch("poke", [target + start], [len(words), *words, *rest])

    def _program(self, line: str) -> int:
        program = self._programs.get(line)
        if program is None:
            with _lock:
                program = self._programs[line] = self._load(line)
            log.counters["update_kernels"] += 1
        return program

    def _load(self, line: str) -> int:
        library, index = kernels.launch_path(), self.device.index or 0
        chip = cuda_kernels.chip_of(cuda_kernels.architecture(library, index))
        try:
            made = cuda_kernels.compile_update(line, chip)
        except ValueError as error:
            raise MpoptError(f"cannot compile the kernel '{line}': {error}") from error
        return cuda_kernels.load_program(library, index, made)


def device_of(params: Iterable[Tensor]) -> torch.device | None:
    """The GPU that holds parameters, None if they are elsewhere. Look at one is enough: see
    `why_not`."""
    for param in params:
        return param.device if is_gpu(param.device) else None
    return None


def why_not(params: Iterable[Tensor], groups: Iterable[dict[str, Any]]) -> str:
    """Why kernels of ours do not update all of these; "" if they do."""
    devices = {param.device for param in params}
    if len(devices) > 1:
        return "parameters on several devices (" + ", ".join(sorted(map(str, devices))) + ")"
    for device in devices:
        if reason := Device.of(device).why_not:
            return reason
    for group in groups:
        for name, value in _figures(group):
            is_read = name == "lr" and value.dtype is torch.float32 and value.device in devices
            if not is_read:
                return f"a group whose {name} is a tensor of {value.dtype} on {value.device}"
    return ""


def _figures(group: dict[str, Any]) -> Iterable[tuple[str, Tensor]]:
    """The numbers of a group that the host does not know."""
    names = ("lr", "eps", "weight_decay", "momentum", "dampening")
    figures = {name: group.get(name) for name in names}
    figures |= {f"beta{n}": beta for n, beta in enumerate(group.get("betas", ()), start=1)}
    for name, value in figures.items():
        if isinstance(value, Tensor) and is_gpu(value.device):
            yield name, value
