"""Public reports about loss scaling and optimizers (B43 to B57), with the values given there.

Each test is named for its report. Not tested here: what needs a CUDA device (replay of a
captured graph, the count of host reads of a step there: B43, B51, B57), and what is said of a
traced step (operators that the importer takes, diagnostics with two locations: B43, B47).
"""

from __future__ import annotations

import logging
import math

import mpopt
import pytest
import torch
from mpopt import optim
from mpopt.errors import MpoptError
from mpopt.grad_scaler import LossScaleError

INF, NAN = math.inf, math.nan
BF16 = torch.bfloat16


def weight(*values, dtype=torch.float32):
    return torch.nn.Parameter(torch.tensor(values, dtype=dtype))


def give(parameter, *values, dtype=None):
    """The gradient as backward would leave it, in a type of its own if asked."""
    if dtype is not None and dtype is not parameter.dtype:
        if not hasattr(parameter, "grad_dtype"):
            pytest.skip("this PyTorch has no grad_dtype")
        parameter.grad_dtype = dtype
    parameter.grad = torch.tensor(values, dtype=dtype or parameter.dtype)


def scaler_at(scale, **figures):
    scaler = mpopt.GradScaler("cpu", init_scale=scale, **figures)
    scaler.scale(torch.zeros(()))
    return scaler


def step(scaler, optimizer, *values, **kwargs):
    give(optimizer.param_groups[0]["params"][0], *values)
    scaler.step(optimizer, **kwargs)
    scaler.update()


def snapshot(optimizer):
    """All that a step may change."""
    params = [p for group in optimizer.param_groups for p in group["params"]]
    states = [value for p in params for value in optimizer.state[p].values()]
    return [t.detach().clone() for t in (*params, *states)]


def is_same(first, second):
    return all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("bad", [INF, -INF, NAN])
def test_b43_skipped_step_leaves_every_bit(bad):
    parameter = weight(1.0, -2.0)
    optimizer = optim.AdamW([parameter])
    scaler = scaler_at(1024.0)
    step(scaler, optimizer, 512.0, 1.0)
    before, reads = snapshot(optimizer), mpopt.counters["scaler_host_reads"]
    step(scaler, optimizer, 1.0, bad)
    assert is_same(snapshot(optimizer), before)
    assert optimizer.state[parameter]["step"] == 1.0
    assert mpopt.counters["scaler_host_reads"] == reads


@pytest.mark.parametrize("is_used", [False, True])
def test_b44_scaler_state_goes_round(is_used):
    figures = {"growth_factor": 3.0, "backoff_factor": 0.25, "growth_interval": 2}
    scaler = scaler_at(1024.0, **figures)
    optimizer = optim.AdamW([weight(1.0)])
    step(scaler, optimizer, 1.0)
    state = scaler.state_dict()
    assert state == {"scale": 1024.0, **figures, "_growth_tracker": 1}
    fresh = scaler_at(7.0) if is_used else mpopt.GradScaler("cpu", init_scale=7.0)
    if not is_used:
        with pytest.raises(AssertionError, match="unscale_ but _scale is None"):
            fresh.unscale_(optimizer)
    fresh.load_state_dict(state)
    optimizer.load_state_dict(optimizer.state_dict())  # runs no update
    assert fresh.state_dict() == state
    fresh.scale(torch.zeros(()))
    fresh.set_growth_factor(2.0)
    step(fresh, optimizer, 1.0)
    assert (fresh.get_scale(), fresh._get_growth_tracker()) == (2048.0, 0)


def overflow(scaler, optimizer, scales, value):
    """Steps that all overflow, with the scale after each, until the scaler refuses."""
    for _ in range(200):
        step(scaler, optimizer, value)
        scales.append(scaler.get_scale())


def test_b46_scale_falls_by_the_rule_to_a_floor_and_ends():
    scaler = scaler_at(65536.0, rule="deepspeed", min_scale=0.25, floor_tolerance=2)
    optimizer = optim.SGD([weight(1.0)], lr=0.0)
    with pytest.raises(LossScaleError, match=r"at its least, 0.25, .* after 22 steps in a row"):
        overflow(scaler, optimizer, scales := [], NAN)
    assert scales == [65536.0, *(2.0**i for i in range(15, -3, -1)), 0.25, 0.25]
    assert (scaler.status, scaler.nan_steps) == ("skipped", 22)


