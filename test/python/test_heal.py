"""A region that makes inf or NaN is computed in fp32 from then on, and only such a region."""

from __future__ import annotations

import copy
import logging
from unittest import mock

import mpopt
import pytest
import torch
from eager_code import eager_code
from mpopt import _torch, heal, widening
from mpopt.backend import mpopt as backend
from torch import nn
from torch.utils.checkpoint import checkpoint

COMPILE_FX = _torch.compile_fx


class Net(nn.Module):
    """`up` leaves the range of fp16, `down` comes back into it."""

    def __init__(self, factor=1e6):
        super().__init__()
        self.first = nn.Linear(16, 16)
        self.block = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16))
        self.last = nn.Linear(16, 1)
        with torch.no_grad():
            self.block[0].weight.mul_(factor)
            self.block[2].weight.div_(factor)

    def forward(self, x):
        return self.last(torch.tanh(self.block(self.first(x)))).float().square().mean()


@pytest.fixture(autouse=True)
def fresh(caplog):
    torch._dynamo.reset()
    torch.manual_seed(0)
    caplog.set_level(logging.WARNING, logger="mpopt")
    with eager_code():
        yield
    torch._dynamo.reset()


def step(compiled, model, x, scale=1.0):
    model.zero_grad()
    with torch.autocast("cpu", torch.float16):
        loss = compiled(x)
    (loss * scale).backward()
    return loss.detach(), [p.grad for p in model.parameters()]


def compile_model(model, **options):
    return torch.compile(model, backend=backend, options={"heal": True, **options})


def is_finite(loss, grads):
    return bool(loss.isfinite()) and all(bool(g.isfinite().all()) for g in grads)


def error_of(grads, exact):
    total = sum(float((g.double() - e).square().sum()) for g, e in zip(grads, exact))
    return (total / sum(float(e.square().sum()) for e in exact)) ** 0.5


def exact_step(model, x):
    wide = copy.deepcopy(model).double()
    wide.zero_grad()
    loss = wide(x.double())
    loss.backward()
    return loss.detach(), [p.grad for p in wide.parameters()]


def test_an_overflow_is_healed_after_n_calls(caplog):
    model, x = Net(), torch.randn(8, 16)
    compiled = compile_model(model, heal_after=2)
    assert not is_finite(*step(compiled, model, x))
    assert not is_finite(*step(compiled, model, x))
    assert mpopt.counters["healed_regions"] == 0
    exact_loss, exact_grads = exact_step(model, x)
    for _ in range(4):
        loss, grads = step(compiled, model, x)
        # The relative error of fp16, some roundings in a row.
        assert abs(float(loss - exact_loss)) < 2e-3 * float(exact_loss)
        assert error_of(grads, exact_grads) < 5e-3
    assert mpopt.counters["nonfinite_calls"] == 2
    assert mpopt.counters["heal_searches"] == 1
    assert mpopt.counters["graphs"] == 2, "compiled once more"
    assert [each.region for each in heal.healed()] == ["block.0", "block.2"]
    texts = [r.getMessage() for r in caplog.records]
    assert len(texts) == mpopt.counters["healed_regions"] == 2
    assert "module 'block.0' is computed in fp32 from now on" in texts[0]
    assert "aten._to_copy.default in forward" in texts[0] and "test_heal.py" in texts[0]
    assert "2 calls were bad (healed region 1)" in texts[0]


def test_regions_are_as_deep_as_asked_for():
    model, x = Net(), torch.randn(8, 16)
    compiled = compile_model(model, heal_after=1, heal_depth=1)
    assert not is_finite(*step(compiled, model, x))
    assert is_finite(*step(compiled, model, x))
    assert [each.region for each in heal.healed()] == ["block"]


