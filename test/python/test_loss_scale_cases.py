"""Edge cases of loss scaling and scaled updates, by number, through GradScaler and optimizers.

Bit patterns are those of float32. The state machine and the kernels have theirs in
LossScalerTest.cpp and UpdateTest.cpp, as "Case n"; case 17, of several ranks, is in
test_distributed.py; the rest of case 21 and of case 23 in test_storage.py and test_optim.py.
"""

from __future__ import annotations

import math

import mpopt
import pytest
import torch
from mpopt import optim
from mpopt.grad_scaler import LossScaleError
from mpopt.half_weights import half_of

INF, NAN = math.inf, math.nan


def one(value=1.0, dtype=torch.float32):
    return torch.nn.Parameter(torch.tensor([value], dtype=dtype))


def bits(tensor):
    return [value & 0xFFFFFFFF for value in tensor.detach().view(torch.int32).tolist()]


def give(parameter, *values):
    """The scaled gradient, as backward would leave it."""
    parameter.grad = torch.tensor(values, dtype=parameter.dtype).view(parameter.shape)


def scaler_at(scale, interval=2000, **figures):
    scaler = mpopt.GradScaler("cpu", init_scale=scale, growth_interval=interval, **figures)
    scaler.scale(torch.zeros(()))
    return scaler


def state_of(scaler):
    return scaler.get_scale(), scaler._get_growth_tracker()


def step(scaler, optimizer, *gradients, unscales=False, **kwargs):
    """One scaled step; `gradients` are scaled already, one for each parameter."""
    params = [p for group in optimizer.param_groups for p in group["params"]]
    for p, gradient in zip(params, gradients, strict=True):
        give(p, gradient)
    if unscales:
        scaler.unscale_(optimizer)
    scaler.step(optimizer, **kwargs)
    scaler.update()
    return state_of(scaler)


def trace(scaler, pattern):
    """Scale and tracker after each step of a pattern of overflows (O) and clean steps."""
    optimizer = optim.SGD([one()], lr=0.0)
    return [step(scaler, optimizer, INF if each == "O" else 1.0) for each in pattern]


def test_case_01_growth_boundary():
    assert trace(scaler_at(1024.0, 3), "ccc") == [(1024, 1), (1024, 2), (2048, 0)]


def test_case_02_overflow_one_short_of_growth():
    scales, trackers = zip(*trace(scaler_at(1024.0, 3), "ccOccc"), strict=True)
    assert scales == (1024, 1024, 512, 512, 512, 1024)
    assert trackers == (1, 2, 0, 1, 2, 0)


def test_case_03_growth_at_the_top():
    assert trace(scaler_at(2.0**127, 1), "c") == [(2.0**127, 0)]
    assert trace(scaler_at(2.0**24, 1, max_scale=2.0**24), "c") == [(2.0**24, 0)]


def test_case_04_backoff_is_rounded_once():
    assert trace(scaler_at(3.0, backoff_factor=0.3), "O") == [(0.8999999761581421, 0)]


def test_case_05_floor():
    scaler = scaler_at(65536.0, min_scale=1.0)
    assert trace(scaler, "O" * 17)[15:] == [(1.0, 0), (1.0, 0)]
    assert scaler._machine.at_floor
    assert scaler._machine.inverse == 1.0


def test_case_05_without_a_floor_the_end_is_an_error():
    scaler = scaler_at(65536.0)
    trace(scaler, "O" * 142)
    assert scaler.get_scale() == 2.0**-126
    with pytest.raises(LossScaleError, match=r"no float32 can undo, in 143 steps in a row"):
        trace(scaler, "O")


def test_case_06_unscaling_in_fp16_range():
    parameter = one(dtype=torch.float16)
    optimizer = optim.SGD([parameter], lr=2.0**-10)
    scaler = scaler_at(0.5)
    step(scaler, optimizer, 40000.0)
    assert scaler.status == "applied"
    assert parameter.item() == torch.tensor(1.0 - 80000.0 / 1024).half().item()
    assert parameter.grad.item() == 40000.0, "nothing is written back"


def test_case_06_overflow_by_unscaling_is_an_overflow():
    parameter = one()
    scaler = scaler_at(0.5)
    step(scaler, optim.SGD([parameter], lr=0.0), torch.finfo(torch.float32).max)
    assert (scaler.status, parameter.item(), scaler.get_scale()) == ("skipped", 1.0, 0.25)