def test_b46_without_a_floor_no_scale_below_the_least_normal_number():
    scaler = scaler_at(65536.0)
    optimizer = optim.SGD([weight(1.0)], lr=0.0)
    with pytest.raises(LossScaleError, match="min_scale keeps it from falling so far"):
        overflow(scaler, optimizer, [], INF)
    assert scaler.skipped_steps == 143
    assert 1.0 / scaler.get_scale() < INF


@pytest.mark.parametrize("last", [4, 3])
def test_b47_micro_batches_are_one_batch(last):
    """Windows of 4 micro-batches, the last one short: one unscale, step and update for each."""
    inputs = torch.randn(4 + last, 8, generator=torch.Generator().manual_seed(0))
    results = []
    for is_split in (False, True):
        parameter = torch.nn.Parameter(torch.linspace(-1, 1, 8))
        optimizer = optim.SGD([parameter], lr=0.1)
        scaler = scaler_at(1024.0)
        for window in (inputs[:4], inputs[4:]):
            for batch in window.split(1) if is_split else [window]:
                loss = (batch @ parameter).square().sum() / len(window)
                scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_([parameter], 0.5)
            with pytest.raises(RuntimeError, match="already been called on this optimizer"):
                scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        results.append(parameter.detach())
    torch.testing.assert_close(*results, rtol=1e-6, atol=1e-7)


def test_b48_fp16_gradients_are_unscaled_in_fp32():
    parameter = weight(0.0)
    optimizer = optim.SGD([parameter], lr=1.0)
    scaler = scaler_at(1024.0)
    give(parameter, 2.0**-16, dtype=torch.float16)
    scaler.step(optimizer)
    scaler.update()
    assert parameter.item() == -(2.0**-26), "0 as an fp16 number"
    give(parameter, INF, dtype=torch.float16)
    scaler.step(optimizer)
    scaler.update()
    assert (scaler.status, parameter.item()) == ("skipped", -(2.0**-26))


def test_b48_half_weights_without_a_master_get_a_warning(caplog):
    parameter = weight(1.0, dtype=torch.float16)
    optimizer = optim.SGD([parameter], lr=1.0)
    mpopt.counters["stalled_weights"] = 0
    with caplog.at_level(logging.WARNING, logger="mpopt"):
        step(scaler_at(1024.0), optimizer, 2.0**-16)
    assert parameter.item() == 1.0
    assert mpopt.counters["stalled_weights"] == 1
    assert 'master="split" or rounding="stochastic"' in caplog.text


def test_b50_skips_are_known_and_not_counted():
    optimizer = optim.AdamW([weight(1.0)])
    scaler = scaler_at(1024.0)
    seen = []
    for value in (INF, 1.0, 1.0):
        step(scaler, optimizer, value)
        seen.append((scaler.status, optimizer.skipped_steps))
    assert seen == [("skipped", 1), ("applied", 1), ("applied", 1)]
    assert (scaler.applied_steps, scaler.skipped_steps) == (2, 1)
    (state,) = optimizer.state.values()
    assert state["step"] == 2.0


@pytest.mark.parametrize("unscales", [False, True])
def test_b51_clip_is_of_the_unscaled_norm(unscales):
    parameter = weight(0.0, 0.0)
    optimizer = optim.SGD([parameter], lr=1.0)
    scaler = scaler_at(1024.0)
    buffer = scaler._scale
    give(parameter, 3.0 * 1024, 4.0 * 1024)
    if unscales:
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_([parameter], 1.0)
        scaler.step(optimizer)
    else:
        scaler.step(optimizer, clip=1.0)
    scaler.update()
    torch.testing.assert_close(-parameter.detach(), torch.tensor([0.6, 0.8]), rtol=0, atol=1e-6)
    step(scaler, optimizer, INF, 1.0, clip=1.0)
    torch.testing.assert_close(-parameter.detach(), torch.tensor([0.6, 0.8]), rtol=0, atol=1e-6)
    assert scaler._scale is buffer, "the scale is updated where it lies"


