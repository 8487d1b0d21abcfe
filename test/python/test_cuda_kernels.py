"""From a kernel's text to what a GPU's driver is asked to do, with a driver that only listens."""

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from mpopt import cuda_kernels, kernels
from mpopt.errors import MpoptError

ROOT = Path(__file__).parents[2]
TEXT = "func.func @kernel(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {"
# What the code generator would say, as Python.
PROCESS = f"""
import ctypes, os
from types import SimpleNamespace
from mpopt import kernels, region_op
from mpopt.errors import MpoptError

def compile_cuda(text, chip, libdevice, dump, name):
    assert text == TEXT
    launch = dict(extent=(-1, 8, 1), tile=(4, 8, 1), flat=False, block=(64, 1, 1))
    return [dict(launch, name="first", ptx=".ptx of " + chip, shared_bytes=99328),
            dict(launch, name="second", ptx=".more ptx", workspace_bytes=16,
                 maps=[dict(buffer=0, element="bf16", extents=[(8, -1), (1, 0)], box=[8, 64])])]

TEXT = {TEXT!r}
generator = SimpleNamespace(chips=lambda: ["sm_80", "sm_90", "sm_90a"], compile_cuda=compile_cuda)
kernels.codegen = lambda: generator
region_op.load()
driver = ctypes.CDLL(os.environ["MPOPT_CUDA_DRIVER"])
driver.fakeLog.restype = ctypes.c_char_p
driver.fakeFail(*eval(os.environ["FAKE_FAILURE"]))
try:
    kernels.prepare(TEXT, "cuda", 2)
    kernels.prepare(TEXT, "cuda", 2)
except MpoptError as error:
    print("error:", error)
print(driver.fakeLog().decode())
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    compiler = shutil.which("c++") or shutil.which("clang++-22")
    if compiler is None:
        pytest.skip("no C++ compiler")
    path = tmp_path_factory.mktemp("driver") / "libcuda.so"
    source = ROOT / "test/unit/FakeCudaDriver.cpp"
    subprocess.run([compiler, "-std=c++17", "-shared", "-fPIC", source, "-o", path], check=True)
    return path


def _run(driver, failure='(b"", 0)', program=PROCESS):
    env = {**os.environ, "MPOPT_CUDA_DRIVER": str(driver), "MPOPT_PTXAS": "driver"}
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT / "python"), env.get("PYTHONPATH", "")])
    env["FAKE_FAILURE"] = failure
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_kernels_are_compiled_and_loaded_once_per_device(driver):
    log = _run(driver)
    assert log.count("cuModuleLoadDataEx .ptx of sm_90a") == 1
    assert log.count("cuModuleLoadDataEx .more ptx") == 1
    assert log.count("cuModuleGetFunction first") == log.count("cuModuleGetFunction second") == 1
    assert log.count("cuFuncSetAttribute 8 = 99328") == 1
    assert "cuDevicePrimaryCtxRetain 2" in log


def test_what_the_driver_says_reaches_the_user(driver):
    log = _run(driver, '(b"cuModuleLoadDataEx", 222)')
    assert "error: cannot compile a kernel: cuModuleLoadDataEx failed: CUDA_ERROR_FAKE (222)" in log
    assert "ptxas: line 1: bad" in log


MISSING = f"""
from mpopt import kernels, region_op
from mpopt.errors import MpoptError
region_op.load()
try:
    kernels.prepare({TEXT!r}, "cuda")
except MpoptError as error:
    print("error:", error)
"""


def test_a_missing_driver_is_one_clear_error(tmp_path):
    said = _run(tmp_path / "none.so", program=MISSING)
    assert "error: cannot compile a kernel: cannot open the CUDA driver" in said
    assert "install the NVIDIA driver" in said


@pytest.mark.parametrize(
    ("found", "chosen"),
    [("sm_90", "sm_90a"), ("sm_80", "sm_80"), ("sm_87", "sm_86"), ("sm_103", "sm_100")],
)
def test_a_device_gets_the_nearest_chip(monkeypatch, found, chosen):
    chips = ["sm_80", "sm_86", "sm_90", "sm_90a", "sm_100", "sm_120"]
    monkeypatch.setattr(kernels, "codegen", lambda: type("G", (), {"chips": lambda self: chips})())
    assert cuda_kernels.chip_of(found) == chosen


def test_a_device_that_is_too_old_is_refused(monkeypatch):
    monkeypatch.setattr(
        kernels, "codegen", lambda: type("G", (), {"chips": lambda self: ["sm_80"]})()
    )
    with pytest.raises(MpoptError, match="no kernels for sm_75; known: sm_80"):
        cuda_kernels.chip_of("sm_75")


def test_structures_have_the_size_of_those_in_c(tmp_path):
    source = tmp_path / "size.cpp"
    source.write_text(
        '#include "runtime/CUDA/Program.h"\n'
        "extern const unsigned long sizes[4] = {sizeof(mp::runtime::TensorMap), "
        "sizeof(mp::runtime::CudaGrid), "
        "sizeof(mp::runtime::CudaKernel), sizeof(mp::runtime::cuda::CudaImage)};\n"
    )
    compiler = shutil.which("c++") or "clang++-22"
    target = tmp_path / "size.so"
    subprocess.run(
        [compiler, "-std=c++17", "-I", ROOT, "-shared", "-fPIC", source, "-o", target], check=True
    )
    sizes = (ctypes.c_ulong * 4).in_dll(ctypes.CDLL(str(target)), "sizes")
    ours = (cuda_kernels._Map, cuda_kernels._Grid, cuda_kernels._Kernel, cuda_kernels._Image)
    assert list(sizes) == [ctypes.sizeof(each) for each in ours]


GENERATED = """
import ctypes, os
from mpopt import kernels, region_op
from mpopt.gpu_check.texts import Matmul
region_op.load()
kernels.prepare(Matmul(256, 128, 64).text(), "cuda", 1)
driver = ctypes.CDLL(os.environ["MPOPT_CUDA_DRIVER"])
driver.fakeLog.restype = ctypes.c_char_p
print(driver.fakeLog().decode(errors="replace"))
"""


def test_the_code_generators_kernels_are_loaded(driver):
    try:
        kernels.codegen()
    except MpoptError as error:
        pytest.skip(str(error))
    log = _run(driver, program=GENERATED)
    assert "cuDevicePrimaryCtxRetain 1" in log
    assert log.count("cuModuleLoadDataEx") == log.count("cuModuleGetFunction") == 1
