"""A GPU for the update where there is none: tensors of the CPU are its memory, a fake driver
takes the launches, and the emulator runs the kernels, with every access checked.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

import pytest
from mpopt import cuda_kernels, kernels
from mpopt.optim import _device

ROOT = Path(__file__).parents[2]
STREAM = 0x5EA


def library():
    """The emulated kernels, built with the unit tests."""
    found = sorted(ROOT.glob("build/*/lib/libemulated_kernels.so"), key=lambda p: p.stat().st_mtime)
    if not found:
        pytest.skip("libemulated_kernels.so is not built")
    loaded = ctypes.CDLL(str(found[-1]))
    loaded.emulatedKernel.restype = ctypes.c_uint64
    loaded.emulatedFaults.restype = ctypes.c_char_p
    return loaded


@functools.cache
def machine():
    """The one of this process: a driver is opened once."""
    return EmulatedGpu(build_driver(Path(tempfile.mkdtemp(prefix="mpopt-driver-"))))


def build_driver(folder):
    """The driver that writes its calls down."""
    compiler = shutil.which("c++") or shutil.which("clang++-22")
    if compiler is None:
        pytest.skip("no C++ compiler")
    path = folder / "libcuda.so"
    source = ROOT / "test/unit/FakeCudaDriver.cpp"
    subprocess.run([compiler, "-std=c++17", "-shared", "-fPIC", source, "-o", path], check=True)
    return path


class EmulatedGpu:
    """The machine of one test process. `launches` are those since `clear`."""

    def __init__(self, driver: Path) -> None:
        self.library = library()
        os.environ["MPOPT_CUDA_DRIVER"] = str(driver)
        self.driver = ctypes.CDLL(str(driver))
        self.driver.fakeLog.restype = ctypes.c_char_p
        self.launches: list[tuple[str, list[int], list[int]]] = []
        self.is_capturing = False
        self.is_on = True
        self._images = {}
        self._launch = _device.Device.launch

    def install(self, monkeypatch) -> None:
        """Take the place of CUDA until the end of the test."""
        gpu = self
        self.is_on, self.is_capturing = True, False
        monkeypatch.setattr(_device, "is_gpu", lambda device: gpu.is_on)
        # The modules that have taken it by name.
        from mpopt.optim import _device_plan

        monkeypatch.setattr(_device_plan, "is_gpu", lambda device: gpu.is_on)
        monkeypatch.setattr(_device.Device, "stream", lambda self: STREAM)
        monkeypatch.setattr(_device.Device, "is_capturing", lambda self: gpu.is_capturing)
        monkeypatch.setattr(_device.Device, "launch", lambda d, *a: gpu.launch(d, *a))
        monkeypatch.setattr(cuda_kernels, "compile_update", self.compile)
        self.clear()

    def compile(self, line, chip):
        """What the code generator says of the launch, with code that the driver runs here."""
        if line not in self._images:
            (kernel,) = kernels.codegen().compile_cuda_update(line, chip)
            address = self.library.emulatedKernel(line.encode())
            assert address, line
            self._images[line] = kernel, b"host:%x" % address  # the driver keeps the address
        return [self._images[line]]

    @contextlib.contextmanager
    def off(self):
        """Tensors of the CPU are what they are."""
        self.is_on = False
        yield
        self.is_on = True

    def clear(self):
        """Forget what was launched."""
        self.launches.clear()
        self.driver.fakeClear()

    def log(self):
        """What the driver was asked for."""
        return self.driver.fakeLog().decode(errors="replace")

    def names(self):
        """The kernels that were launched."""
        return [line.split()[0] for line, *_ in self.launches]

    def launch(self, device, line, addresses, numbers=()):
        """Device.launch; the kernel may touch what it is told of and nothing else."""
        ranges = {}
        for address, size in _memory_of(line, addresses, numbers):
            ranges[address] = max(size, ranges.get(address, 0))
        self.library.emulatedForget()
        for address, size in ranges.items():
            if address and size:
                self.library.emulatedMemory(ctypes.c_void_p(address), ctypes.c_size_t(size))
        self.launches.append((line, list(addresses), list(numbers)))
        self._launch(device, line, addresses, numbers)
        assert not self.library.emulatedFaults(), self.library.emulatedFaults().decode()


# Which memory a kernel has, read from the tables as it will read them ---------------------

BYTES = {"f32": 4, "f16": 2, "bf16": 2}
ARRAYS = ("weight", "low", "gradient", "first", "second", "largest", "copy")


def _memory_of(line, addresses, numbers):
    name, *options = line.split()
    if name == "update":
        formats = dict(option.split("=") for option in options[1:] if "=" in option)
        if "split" in options:
            formats["low"] = "bf16"
        yield from _arrays(addresses[0], addresses[2], numbers[0], formats)
        tensors = _tensors(addresses[2], numbers[0])
        yield addresses[0], 64 * (max(tensors) + 1)
        yield addresses[1], 80 * (max(tensors) + 1)
        yield addresses[2], 8 * numbers[0]
        yield addresses[3], 32
    elif name == "measure":
        yield from _arrays(addresses[0], addresses[1], numbers[0], {"gradient": options[0]})
        yield addresses[0], 64 * (max(_tensors(addresses[1], numbers[0])) + 1)
        yield addresses[1], 8 * numbers[0]
        yield addresses[2], 4
        yield addresses[3], 24 * numbers[0]
    elif name == "factors":
        clocks = [_read("<2q2I", addresses[0] + 24 * i) for i in range(numbers[0])]
        yield from ((address, 4) for clock in clocks for address in clock[:2])
        yield addresses[0], 24 * numbers[0]
        yield addresses[1], 80 * (max(clock[3] for clock in clocks) + 1)
        yield addresses[2], 32
        yield addresses[3], 4
    else:
        sizes = {
            "total": lambda: (24 * numbers[0], 24),
            "decide": lambda: (24, 4, 4, 32),
            "note": lambda: (24, 4, 4),
            "advance": lambda: (64, 4),
            "poke": lambda: (8 * numbers[0],),
        }
        yield from zip(addresses, sizes[name](), strict=True)


def _read(layout, address):
    return struct.unpack(layout, ctypes.string_at(address, struct.calcsize(layout)))


def _tensors(chunks, count):
    return {_read("<2i", chunks + 8 * i)[0] for i in range(count)}


def _arrays(rows, chunks, count, formats):
    for tensor in _tensors(chunks, count):
        *arrays, size = _read("<8q", rows + 64 * tensor)
        for array, address in zip(ARRAYS, arrays, strict=True):
            if array in formats:
                yield address, BYTES[formats[array]] * size
