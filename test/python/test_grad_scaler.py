"""mpopt.GradScaler beside torch.amp.GradScaler."""

from __future__ import annotations

import pickle

import mpopt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mpopt import optim
from mpopt.grad_scaler import LossScaleError

FIGURES = {"init_scale": 1024.0, "growth_interval": 3}


def weights(shape=(4, 16), seed=0):
    return torch.nn.Parameter(torch.randn(shape, generator=torch.Generator().manual_seed(seed)))


def scaled_backward(scaler, parameter, seed, bad=None):
    """The gradient of a loss, scaled; with a value in it that is not finite."""
    parameter.grad = None
    factor = torch.randn(parameter.shape, generator=torch.Generator().manual_seed(seed))
    scaler.scale((parameter * factor).sum()).backward()
    if bad is not None:
        parameter.grad.view(-1)[3] = bad


def run(scaler, optimizer, parameter, pattern, *, unscales=False, clip=None):
    trace = []
    for i, step in enumerate(pattern):
        bad = {"O": float("inf"), "N": float("nan")}.get(step)
        scaled_backward(scaler, parameter, i, bad)
        if unscales:
            scaler.unscale_(optimizer)
            if clip:
                torch.nn.utils.clip_grad_norm_([parameter], clip)
        scaler.step(optimizer)
        scaler.update()
        trace.append((scaler.get_scale(), scaler._get_growth_tracker()))
    return trace


@settings(max_examples=40, deadline=None)
@given(st.text("cON", min_size=1, max_size=12), st.booleans(), st.booleans(), st.booleans())
def test_trace_and_weights_are_those_of_torch(pattern, is_ours, unscales, clips):
    results = []
    for scaler_class, optimizer_class in (
        (torch.amp.GradScaler, torch.optim.AdamW),
        (mpopt.GradScaler, optim.AdamW if is_ours else torch.optim.AdamW),
    ):
        parameter = weights()
        fused = {} if optimizer_class is optim.AdamW else {"fused": True}
        optimizer = optimizer_class([parameter], lr=0.1, **fused)
        scaler = scaler_class("cpu", **FIGURES)
        clip = 0.5 if clips else None
        trace = run(scaler, optimizer, parameter, pattern, unscales=unscales, clip=clip)
        state = optimizer.state_dict()["state"].get(0, {})
        results.append((trace, parameter.detach(), state))
    assert results[0][0] == results[1][0]
    assert torch.equal(results[0][1], results[1][1])
    steps = [float(result[2].get("step", 0.0)) for result in results]
    assert steps[0] == steps[1] == pattern.count("c")


def messages(scaler_class, optimizer_class):
    """What a scaler answers to calls out of order."""
    parameter = weights()
    optimizer = optimizer_class([parameter], lr=0.1)
    scaler = scaler_class("cpu", **FIGURES)
    found = []

    def attempt(call):
        try:
            call()
        except Exception as error:
            found.append((type(error), str(error)))
        else:
            found.append(None)

    attempt(lambda: scaler.step(optimizer))
    attempt(lambda: scaler.update())
    scaled_backward(scaler, parameter, 0)
    attempt(lambda: scaler.update())
    attempt(lambda: scaler.step(optimizer, closure=lambda: 0.0))
    attempt(lambda: scaler.unscale_(optimizer))
    attempt(lambda: scaler.unscale_(optimizer))
    attempt(lambda: scaler.step(optimizer))
    attempt(lambda: scaler.step(optimizer))
    attempt(lambda: scaler.unscale_(optimizer))
    attempt(lambda: pickle.dumps(scaler))
    attempt(lambda: scaler.update(torch.ones(2)))
    attempt(lambda: scaler.update(100.0))
    attempt(lambda: scaler.load_state_dict({}))
    found.append(scaler.get_scale())
    return found


@pytest.mark.parametrize("ours", [optim.SGD, optim.AdamW])
def test_calls_out_of_order_fail_as_in_torch(ours):
    expected = messages(torch.amp.GradScaler, ours.torch_class)
    assert messages(mpopt.GradScaler, ours.torch_class) == expected
    assert messages(mpopt.GradScaler, ours) == expected
    assert expected.count(None) < len(expected) / 2