def test_what_is_healthy_is_compiled_once_and_bit_equal():
    x, results = torch.randn(8, 16), {}
    for on in (False, True):
        torch._dynamo.reset()
        torch.manual_seed(1)
        model = Net(factor=1.0)
        compiled = torch.compile(model, backend=backend, options={"heal": on, "heal_after": 1})
        results[on] = [step(compiled, model, x) for _ in range(3)]
        assert mpopt.counters["graphs"] == 1 and mpopt.counters["nonfinite_calls"] == 0
    for (loss, grads), (other, others) in zip(results[False], results[True]):
        assert torch.equal(loss, other)
        assert all(map(torch.equal, grads, others))


def test_an_overflow_in_backward_is_healed():
    class Steep(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x):
            return (self.inner(x).float() * 1e6).sum()

    model, x = Steep(), torch.randn(8, 4)
    compiled = compile_model(model, heal_after=1)
    loss, grads = step(compiled, model, x)
    assert loss.isfinite() and not is_finite(loss, grads)
    loss, grads = step(compiled, model, x)
    assert error_of(grads, exact_step(model, x)[1]) < 1e-6
    loss, grads = step(compiled, model, x)
    assert error_of(grads, exact_step(model, x)[1]) < 1e-6
    assert mpopt.counters["nonfinite_calls"] == 1
    assert {each.cause.phase for each in heal.healed()} == {"backward"}
    assert "inner" in {each.region for each in heal.healed()}


def test_a_large_loss_scale_is_no_fault_of_a_region():
    model, x = Net(factor=1.0), torch.randn(8, 16)
    compiled = compile_model(model, heal_after=1)
    for _ in range(2):
        assert not is_finite(*step(compiled, model, x, scale=2.0**40))
    assert is_finite(*step(compiled, model, x))
    assert mpopt.counters["nonfinite_calls"] == 2
    assert mpopt.counters["heal_searches"] == 1
    assert heal.healed() == []


def test_an_infinite_loss_scale_is_not_even_counted():
    model, x = Net(factor=1.0), torch.randn(8, 16)
    compiled = compile_model(model, heal_after=1)
    for _ in range(2):
        step(compiled, model, x, scale=float("inf"))
    assert mpopt.counters["nonfinite_calls"] == 0


def test_what_fp32_does_not_help_is_left_alone():
    class Root(nn.Module):
        def forward(self, x):
            return (x.half() - 1).sqrt().float()

    compiled = compile_model(Root(), heal_after=1)
    for _ in range(5):
        assert compiled(torch.zeros(3)).isnan().all()
    # After 1, 2, 4 calls: looking costs time, and it may be what the model means.
    assert mpopt.counters["heal_searches"] == 2
    assert heal.healed() == []


def test_bad_weights_are_nobodys_fault():
    model, x = Net(factor=1.0), torch.randn(8, 16)
    with torch.no_grad():
        model.first.weight[0, 0] = float("nan")
    compiled = compile_model(model, heal_after=1)
    for _ in range(3):
        step(compiled, model, x)
    assert mpopt.counters["heal_searches"] >= 1 and heal.healed() == []


def test_other_shapes_of_the_same_code_are_healed_too():
    model = Net()
    compiled = compile_model(model, heal_after=1)
    assert not is_finite(*step(compiled, model, torch.randn(8, 16)))
    for size in (8, 5, 3, 8):
        x = torch.randn(size, 16)
        loss, grads = step(compiled, model, x)
        exact_loss, exact_grads = exact_step(model, x)
        assert abs(float(loss - exact_loss)) < 2e-3 * float(exact_loss)
        assert error_of(grads, exact_grads) < 5e-3
    assert mpopt.counters["heal_searches"] == 1


def test_buffers_and_random_numbers_are_not_touched_by_the_search():
    class Counting(Net):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(16)

        def forward(self, x):
            return self.last(self.block(self.norm(self.first(x)))).float().square().mean()

    model, x = Counting(), torch.randn(8, 16)
    compiled = compile_model(model, heal_after=1)
    step(compiled, model, x)
    state = torch.get_rng_state()
    step(compiled, model, x)
    assert int(model.norm.num_batches_tracked) == 2
    assert torch.equal(torch.get_rng_state(), state)
    assert mpopt.counters["healed_regions"] > 0