@pytest.mark.parametrize("flag", [1.0, 2.0, 8.0, NAN])
def test_case_07_any_flag_skips(flag):
    parameter = one()
    optimizer = optim.AdamW([parameter])
    give(parameter, 1.0)
    optimizer.step()
    copy = optimizer.half_copy(parameter).clone()
    before = [t.clone() for t in (parameter.detach(), *optimizer.state[parameter].values())]
    optimizer.found_inf = torch.tensor(flag)
    give(parameter, INF)
    optimizer.step()
    after = [parameter.detach(), *optimizer.state[parameter].values()]
    assert all(torch.equal(a, b) for a, b in zip(after, before, strict=True))
    assert torch.equal(optimizer.half_copy(parameter), copy)


def test_case_07_two_devices_back_off_once():
    optimizers = [optim.SGD([one()], lr=0.0) for _ in range(2)]
    scaler = scaler_at(1024.0)
    for optimizer, bad in zip(optimizers, (INF, NAN), strict=True):
        give(optimizer.param_groups[0]["params"][0], bad)
        scaler.step(optimizer)
    scaler.update()
    assert state_of(scaler) == (512.0, 0)
    assert (scaler.skipped_steps, scaler.nan_steps) == (1, 1)


@pytest.mark.parametrize(("gradient", "pattern"), [(5.0, 0x3FD55556), (7.0, 0x40155556)])
@pytest.mark.parametrize("unscales", [False, True])
def test_case_08_reciprocal_not_division(gradient, pattern, unscales):
    parameter = one(0.0)
    step(scaler_at(3.0), optim.SGD([parameter], lr=1.0), gradient, unscales=unscales)
    assert bits(-parameter) == [pattern]


def test_case_09_skips_are_not_counted():
    parameter = one()
    optimizer = optim.AdamW([parameter], lr=1e-3, weight_decay=0.0)
    scaler = scaler_at(1.0, min_scale=1.0)
    for gradient in (INF, INF, INF, 1.0):
        step(scaler, optimizer, gradient)
    assert bits(parameter) == [0x3F7FBE77]
    assert optimizer.state[parameter]["step"] == 1.0


@pytest.mark.parametrize(("decay", "change"), [(0.0, -6.70058e-4), (0.01, -6.80048e-4)])
def test_case_10_a_step_with_zeros_is_not_a_skip(decay, change):
    parameter = one()
    optimizer = optim.AdamW([parameter], lr=1e-3, weight_decay=decay)
    give(parameter, 1.0)
    optimizer.step()
    before = parameter.item()
    give(parameter, 0.0)
    optimizer.step()
    assert parameter.item() - before == pytest.approx(change, abs=1.2e-7)
    state = optimizer.state[parameter]
    assert state["exp_avg"].item() == pytest.approx(0.09)
    assert state["exp_avg_sq"].item() == pytest.approx(0.000999)
    assert state["step"] == 2.0


def test_case_11_gradients_are_cleared_by_a_store():
    parameter = torch.nn.Parameter(torch.ones(3))
    optimizer = optim.SGD([parameter], lr=1.0)
    scaler = scaler_at(1024.0)
    give(parameter, INF, NAN, 4.0)
    scaler.step(optimizer, zero_grad=True)
    scaler.update()
    assert bits(parameter.grad) == [0, 0, 0]
    scaler.scale(parameter.sum()).backward()
    scaler.step(optimizer)
    assert parameter.grad.tolist() == [512.0] * 3
    assert parameter.tolist() == [0.0] * 3


@pytest.mark.parametrize("unscales", [False, True])
def test_cases_12_and_13_unscaled_once_by_the_scale_of_the_loss(unscales):
    parameter = one()
    scaler = scaler_at(1024.0, 1)
    state = step(scaler, optim.SGD([parameter], lr=0.1), 1024.0, unscales=unscales)
    assert bits(parameter) == [0x3F666666]
    assert state == (2048.0, 0)


@pytest.mark.parametrize(
    ("norm", "pattern"), [(0.5, 0x3F000000), (1.0, 0x3F7FFFF0), (2.0, 0x3F7FFFF8), (0.0, 0)]
)
def test_case_14_clip_coefficient(norm, pattern):
    parameter = one(0.0)
    step(scaler_at(1.0), optim.SGD([parameter], lr=1.0), norm, clip=1.0)
    assert bits(-parameter)[0] & 0x7FFFFFFF == pattern


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_case_15_norm_does_not_overflow(dtype):
    parameter = torch.nn.Parameter(torch.zeros(2, dtype=dtype))
    optimizer = optim.SGD([parameter], lr=1.0)
    give(parameter, 2e19, 2e19)
    assert optimizer.measure().norm == pytest.approx(2.8284271e19, rel=5e-3)
    scaler = scaler_at(1.0)
    scaler.step(optimizer, clip=1.0)
    scaler.update()
    assert scaler.status == "applied"
    torch.testing.assert_close(
        parameter.detach().float(), torch.full((2,), -math.sqrt(0.5)), rtol=5e-3, atol=0
    )
    tiny = torch.nn.Parameter(torch.zeros(4))
    give(tiny, *[1e-25] * 4)
    assert optim.SGD([tiny], lr=1.0).measure().norm == pytest.approx(2e-25, rel=1e-6)