def test_state_dict_goes_both_ways():
    theirs, ours = torch.amp.GradScaler("cpu", **FIGURES), mpopt.GradScaler("cpu", **FIGURES)
    for scaler in (theirs, ours):
        parameter = weights()
        run(scaler, torch.optim.SGD([parameter], lr=0.1), parameter, "Occ")
    assert theirs.state_dict() == ours.state_dict()
    fresh = mpopt.GradScaler("cpu")
    fresh.load_state_dict(theirs.state_dict())
    parameter = weights()
    trace = run(fresh, torch.optim.SGD([parameter], lr=0.1), parameter, "c")
    assert trace == [(1024.0, 0)], "the third clean step"
    back = torch.amp.GradScaler("cpu")
    back.load_state_dict(fresh.state_dict())
    assert back.get_scale() == 1024.0


def test_disabled_does_nothing():
    scaler = mpopt.GradScaler("cpu", enabled=False)
    parameter = weights()
    optimizer = optim.SGD([parameter], lr=0.1)
    loss = parameter.sum()
    assert scaler.scale(loss) is loss
    loss.backward()
    before = parameter.detach().clone()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert not torch.equal(parameter, before)
    assert scaler.state_dict() == {}
    scaler.load_state_dict({"scale": 7.0})
    assert scaler.get_scale() == 1.0


def test_pickle_keeps_the_scale():
    scaler = mpopt.GradScaler("cpu", rule="megatron", **FIGURES)
    parameter = weights()
    run(scaler, torch.optim.SGD([parameter], lr=0.1), parameter, "OO")
    loaded = pickle.loads(pickle.dumps(scaler))
    assert loaded.get_scale() == 512.0
    assert loaded.rule == "megatron"
    assert run(loaded, torch.optim.SGD([parameter], lr=0.1), parameter, "O")[0][0] == 256.0


# Case 16: one scale, several optimizers.
def test_one_of_two_optimizers_overflows():
    scaler = mpopt.GradScaler("cpu", **FIGURES)
    first, second = weights(seed=1), weights(seed=2)
    optimizers = [optim.AdamW([p], lr=0.1) for p in (first, second)]
    before = [p.detach().clone() for p in (first, second)]
    scaled_backward(scaler, first, 0, float("inf"))
    scaled_backward(scaler, second, 1)
    for optimizer in optimizers:
        scaler.step(optimizer)
    scaler.update()
    assert torch.equal(first, before[0])
    assert not torch.equal(second, before[1])
    assert scaler.get_scale() == 512.0
    assert scaler.skipped_steps == 1


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_gradients_are_taken(dtype):
    scaler = mpopt.GradScaler("cpu", init_scale=1024.0)
    parameter = torch.nn.Parameter(torch.ones(16, dtype=dtype))
    optimizer = optim.SGD([parameter], lr=0.5)
    scaler.scale((parameter * 0.25).sum()).backward()
    assert parameter.grad.dtype is dtype
    scaler.step(optimizer)
    scaler.update()
    assert torch.equal(parameter, torch.full((16,), 0.875, dtype=dtype))


def test_gradients_stay_as_they_are():
    scaler = mpopt.GradScaler("cpu", init_scale=1024.0)
    parameter = weights()
    optimizer = optim.SGD([parameter], lr=0.5)
    scaled_backward(scaler, parameter, 0)
    before = parameter.grad.clone()
    scaler.step(optimizer)
    assert torch.equal(parameter.grad, before), "scaled; the update has read them once"


def test_clip_in_the_step_is_clip_of_unscaled_gradients():
    results = []
    for unscales in (True, False):
        scaler = mpopt.GradScaler("cpu", init_scale=1000.0)
        parameter = weights()
        optimizer = optim.AdamW([parameter], lr=0.1)
        scaled_backward(scaler, parameter, 0)
        if unscales:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_([parameter], 0.5)
            scaler.step(optimizer)
        else:
            scaler.step(optimizer, clip=0.5)
        results.append(parameter.detach())
    torch.testing.assert_close(*results, rtol=1e-6, atol=1e-7)


