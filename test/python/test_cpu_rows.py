"""Row kernels of our own on the CPU: in models, by themselves, and kept on disk."""

import os
import subprocess
import sys
from pathlib import Path

import mpopt
import pytest
import torch
from mpopt import kernels, log, region_op
from mpopt.errors import MpoptError
from torch import nn
from torch.nn import functional as F

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "test/Codegen/Rows"


@pytest.fixture(autouse=True)
def _backend(monkeypatch, tmp_path):
    try:
        kernels.codegen()
    except MpoptError as error:
        pytest.skip(str(error))
    monkeypatch.setenv("MPOPT_KERNEL_CACHE", str(tmp_path / "cache"))


class Norms(nn.Module):
    """Both norms around a softmax, with residuals."""

    def __init__(self, width=96):
        super().__init__()
        self.first, self.second = nn.LayerNorm(width), nn.RMSNorm(width)

    def forward(self, x):
        h = x + self.first(x)
        p = torch.softmax(h.float(), -1).to(x.dtype)
        return self.second(h + p)


class Classifier(nn.Module):
    """Logits, and the loss of labels that are the first columns."""

    def __init__(self, width=96):
        super().__init__()
        self.head = nn.Linear(width, 200)

    def forward(self, x):
        labels = torch.arange(x.shape[0], device=x.device)
        return F.cross_entropy(self.head(x).float(), labels)


def _step(run, model, x):
    """The result's sum and all gradients."""
    model.zero_grad()
    x = x.clone().requires_grad_()
    y = run(x)
    (y.float() * torch.linspace(-1, 1, y.numel()).view(y.shape)).sum().backward()
    return [y.detach(), x.grad, *[p.grad.clone() for p in model.parameters()]]


def _compiled(model, **compiler):
    torch._dynamo.reset()
    return torch.compile(model, backend=mpopt.mpopt, options={"regions": "all"}, **compiler)


def _distance(value, right):
    return float((value.double() - right.double()).norm() / right.double().norm())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_norms_and_softmax_of_a_step_are_our_kernels(dtype):
    model, x = Norms().to(dtype), torch.randn(4, 33, 96).to(dtype)
    # Without autocast or a half there is nothing for mpopt to do.
    context = torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.float32)
    before = dict(log.counters)
    with context:
        ours = _step(_compiled(model), model, x)
        eager = _step(model, model, x)
    # At least one each for the norms and the softmax, forward and backward.
    assert log.counters["regions"] - before.get("regions", 0) >= 2
    assert log.counters["region_kernels"] > before.get("region_kernels", 0)
    assert log.counters["fallbacks"] == before.get("fallbacks", 0)
    double = Norms().double()
    double.load_state_dict(model.state_dict())
    exact = _step(double, double, x.double())
    for value, theirs, right in zip(ours, eager, exact):
        assert value.dtype == theirs.dtype
        assert _distance(value, right) <= 1.5 * _distance(theirs, right) + 1e-6


def test_a_loss_is_our_kernels():
    model, x = Classifier(), torch.randn(64, 96)
    before = log.counters["regions"]
    with torch.autocast("cpu", torch.bfloat16):
        ours = _step(_compiled(model), model, x)
        eager = _step(model, model, x)
    assert log.counters["regions"] - before >= 3
    for value, right in zip(ours, eager):
        assert _distance(value, right) < 2e-2


def test_rows_are_dynamic():
    model = Norms().bfloat16()
    run, before = _compiled(model, dynamic=True), log.counters["kernels"]
    made = []
    for rows in (5, 64, 333):
        x = torch.randn(rows, 96).bfloat16()
        torch._dynamo.mark_dynamic(x, 0)
        with torch.no_grad():
            torch.testing.assert_close(run(x), model(x), rtol=1.6e-2, atol=1e-2)
        made.append(log.counters["kernels"] - before)
    assert made[0] >= 1 and made == [made[0]] * 3


def _text(family, columns=768):
    lines = (KERNELS / f"{family}.mlir").read_text().splitlines()
    code = "\n".join(line for line in lines if not line.startswith("//"))
    return code.replace("768", str(columns))


@pytest.mark.parametrize("rows", [0, 1, 37, 4000])
def test_threads_do_not_change_a_bit(rows):
    text = _text("layer-norm-backward", 100)
    region = region_op.load()
    dy, x = torch.randn(2, rows, 100).bfloat16()
    inputs = [dy, x, torch.randn(rows), torch.rand(rows) + 0.5, torch.randn(100)]
    results, before = [], torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            results.append(region(inputs, text, [rows]))
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other))
    dx, dg, db = results[0]
    assert dx.shape == (rows, 100)
    n = (x.double() - inputs[2].double()[:, None]) * inputs[3].double()[:, None]
    torch.testing.assert_close(dg.double(), (dy.double() * n).sum(0), rtol=1e-4, atol=1e-3)
    torch.testing.assert_close(db.double(), dy.double().sum(0), rtol=8e-3, atol=1e-3)


def _elsewhere(program, *arguments):
    """The numbers that a program prints in a process of its own."""
    env = {**os.environ}
    env["PYTHONPATH"] = os.pathsep.join([str(ROOT / "python"), env.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    return tuple(map(int, done.stdout.split()))


CACHED = """
import mpopt, torch
from mpopt import kernels
run = torch.compile(lambda x: torch.softmax(x, -1), backend="mpopt", options={"regions": "all"})
x = torch.arange(64 * 48.0).view(64, 48).remainder(7).bfloat16()
y = run(x)
assert torch.equal(y, torch.softmax(x, -1))
made = mpopt.counters["region_kernels"], mpopt.counters["kernels"]
print(*made, kernels.codegen().cpu_counters()["compiled"])
"""


def test_a_graph_from_a_cache_finds_its_kernels(tmp_path, monkeypatch):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    assert _elsewhere(CACHED) == (1, 1, 1)
    # The graph does not go through our passes, the kernel is on disk.
    assert _elsewhere(CACHED) == (0, 1, 0)


PROCESS = """
import sys
from mpopt import kernels, log, region_op
region_op.load()
for path in sys.argv[1:]:
    kernels.prepare(open(path).read(), "cpu")
counters = kernels.codegen().cpu_counters()
print(counters["compiled"], counters["loaded"], log.counters["cpu_cache_hits"])
"""


def test_a_second_process_compiles_nothing(tmp_path):
    families = ["softmax", "pointwise", "rms-norm"]
    paths = [tmp_path / f"{family}.mlir" for family in families]
    for path, family in zip(paths, families):
        path.write_text(_text(family))
    assert _elsewhere(PROCESS, *paths[:2]) == (2, 0, 0)
    assert len(list((tmp_path / "cache" / "cpu").rglob("*.o"))) == 2
    assert _elsewhere(PROCESS, *paths[:2]) == (0, 2, 2)
    # Another kernel is no part of what is there.
    assert _elsewhere(PROCESS, *paths) == (1, 2, 2)
