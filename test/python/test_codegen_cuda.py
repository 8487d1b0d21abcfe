"""The code generator's kernels for GPUs, as the launch path gets them."""

import pytest
import torch
from mpopt import assembler, cuda_kernels, kernels
from mpopt.errors import MpoptError
from mpopt.gpu_check.texts import Matmul, Rows


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path):
    try:
        kernels.codegen()
    except MpoptError as error:
        pytest.skip(str(error))
    monkeypatch.setenv("MPOPT_KERNEL_CACHE", str(tmp_path / "cache"))


def _is_cubin(code):
    return code[:4] == b"\x7fELF"


@pytest.mark.parametrize("chip", ["sm_80", "sm_90", "sm_120"])
def test_a_text_becomes_code_with_a_launch(chip):
    kernel = Matmul(512, 384, 256, torch.bfloat16, epilogue="bias_gelu")
    ((launch, code),) = cuda_kernels.compile_text(kernel.text(), chip)
    assert f".target {chip}" in launch["ptx"] and f".entry {launch['name']}" in launch["ptx"]
    assert "mma.sync" in launch["ptx"]
    threads = launch["block"][0] * launch["block"][1] * launch["block"][2]
    assert threads % 32 == 0 and launch["shared_bytes"] > 0
    assert _is_cubin(code) or code == launch["ptx"].encode() + b"\0"


def test_hopper_has_its_own_kernel_with_tensor_maps(caplog):
    ((launch, code),) = cuda_kernels.compile_text(Matmul(512, 384, 256).text(), "sm_90a")
    assert "wgmma.mma_async" in launch["ptx"]
    assert {given["buffer"] for given in launch["maps"]} >= {0, 1}
    image = cuda_kernels._image(launch, code)
    assert image.kernel.map_count == len(launch["maps"])
    first = launch["maps"][0]
    assert image.kernel.maps[0].extents[0].factor == first["extents"][0][0]
    # Rows of 50 bytes are nothing for TMA: the other kernel takes them.
    assert launch["note"] == ""
    with caplog.at_level("INFO", logger="mpopt.backend"):
        ((launch, _),) = cuda_kernels.compile_text(Matmul(64, 64, 25).text(), "sm_90a")
    assert "mma.sync" in launch["ptx"] and not launch["maps"]
    assert "rows of lhs have 50 bytes" in launch["note"] and launch["note"] in caplog.text


@pytest.mark.parametrize("kind", ["softmax", "rms_norm"])
def test_rows_have_kernels(kind):
    ((launch, code),) = cuda_kernels.compile_text(Rows(kind, 64, 1024).text(), "sm_80")
    assert f".entry {launch['name']}" in launch["ptx"]
    assert _is_cubin(code) or code.endswith(b"\0")


def test_grid_covers_dynamic_rows():
    kernel = Matmul(77, 512, 256, dynamic=True)
    ((launch, _),) = cuda_kernels.compile_text(kernel.text(), "sm_80")
    assert -1 in launch["extent"]


def test_what_is_no_kernel_is_refused_by_its_rule():
    text = Matmul(8, 8, 8).text().replace("arith.addf %c, %p", "arith.subf %c, %p")
    with pytest.raises(ValueError, match="rule K7"):
        kernels.codegen().compile_cuda(text, "sm_80")
    with pytest.raises(ValueError, match="no chip is called sm_5"):
        kernels.codegen().compile_cuda(text, "sm_5")


def test_one_variable_dumps_all_stages(monkeypatch, tmp_path):
    monkeypatch.setenv("MPOPT_KERNEL_DUMP", str(tmp_path / "dump"))
    (tmp_path / "dump").mkdir()
    cuda_kernels.compile_text(Matmul(128, 128, 128).text(), "sm_80")
    suffixes = {path.name.partition(".")[2] for path in (tmp_path / "dump").iterdir()}
    assert {"mlir", "nvvm.mlir", "ll", "ptx", "0.cubin"} <= suffixes


def test_cubins_are_made_once(monkeypatch, tmp_path):
    text, runs = Matmul(128, 128, 64).text(), []

    def counted(ptx, chip):
        runs.append(chip)
        return b"\x7fELF"

    monkeypatch.setattr(assembler, "ASSEMBLERS", {"mine": lambda chip: ("mine", counted)})
    for _ in range(2):
        cuda_kernels.compile_text(text, "sm_80")
    assert runs == ["sm_80"]