def test_half_outputs_keep_their_type():
    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))

        def forward(self, x):
            return self.block(x)

    model = Half()
    with torch.no_grad():
        model.block[0].weight.mul_(1e6)
        model.block[1].weight.div_(1e6)
    compiled = compile_model(model, heal_after=1)
    x = torch.randn(3, 4)
    with torch.autocast("cpu", torch.float16):
        results = [compiled(x) for _ in range(3)]
    assert not results[0].isfinite().all()
    exact = copy.deepcopy(model).double()(x.double())
    for result in results[1:]:
        assert result.dtype is torch.float16
        torch.testing.assert_close(result.double(), exact, rtol=2e-3, atol=1e-3)


def test_a_half_model_without_autocast_is_healed_too():
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2)).half()
    with torch.no_grad():
        model[0].weight.mul_(1e5)
        model[1].weight.div_(1e5)
    compiled, x = compile_model(model, heal_after=1), torch.randn(8, 4).half()
    assert not compiled(x).isfinite().all()
    exact = copy.deepcopy(model).double()(x.double())
    for _ in range(2):
        result = compiled(x)
        assert result.dtype is torch.float16
        torch.testing.assert_close(result.double(), exact, rtol=1e-2, atol=1e-2)
    assert [each.region for each in heal.healed()] == ["0", "1"]


def test_a_checkpointed_region_is_healed_too():
    class Checkpointed(Net):
        def forward(self, x):
            y = checkpoint(self.block, self.first(x), use_reentrant=False)
            return self.last(torch.tanh(y)).float().square().mean()

    model, x = Checkpointed(), torch.randn(8, 16)
    compiled = compile_model(model, heal_after=1)
    assert not is_finite(*step(compiled, model, x))
    exact_loss, exact_grads = exact_step(model, x)
    for _ in range(2):
        loss, grads = step(compiled, model, x)
        assert abs(float(loss - exact_loss)) < 2e-3 * float(exact_loss)
        assert error_of(grads, exact_grads) < 5e-3
    assert {each.region for each in heal.healed()} == {"block.0", "block.2"}


@pytest.mark.slow
def test_generated_code_is_healed_too():
    model, x = Net(), torch.randn(8, 16)
    compiled = compile_model(model, heal_after=1)
    with mock.patch.object(_torch, "compile_fx", COMPILE_FX):
        assert not is_finite(*step(compiled, model, x))
        exact_loss, exact_grads = exact_step(model, x)
        for _ in range(3):
            loss, grads = step(compiled, model, x)
            assert abs(float(loss - exact_loss)) < 2e-3 * float(exact_loss)
            assert error_of(grads, exact_grads) < 5e-3
    assert mpopt.counters["nonfinite_calls"] == 1


def test_without_dynamo_the_graph_runs_eagerly(caplog):
    def function(x):
        return ((x.half() * 1e4 * 1e4).float() * 1e-8,)

    graph = torch.fx.symbolic_trace(function)
    for node in graph.graph.nodes:
        if node.op != "output":
            dtype = torch.float32 if node.name in ("x", "float_1", "mul_2") else torch.float16
            node.meta["example_value"] = torch.ones(3, dtype=dtype)
    compiled = backend(graph, [torch.ones(3)], options={"heal": True, "heal_after": 1})
    results = [compiled(torch.ones(3))[0] for _ in range(3)]
    assert results[0].isinf().all()
    for result in results[1:]:
        torch.testing.assert_close(result, torch.ones(3))
    assert "runs eagerly from now on" in caplog.text


def test_regions_hold_their_modules():
    assert widening.is_inside("a.b", {"a"}) and widening.is_inside("a", {"a"})
    assert not widening.is_inside("ab", {"a"}) and not widening.is_inside("a", {"a.b"})
    assert widening.is_inside("", {""}) and not widening.is_inside("a", {""})
    assert widening.is_inside("a", {widening.EVERYTHING})