def test_b51_norm_of_fp16_gradients_is_in_fp32():
    parameter = weight(0.0, 0.0, dtype=torch.float16)
    optimizer = optim.SGD([parameter], lr=1.0)
    give(parameter, 5000.0, 0.0)
    assert optimizer.measure().norm == 5000.0
    optimizer.step(clip=1.0)
    assert parameter.tolist() == [-1.0, 0.0]


def table():
    """Weights after a step of fused AdamW, with and without an explicit unscale."""
    for unscales in (False, True):
        for value in (3.0, INF):
            yield unscales, value


@pytest.mark.parametrize(("unscales", "value"), list(table()))
def test_b52_explicit_unscale_changes_nothing(unscales, value):
    results = []
    for cls, scaler in (
        (optim.AdamW, mpopt.GradScaler("cpu", init_scale=512.0)),
        (torch.optim.AdamW, torch.amp.GradScaler("cpu", init_scale=512.0)),
    ):
        parameter = weight(1.0, -2.0)
        optimizer = cls([parameter], lr=0.1)
        scaler.scale(torch.zeros(()))
        step(scaler, optimizer, 100.0, 5.0)
        before = snapshot(optimizer)
        give(parameter, value * 512, 1.0)
        if unscales:
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        assert is_same(snapshot(optimizer), before) == (value == INF)
        results.append(parameter.detach())
    torch.testing.assert_close(*results, rtol=1e-6, atol=0)


@pytest.mark.parametrize("clip", [0.0, 1.0])
def test_b52_inf_between_unscale_and_step(clip):
    """Decided by the check of `unscale_`, as in PyTorch; with `clip`, which reads all
    gradients again, by that."""
    parameter = weight(1.0)
    optimizer = optim.SGD([parameter], lr=1.0)
    scaler = scaler_at(2.0)
    give(parameter, 2.0)
    scaler.unscale_(optimizer)
    parameter.grad.fill_(INF)
    scaler.step(optimizer, clip=clip)
    assert parameter.item() == (1.0 if clip else -INF)


def test_b54_any_mix_of_types_is_one_optimizer():
    """Weights within one step of their type of an fp32 reference, over five steps."""
    mixes = [
        (torch.float32, BF16, torch.float32),
        (BF16, BF16, torch.float32),
        (BF16, torch.float32, torch.float32),
        (torch.float32, torch.float32, BF16),
        (torch.float16, torch.float16, torch.float32),
    ]
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(64, generator=generator).to(BF16).float()
    params = [torch.nn.Parameter(start.to(dtype, copy=True)) for dtype, _, _ in mixes]
    groups = [
        {"params": [p], "state_dtype": state}
        for p, (_, _, state) in zip(params, mixes, strict=True)
    ]
    optimizer = optim.AdamW(groups, lr=1e-2)
    reference = torch.nn.Parameter(start.clone())
    stock = torch.optim.AdamW([reference], lr=1e-2)
    for _ in range(5):
        grad = torch.randn(64, generator=generator).to(BF16).float()
        for p, (_, dtype, _) in zip(params, mixes, strict=True):
            give(p, *grad.tolist(), dtype=dtype)
        reference.grad = grad
        optimizer.step()
        stock.step()
    for p, (dtype, _, state) in zip(params, mixes, strict=True):
        assert optimizer.state[p]["exp_avg"].dtype is state
        # A step rounds once; five of them by half a step of the type each.
        eps = torch.finfo(dtype).eps if dtype is not torch.float32 else 1e-6
        bound = 2.5 * eps * reference.detach().abs().clamp(min=0.25)
        if state is BF16:
            bound = bound + 1e-2 * 5 * 2**-7
        assert ((p.detach().float() - reference.detach()).abs() <= bound).all()


