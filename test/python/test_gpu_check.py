"""The run for a machine with a GPU, where there is none."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from mpopt import kernels, region_op
from mpopt.gpu_check import checks, texts, update
from mpopt.gpu_check.__main__ import main

ROOT = Path(__file__).parents[2]
KERNELS = list(texts.catalogue())


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_script_says_that_there_is_no_gpu(tmp_path):
    target = tmp_path / "report.json"
    done = subprocess.run(
        ["bash", ROOT / "tools/gpu-check.sh", "--json", target],
        env={**os.environ, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "no GPU that PyTorch can use: nothing is checked\n"
    assert json.loads(target.read_text())["status"] == "no GPU"


def test_unknown_section_is_refused(capsys):
    assert main(["--only", "kernals"]) == 2
    assert "no section 'kernals'" in capsys.readouterr().err


def test_kernels_have_names_of_their_own():
    assert len({kernel.name for kernel in KERNELS}) == len(KERNELS)


def test_texts_are_mlir():
    tool = shutil.which("mlir-opt") or shutil.which("mlir-opt-22")
    if tool is None:
        pytest.skip("no mlir-opt")
    text = "// -----\n".join(kernel.text() for kernel in KERNELS)
    done = subprocess.run([tool, "--split-input-file"], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:2000]


SMALL = [kernel for kernel in KERNELS if "16384" not in kernel.name and "50257" not in kernel.name]


@pytest.mark.parametrize("kernel", SMALL[::3], ids=lambda kernel: kernel.name)
def test_samples_fit_their_texts_and_bounds_tell_right_from_wrong(kernel):
    sample = kernel.sample("cpu")
    signature = region_op.signature(sample.text)
    sizes = [[sample.sizes[0] if e is None else e for e in a.shape] for a in signature.arguments]
    assert sizes == [list(value.shape) for value in sample.inputs]
    (result,) = signature.results
    rounded = sample.expected[0].to(result.dtype)
    assert checks.compare(sample, [rounded])["share_of_bound"] < 1
    wrong = rounded.clone()
    wrong.view(-1)[5] += 3 * sample.tolerance[0].view(-1)[5].to(wrong.dtype) + 1e-2
    with pytest.raises(checks.WrongError, match="result 0, element 5: "):
        checks.compare(sample, [wrong])
    with pytest.raises(checks.WrongError):
        checks.compare(sample, [torch.full_like(wrong, torch.nan)])


def test_failures_are_in_the_report(tmp_path, monkeypatch, capsys):
    def refuses(text):
        raise ValueError("not today")

    monkeypatch.setitem(kernels.compilers, "cpu", refuses)
    monkeypatch.setattr(checks, "catalogue", lambda tf32: iter([texts.Matmul(8, 8, 8)]))
    target = tmp_path / "report.json"
    arguments = ["--device", "cpu", "--only", "kernels,launch", "--json", str(target)]
    assert main(arguments) == 1
    report = json.loads(target.read_text())
    assert report["failed"] == ["kernels: matmul 1x8x8x8 bf16 NT cast"]
    assert "not today" in report["results"][0]["why"]
    assert "1 failed" in capsys.readouterr().out
    assert main([*arguments, "--seconds", "0"]) == 0
    assert json.loads(target.read_text())["skipped"] == report["failed"]


def test_a_run_that_is_stopped_keeps_what_it_has(tmp_path, monkeypatch):
    def stops(kernel, device):
        raise KeyboardInterrupt

    monkeypatch.setattr(checks, "_check", stops)
    target = tmp_path / "report.json"
    assert main(["--device", "cpu", "--only", "launch,kernels", "--json", str(target)]) == 1
    assert json.loads(target.read_text())["failed"] == ["kernels: the rest"]


def test_the_update_is_checked_on_the_cpu_as_on_a_gpu(tmp_path, monkeypatch):
    monkeypatch.setattr(update, "SHAPES", ((7,), (33, 40)))
    monkeypatch.setattr(update, "shapes", lambda millions: [(64,), (32, 8)])
    target = tmp_path / "report.json"
    assert main(["--device", "cpu", "--only", "update", "--json", str(target)]) == 0
    report = json.loads(target.read_text())
    rates = [r for r in report["results"] if r["section"] == "update rate"]
    assert len(rates) == 3
    for rate in rates:
        assert rate["share_of_sweep"] == rate["sweep_ms"] / rate["ours_ms"]


def test_wrong_bits_of_the_update_are_found(tmp_path, monkeypatch):
    """As soon as one device takes another learning rate."""
    plain = update._Run.give

    def give(run, seed, dtype, bad=0.0):
        plain(run, seed, dtype, bad)
        if not hasattr(give, "first"):
            give.first = run
        if run is give.first:
            run.optimizer.param_groups[0]["lr"] = 0.5

    monkeypatch.setattr(update._Run, "give", give)
    with pytest.raises(checks.WrongError, match="numbers of parameter 0 have other bits"):
        update._bits(update.CASES["adamw"], "cpu")