def test_case_16_one_of_several_optimizers():
    bad, good = one(), one()
    optimizers = [optim.SGD([p], lr=0.5) for p in (bad, good)]
    scaler = scaler_at(1024.0, 3)
    trace(scaler, "c")
    give(bad, INF)
    give(good, 1024.0)
    for optimizer in optimizers:
        scaler.step(optimizer)
    scaler.update()
    assert (bad.item(), good.item()) == (1.0, 0.5)
    assert state_of(scaler) == (512.0, 0)


def test_case_16_no_gradients():
    parameter = one()
    optimizer = optim.AdamW([parameter])
    scaler = scaler_at(1024.0, 3)
    trace(scaler, "c")
    scaler.step(optimizer)
    scaler.update()
    assert scaler.status == "no_grads"
    assert state_of(scaler) == (1024.0, 1)
    assert not optimizer.state
    assert (parameter.item(), scaler.applied_steps, scaler.skipped_steps) == (1.0, 1, 0)
    # Beside an optimizer that has some, it does not count.
    other = optim.SGD([one()], lr=0.0)
    give(other.param_groups[0]["params"][0], 1.0)
    scaler.step(optimizer)
    scaler.step(other)
    scaler.update()
    assert (scaler.status, state_of(scaler)) == ("applied", (1024.0, 2))


def test_case_18_groups_share_the_step_count():
    first, second = one(), one()
    groups = [{"params": [first]}, {"params": [second]}]
    optimizer = optim.AdamW(groups, lr=1e-3, weight_decay=0.0)
    scaler = scaler_at(1.0, min_scale=1.0)
    step(scaler, optimizer, INF, 1.0)
    step(scaler, optimizer, 1.0, 1.0)
    assert bits(first) == bits(second) == [0x3F7FBE77]