def test_b54_error_names_what_does_not_fit():
    parameter = torch.nn.Parameter(torch.ones(3, 2))
    optimizer = optim.AdamW([parameter])
    parameter.grad = torch.ones(3, 2)
    optimizer.step()
    state = optimizer.state[parameter]
    mean = state["exp_avg"]
    state["exp_avg"] = torch.zeros(2, 3)
    with pytest.raises(MpoptError, match=r"shape \(2, 3\) .* parameter of shape \(3, 2\)"):
        optimizer.step()
    state["exp_avg"] = mean.t().contiguous().t()
    with pytest.raises(MpoptError, match=r"order.*strides \(1, 3\).*\(2, 1\)"):
        optimizer.step()


def test_b55_small_decay_reaches_half_weights_stochastically():
    """1e5 stores of 1 - 1e-3: nearest changes nothing, stochastic the mean by 1e-3 ± 5 %."""
    changes = {}
    for rounding in ("nearest", "stochastic"):
        parameter = torch.nn.Parameter(torch.ones(100_000, dtype=BF16))
        optimizer = optim.AdamW([parameter], lr=1e-2, weight_decay=0.1, rounding=rounding)
        parameter.grad = torch.zeros_like(parameter)
        optimizer.step()
        changes[rounding] = 1.0 - parameter.detach().double().mean().item()
    assert changes["nearest"] == 0.0
    assert changes["stochastic"] == pytest.approx(1e-3, rel=0.05)


def test_b55_split_master_keeps_a_decay_of_1e_5():
    parameter = weight(1.0, dtype=BF16)
    optimizer = optim.AdamW([parameter], lr=1e-3, weight_decay=1e-2, master="split")
    for _ in range(100):
        parameter.grad = torch.zeros_like(parameter)
        optimizer.step()
    change = 1.0 - optimizer.master_weight(parameter).item()
    assert change == pytest.approx(1.0 - (1 - 1e-5) ** 100, rel=0.005)  # 100 roundings of fp32
    assert optimizer.state[parameter]["exp_avg"].dtype is torch.float32


def test_b55_weights_that_do_not_move_are_reported(caplog):
    parameter = torch.nn.Parameter(torch.ones(1000, dtype=BF16))
    optimizer = optim.AdamW([parameter], lr=1e-4, state_dtype=torch.float32)
    mpopt.counters["stalled_weights"] = 0
    with caplog.at_level(logging.WARNING, logger="mpopt"):
        for _ in range(3):
            parameter.grad = torch.ones_like(parameter)
            optimizer.step()
    assert mpopt.counters["stalled_weights"] == 3
    assert len(caplog.records) == 1
    assert "too small for a weight of torch.bfloat16 and shape (1000,)" in caplog.text
    moved = optim.AdamW([parameter], lr=1e-2, state_dtype=torch.float32)
    moved.step()
    assert mpopt.counters["stalled_weights"] == 3


@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_b57_flag_scale_and_step_are_read_at_each_step(momentum):
    parameter = weight(1.0)
    optimizer = optim.SGD([parameter], lr=1.0, momentum=momentum)
    flag, scale = torch.zeros(()), torch.full((), 4.0)
    optimizer.found_inf, optimizer.grad_scale = flag, scale
    expected, buffer = 1.0, 0.0
    for is_bad, value in ((1.0, 4.0), (0.0, 4.0), (0.0, 8.0), (1.0, 8.0), (0.0, 2.0)):
        flag.fill_(is_bad)
        scale.fill_(value)
        give(parameter, 1.0)
        optimizer.step()
        if not is_bad:
            buffer = momentum * buffer + 1.0 / value
            expected -= buffer
        assert parameter.item() == expected
    assert optimizer.skipped_steps == 2


def test_b57_optimizers_that_evaluate_the_model_again_are_refused():
    parameter = weight(1.0)
    lbfgs = torch.optim.LBFGS([parameter])
    with pytest.raises(MpoptError, match=r"cannot fuse .*LBFGS"):
        optim.fuse(lbfgs)
    scaler = scaler_at(4.0)
    give(parameter, 1.0)
    with pytest.raises(RuntimeError, match="Closure use is not currently supported"):
        scaler.step(optim.SGD([parameter], lr=1.0), closure=lambda: 0.0)
    assert parameter.item() == 1.0