def test_inf_and_nan_are_told_apart():
    scaler = mpopt.GradScaler("cpu", **FIGURES)
    parameter = weights()
    run(scaler, optim.SGD([parameter], lr=0.1), parameter, "cONNc")
    assert (scaler.applied_steps, scaler.skipped_steps, scaler.nan_steps) == (2, 3, 2)


# ---- rules


def test_rules_are_those_of_the_runtime():
    assert mpopt.GradScaler.rules()[0] == "torch"
    assert {"apex", "megatron", "deepspeed", "tf", "keras3", "jmp", "flax", "paddle"} <= set(
        mpopt.GradScaler.rules()
    )
    scaler = mpopt.GradScaler("cpu", rule="apex_hysteresis", **FIGURES)
    parameter = weights()
    trace = run(scaler, optim.SGD([parameter], lr=0.1), parameter, "OO.OO")
    assert [scale for scale, _ in trace] == [1024, 512, 512, 512, 256]


def test_rule_that_grows_later_starts_later():
    scaler = mpopt.GradScaler("cpu", rule="flax", **FIGURES)
    parameter = weights()
    trace = run(scaler, torch.optim.SGD([parameter], lr=0.1), parameter, "cccc")
    assert [scale for scale, _ in trace] == [1024, 1024, 1024, 2048]


def test_failing_at_the_floor_names_the_scale():
    scaler = mpopt.GradScaler("cpu", rule="deepspeed", init_scale=1.0)
    parameter = weights()
    optimizer = optim.SGD([parameter], lr=0.1)
    run(scaler, optimizer, parameter, "N")
    with pytest.raises(LossScaleError, match=r"at its least, 1.0, .* after 2 steps in a row"):
        run(scaler, optimizer, parameter, "N")
    assert issubclass(LossScaleError, FloatingPointError)


def test_figures_are_checked_in_the_setters_too():
    with pytest.raises(ValueError, match="unknown rule 'megatrn'; did you mean 'megatron'"):
        mpopt.GradScaler("cpu", rule="megatrn")
    for kwargs in ({"init_scale": -1.0}, {"growth_interval": 0}, {"min_scale": 1e9}):
        with pytest.raises(ValueError, match=r"scale|interval"):
            mpopt.GradScaler("cpu", **kwargs)
    scaler = mpopt.GradScaler("cpu")
    for setter, value in (
        (scaler.set_growth_factor, 1.0),
        (scaler.set_backoff_factor, 0.0),
        (scaler.set_growth_interval, 0),
    ):
        with pytest.raises(ValueError, match=r"growth|backoff"):
            setter(value)
    assert scaler.get_growth_factor() == 2.0
    assert scaler.get_backoff_factor() == 0.5
    assert scaler.get_growth_interval() == 2000
    scaler.set_growth_interval(1)
    parameter = weights()
    assert run(scaler, optim.SGD([parameter], lr=0.1), parameter, "c")[0][0] == 131072.0


def test_loading_a_state_does_not_run_an_update():
    scaler = mpopt.GradScaler("cpu", init_scale=512.0, growth_interval=3)
    state = {**scaler.state_dict(), "scale": 512.0, "_growth_tracker": 2}
    scaler.load_state_dict(state)
    parameter = weights()
    optimizer = optim.AdamW([parameter], lr=0.1)
    scaled_backward(scaler, parameter, 0)
    optimizer.load_state_dict(optimizer.state_dict())
    assert (scaler.get_scale(), scaler._get_growth_tracker()) == (512.0, 2)
    scaler.step(optimizer)
    scaler.update()
    assert (scaler.get_scale(), scaler._get_growth_tracker()) == (1024.0, 0)


def test_torchs_scaler_drives_our_optimizer():
    results = []
    for optimizer_class, kwargs in ((optim.AdamW, {}), (torch.optim.AdamW, {"fused": True})):
        parameter = weights()
        scaler = torch.amp.GradScaler("cpu", **FIGURES)
        optimizer = optimizer_class([parameter], lr=0.1, **kwargs)
        results.append((run(scaler, optimizer, parameter, "ccONcc"), parameter.detach()))
    assert results[0][0] == results[1][0]
    assert torch.equal(results[0][1], results[1][1])
