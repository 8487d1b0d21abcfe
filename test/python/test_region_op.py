"""The operator `mpopt::region`, with kernels by hand."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import stub_kernels
import torch
from mpopt import kernels, log, region_op
from mpopt.errors import MpoptError
from stub_kernels import SCALED, SUMMED

FOLDER = Path(__file__).parent


@pytest.fixture(autouse=True)
def region(monkeypatch):
    monkeypatch.setitem(kernels.compilers, "cpu", stub_kernels.compile_cpu)
    return region_op.load()


def test_runs_a_kernel_on_dynamic_rows(region):
    w = torch.randn(5)
    for rows in (1, 3, 1000):
        x = torch.randn(rows, 5)
        (y,) = region([x, w], SCALED, [rows])
        assert torch.equal(y, x * w)
        assert y.is_contiguous()


@pytest.mark.parametrize("threads", [1, 2])
def test_runs_phases_in_order_on_the_threads_of_pytorch(region, threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        x = torch.randint(-9, 9, (977, 5)).float()
        for _ in range(20):
            sums, total = region([x], SUMMED, [977])
            assert torch.equal(sums, x.sum(1))
            assert total.shape == () and total == x.sum()
    finally:
        torch.set_num_threads(before)


def test_no_rows_give_empty_results(region):
    sums, total = region([torch.empty(0, 5)], SUMMED, [0])
    assert sums.shape == (0,) and total == 0


def test_a_thread_has_scratch_memory_of_its_own(region):
    inputs = [torch.full((size, 5), float(size)) for size in (50_000, 3000, 7000, 90_000)]
    results = {}

    def work(x):
        for _ in range(20):
            results[len(x)] = region([x], SUMMED, [len(x)])[1]

    workers = [threading.Thread(target=work, args=(x,)) for x in inputs]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for x in inputs:
        assert results[len(x)] == 5.0 * len(x) ** 2


def test_equal_texts_are_compiled_once(region):
    text = SCALED + "// once"
    before = log.counters["kernels"]
    for rows in (2, 3):
        region([torch.ones(rows, 5), torch.ones(5)], text, [rows])
    kernels.prepare(text, "cpu")
    assert log.counters["kernels"] == before + 1


def test_texts_that_differ_in_one_letter_are_different_kernels(region):
    filling = "// " + "x" * 5000 + "\n"
    x = torch.ones(4, 5)
    for i in range(0, 5000, 617):
        (changed,) = region([x, x[0]], SCALED + filling[:i] + "y" + filling[i + 1 :], [4])
        sums, _ = region([x], SUMMED + filling[:i] + "y" + filling[i + 1 :], [4])
        assert torch.equal(changed, x)
        assert sums.shape == (4,)


@pytest.mark.parametrize(
    ("inputs", "sizes", "complaint"),
    [
        ([torch.ones(4, 5)], [4], "takes 2 inputs, not 1"),
        ([torch.ones(4, 5), torch.ones(5)], [], "takes 1 sizes, not 0"),
        ([torch.ones(4, 5), torch.ones(5)], [3], "input 0 is no tensor of [?]x5xf32"),
        ([torch.ones(4, 5), torch.ones(6)], [4], "input 1 is no tensor of 5xf32"),
        ([torch.ones(4, 5), torch.ones(5).double()], [4], "input 1 is no tensor of 5xf32"),
        ([torch.ones(4, 5), torch.ones(1, 5)], [4], "input 1 is no tensor of 5xf32"),
    ],
)
def test_refuses_what_the_kernel_does_not_take(region, inputs, sizes, complaint):
    with pytest.raises(RuntimeError, match=complaint):
        region(inputs, SCALED, sizes)


TEXTS = [
    "module {}",
    "func.func @kernel(%x: tensor<4xf64>) -> tensor<4xf32> {",
    "func.func @kernel(%x: tensor<4xf32>) {",
    "func.func @kernel(%x: tensor<*xf32>) -> tensor<4xf32> {",
    "func.func @kernel(%x: tensor<4xf32>) -> (tensor<-1xf32>) {",
]


@pytest.mark.parametrize("text", TEXTS)
def test_both_readers_of_signatures_refuse_bad_texts_alike(region, text):
    with pytest.raises(MpoptError) as ours:
        region_op.signature(text)
    with pytest.raises(RuntimeError, match="mpopt::region") as native:
        region([torch.ones(4)], text, [])
    assert str(ours.value) in str(native.value)


def test_a_failing_compiler_is_one_error_with_its_reason(region, monkeypatch):
    def fails(text):
        raise ValueError("rule K5: no map")

    monkeypatch.setitem(kernels.compilers, "cpu", fails)
    text = SCALED + "// fails"
    with pytest.raises(RuntimeError, match="cannot compile a kernel: rule K5: no map"):
        region([torch.ones(4, 5), torch.ones(5)], text, [4])
    with pytest.raises(MpoptError, match="rule K5"):
        kernels.prepare(text, "cpu")


def test_copies_of_inputs_are_right_and_counted(region):
    x, w = torch.randn(5, 4).t(), torch.randn(10)[::2]
    before = kernels.copies()
    (y,) = region([x, w], SCALED, [4])
    assert torch.equal(y, x * w)
    assert kernels.copies() == before + 2


def test_operator_passes_the_checks_of_pytorch(region):
    for text, inputs in ((SCALED, [torch.ones(4, 5), torch.ones(5)]), (SUMMED, [torch.ones(4, 5)])):
        torch.library.opcheck(region, (inputs, text, [4]))


def test_inductor_calls_the_kernel_without_copies(region):
    def model(a, b, w):
        (y,) = region([(a @ b).t().sin(), w.t()[0] * 2], SCALED, [a.shape[0]])
        sums, total = region([y], SUMMED, [y.shape[0]])
        return sums * total

    a, b, w = torch.randn(5, 8), torch.randn(8, 5), torch.randn(5, 3)
    before = kernels.copies()
    compiled = torch.compile(model, fullgraph=True)
    with torch.no_grad():
        got = compiled(a, b, w)
    y = (a @ b).t().sin() * (w.t()[0] * 2)
    torch.testing.assert_close(got, y.sum(1) * y.sum())
    assert kernels.copies() == before


def test_inductor_compiles_dynamic_rows_once(region):
    @torch.compile(fullgraph=True, dynamic=True)
    def model(x, w):
        return region([x + 1, w], SCALED, [x.shape[0]])[0] * 2

    w = torch.randn(5)
    for rows in (3, 17):
        x = torch.randn(rows, 5)
        assert torch.equal(model(x, w), (x + 1) * w * 2)


PROCESS = """
import stub_kernels, torch
from torch._dynamo.utils import counters
from mpopt import region_op
region, x = region_op.load(), torch.arange(20.0).reshape(4, 5)
stub_kernels.install()
run = torch.compile(lambda x: region([x.sin()], stub_kernels.SUMMED, [4])[0])
torch.testing.assert_close(run(x), x.sin().sum(1))
print(counters["inductor"]["fxgraph_cache_hit"])
"""


def test_a_graph_from_the_cache_compiles_its_kernels(tmp_path):
    env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
    path = [FOLDER.parents[1] / "python", FOLDER, env.get("PYTHONPATH", "")]
    env["PYTHONPATH"] = os.pathsep.join(map(str, path))
    hits = [
        subprocess.run([sys.executable, "-c", PROCESS], env=env, capture_output=True, text=True)
        for _ in range(2)
    ]
    assert [done.stdout.strip() for done in hits] == ["0", "1"], hits[0].stderr + hits[1].stderr