def test_case_19_one_window_of_micro_batches():
    parameter = one()
    optimizer = optim.SGD([parameter], lr=1.0)
    scaler = scaler_at(4.0)
    for factor in (1.0, INF, 1.0, 1.0):
        scaler.scale((parameter * factor).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert state_of(scaler) == (2.0, 0)
    assert (scaler.skipped_steps, parameter.item()) == (1, 1.0)


def test_case_19_scale_does_not_change_between_micro_batches():
    parameter = one(0.0)
    optimizer = optim.SGD([parameter], lr=1.0)
    scaler = scaler_at(4.0)
    scaler.scale(parameter.sum()).backward()
    with pytest.raises(AssertionError, match="No inf checks were recorded"):
        scaler.update()
    scaler.update(2.0)  # what one sets oneself is one's own affair
    scaler.scale(parameter.sum()).backward()
    scaler.step(optimizer)
    assert parameter.item() == -3.0


def test_case_20_half_gradients_are_added_in_fp32():
    parameter = one()
    optimizer = optim.SGD([parameter], lr=1.0)
    optimizer.half_gradients = True
    for _ in range(512):
        half_of(parameter, torch.bfloat16).sum().backward()
    assert parameter.grad.item() == 512.0, "256 in a sum in bfloat16"
    assert parameter.grad.dtype is torch.float32


def sparse(dtype):
    embedding = torch.nn.Embedding(3, 1, sparse=True, dtype=dtype)
    torch.nn.init.zeros_(embedding.weight)
    values = torch.tensor([[40000.0], [40000.0]], dtype=dtype)
    embedding.weight.grad = torch.sparse_coo_tensor(torch.tensor([[0, 0]]), values, (3, 1))
    return embedding.weight


@pytest.mark.parametrize(
    ("dtype", "status", "value"),
    [(torch.float16, "skipped", 0.0), (torch.float32, "applied", -80000.0 / 1024)],
)
def test_case_22_sparse_gradients_are_added_before_the_check(dtype, status, value, monkeypatch):
    monkeypatch.setenv("MPOPT_STRICT", "0")
    weight = sparse(dtype)
    scaler = scaler_at(1024.0)
    scaler.step(optim.SGD([weight], lr=1.0))
    scaler.update()
    assert scaler.status == status
    assert weight.detach().view(-1).tolist() == [value, 0.0, 0.0]


@pytest.mark.parametrize("cls", [optim.SGD, torch.optim.SGD])
@pytest.mark.parametrize("unscales", [False, True])
def test_case_22_complex_gradients_are_pairs(cls, unscales):
    parameter = torch.nn.Parameter(torch.zeros(1, dtype=torch.cfloat))
    optimizer = cls([parameter], lr=1.0)
    scaler = scaler_at(2.0)
    step(scaler, optimizer, 3 + 4j, unscales=unscales)
    assert parameter.item() == -(1.5 + 2j)
    step(scaler, optimizer, complex(1, INF), unscales=unscales)
    assert (scaler.status, scaler.get_scale()) == ("skipped", 1.0)
    assert parameter.item() == -(1.5 + 2j)


def test_case_22_complex_norm():
    parameter = torch.nn.Parameter(torch.zeros(1, dtype=torch.cfloat))
    optimizer = optim.SGD([parameter], lr=1.0)
    give(parameter, 3 + 4j)
    assert (optimizer.measure(2.0).norm / 2) ** 2 == pytest.approx(6.25)


def test_case_23_lion():
    parameter = one()
    optimizer = optim.Lion([parameter], lr=0.1)
    scaler = scaler_at(1024.0)
    step(scaler, optimizer, 0.0)
    assert parameter.item() == 1.0
    step(scaler, optimizer, INF)
    assert (scaler.status, parameter.item()) == ("skipped", 1.0)
    assert optimizer.state[parameter]["exp_avg"].item() == 0.0


@pytest.mark.parametrize(
    ("rule", "pattern", "scales"),
    [
        ("apex_hysteresis", "OcOcOcOc", [1024] * 8),
        ("megatron", "OcOcOcOc", [1024, 1024, 512, 512, 256, 256, 128, 128]),
        ("apex_hysteresis", "OOO", [1024, 512, 256]),
        ("paddle", "OOO", [1024, 512, 512]),
    ],
)
def test_case_24_dialects_of_hysteresis(rule, pattern, scales):
    scaler = scaler_at(1024.0, rule=rule, hysteresis=2)
    assert [scale for scale, _ in trace(scaler, pattern)] == scales


def test_case_25_persistence():
    scaler = scaler_at(512.0, 3)
    trace(scaler, "cc")
    state = scaler.state_dict()
    fresh = mpopt.GradScaler("cpu")
    fresh.load_state_dict(state)
    parameter = one()
    optimizer = optim.AdamW([parameter])
    optimizer.load_state_dict(optimizer.state_dict())
    assert fresh.state_dict() == state, "before the first use"
    fresh.scale(torch.zeros(()))
    assert state_of(fresh) == (512.0, 2)
    assert trace(fresh, "c") == [(1024.0, 0)]


def test_case_25_control():
    disabled = mpopt.GradScaler("cpu", enabled=False)
    assert disabled.state_dict() == {}
    disabled.load_state_dict({"scale": NAN})
    scaler = scaler_at(512.0, 2000)
    with pytest.raises(RuntimeError, match="source state dict is empty"):
        scaler.load_state_dict({})
    parameter = one()
    optimizer = optim.SGD([parameter], lr=0.0)
    trace(scaler, "ccccc")
    give(parameter, INF)
    scaler.step(optimizer)
    scaler.update(100.0)
    assert state_of(scaler) == (100.0, 5), "the flag is dropped"
    scaler.unscale_(optimizer)  # ready again
    scaler.update(100.0)
    for rule, expected in (("torch", (100.0, 6)), ("tf", (200.0, 0))):
        lowered = scaler_at(100.0, rule=rule)
        lowered.load_state_dict({**lowered.state_dict(), "_growth_tracker": 5})
        lowered.set_growth_interval(3)
        assert trace(lowered, "c") == [expected], rule


def test_case_25_four_distinct_errors():
    parameter = one()
    optimizer = optim.SGD([parameter], lr=0.0)
    scaler = scaler_at(4.0)
    give(parameter, 1.0)
    texts = []
    for calls in (
        (scaler.unscale_, scaler.unscale_),
        (scaler.step, scaler.step),
        (scaler.step, scaler.unscale_),
    ):
        calls[0](optimizer)
        with pytest.raises(RuntimeError) as caught:
            calls[1](optimizer)
        texts.append(str(caught.value))
        scaler.update()
    with pytest.raises(AssertionError) as caught:
        scaler.update()
    assert len({*texts, str(caught.value)}) == 4


# ---- figures, and lines beside the cases

BAD = [
    ({"init_scale": NAN}, "initial scale"),
    ({"init_scale": INF}, "initial scale"),
    ({"growth_factor": 1.0}, "growth factor"),
    ({"growth_factor": NAN}, "growth factor"),
    ({"backoff_factor": 0.0}, "backoff factor"),
    ({"backoff_factor": 1.0}, "backoff factor"),
    ({"growth_interval": 0}, "growth interval"),
    ({"growth_interval": 2.5}, "growth_interval must be a whole number, not 2.5"),
    ({"growth_interval": INF}, "growth_interval must be a whole number, not inf"),
    ({"growth_interval": 2**40}, "growth_interval must be a whole number"),
    ({"growth_interval": "3"}, "growth_interval must be a number, not '3'"),
    ({"min_scale": 70000.0}, "least scale"),
    ({"min_scale": NAN}, "least scale"),
    ({"max_scale": 1.0}, "largest scale"),
    ({"max_scale": NAN}, "largest scale"),
    ({"hysteresis": 0}, "hysteresis"),
    ({"floor_tolerance": -1}, "tolerance"),
    ({"at_floor": "stay"}, "unknown at_floor 'stay'; known: hold, reset, fail"),
]


@pytest.mark.parametrize(("figures", "text"), BAD, ids=lambda v: None)
def test_bad_figures_are_refused_at_the_start_and_in_setters(figures, text):
    with pytest.raises(ValueError, match=text):
        mpopt.GradScaler("cpu", **figures)
    ((name, value),) = figures.items()
    scaler = scaler_at(65536.0)
    before = scaler.state_dict(), scaler._machine.figures()
    setter = getattr(scaler, f"set_{name}", None)
    if setter is not None:
        with pytest.raises(ValueError, match=text):
            setter(value)
    if name in before[0]:
        with pytest.raises(ValueError, match=text):
            scaler.load_state_dict({**before[0], name: value})
    assert (scaler.state_dict(), scaler._machine.figures()) == before


def test_window_may_be_a_float_without_a_fraction():
    assert trace(scaler_at(1024.0, 3.0), "ccc")[-1] == (2048.0, 0)


@pytest.mark.parametrize("scale", [0.0, -1.0, NAN, INF])
def test_scale_that_is_set_is_positive_and_finite(scale):
    scaler = scaler_at(4.0)
    for call in (
        lambda: scaler.update(scale),
        lambda: scaler.update(torch.tensor(scale)),
        lambda: scaler.load_state_dict({**scaler.state_dict(), "scale": scale}),
    ):
        with pytest.raises(ValueError, match="a loss scale must be positive and finite"):
            call()
    assert state_of(scaler) == (4.0, 0)


def test_scale_of_1_touches_no_bits():
    values = torch.tensor([-0.0, 1e-45, -1e-40, 1.5])
    parameter = torch.nn.Parameter(torch.zeros(4))
    parameter.grad = values.clone()
    scaler = scaler_at(1.0)
    scaler.step(optim.SGD([parameter], lr=1.0))
    assert torch.equal(bits_of(parameter.grad), bits_of(values))
    assert parameter.tolist() == (0.0 - values).tolist(), "denormals are kept"


def bits_of(tensor):
    return tensor.detach().view(torch.int32)


def test_scaled_fp16_loss_that_overflows_is_a_skip():
    parameter = one(dtype=torch.float16)
    optimizer = optim.SGD([parameter], lr=1.0)
    scaler = scaler_at(65536.0)
    scaler.scale(parameter * 1.0).backward()  # 65536 is no fp16 number
    scaler.step(optimizer)
    scaler.update()
    assert (scaler.status, parameter.item()) == ("skipped", 1.0)


def test_state_of_a_dead_optimizer_is_no_other_ones():
    parameter = one()
    scaler = scaler_at(4.0)
    give(parameter, 1.0)
    scaler.unscale_(optim.SGD([parameter], lr=0.0))
    for _ in range(30):
        scaler.step(optim.SGD([parameter], lr=0.0))  # would be "already called" with its id
    scaler.update()


def test_unscale_of_fp16_gradients_says_what_to_do():
    parameter = one(dtype=torch.float16)
    give(parameter, 1.0)
    with pytest.raises(ValueError, match=r"Attempting to unscale FP16 gradients.*clip=\.\.\."):
        scaler_at(4.0).unscale_(optim.SGD([parameter], lr=0.0))
