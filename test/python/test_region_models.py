"""Models whose hot regions are kernels, from Dynamo to the results; kernels are plain loops."""

import loop_kernels
import mpopt
import pytest
import torch
from mpopt import kernels, log
from torch import nn
from torch.nn import functional as F


@pytest.fixture(autouse=True)
def _loops(monkeypatch):
    loop_kernels.need_tools()
    monkeypatch.setitem(kernels.compilers, "cpu", loop_kernels.compile_cpu)
    with torch._inductor.config.patch(force_disable_caches=True):  # our passes are to run
        yield


class Mlp(nn.Module):
    """Two linear layers with GELU and a residual."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(16, 64), nn.Linear(64, 16)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(x)))


def _step(model, x, regions, **compiler):
    """Loss and gradients of a compiled step."""
    torch._dynamo.reset()
    run = torch.compile(model, backend=mpopt.mpopt, options={"regions": regions}, **compiler)
    model.zero_grad()
    x = x.clone().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        loss = run(x).float().square().mean()
    loss.backward()
    return [loss.detach(), x.grad, *[p.grad.clone() for p in model.parameters()]]


def _distance(value, right):
    return float((value.double() - right.double()).norm() / right.double().norm())


def _exact(model, x):
    double = type(model)().double()
    double.load_state_dict(model.state_dict())
    x = x.double().requires_grad_()
    loss = double(x).square().mean()
    loss.backward()
    return [loss.detach(), x.grad, *[p.grad for p in double.parameters()]]


def test_a_training_step_runs_our_kernels_and_is_as_exact():
    model, x = Mlp(), torch.randn(4, 8, 16)
    stock = _step(model, x, "off")
    before, copies = log.counters["regions"], kernels.copies()
    ours = _step(model, x, "all")
    assert log.counters["regions"] - before >= 4  # two products forward, at least as many back
    assert kernels.copies() == copies
    for value, theirs, right in zip(ours, stock, _exact(model, x)):
        assert _distance(value, right) <= 1.5 * _distance(theirs, right) + 1e-3


def test_dynamic_rows_are_compiled_once():
    model, before = Mlp(), len(loop_kernels.compiled)
    counts = []
    for rows in (6, 11, 30):
        x = torch.randn(rows, 16)
        torch._dynamo.mark_dynamic(x, 0)
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            if not counts:
                run = torch.compile(model, backend=mpopt.mpopt, options={"regions": "all"})
            y = run(x)
            right = model(x)
        assert _distance(y, right) < 1e-2
        counts.append(len(loop_kernels.compiled) - before)
    assert counts[0] >= 1 and counts == [counts[0]] * 3


def test_regions_are_off_unless_wanted():
    before = log.counters["regions"]
    _step(Mlp(), torch.randn(4, 16), "off")
    assert log.counters["regions"] == before


def test_what_does_not_compile_is_inductors(monkeypatch):
    def refuses(text):
        raise ValueError("no")

    monkeypatch.setenv("MPOPT_STRICT", "0")
    monkeypatch.setitem(kernels.compilers, "cpu", refuses)
    model, x = Mlp(), torch.randn(8, 16)
    stock = _step(model, x, "off")
    before = log.counters["fallbacks.kernels"], log.counters["regions"]
    ours = _step(model, x, "all")
    assert log.counters["fallbacks.kernels"] > before[0]
    assert log.counters["regions"] == before[1]
    for value, right in zip(ours, stock):
        torch.testing.assert_close(value, right, rtol=2e-2, atol=1e-3)
