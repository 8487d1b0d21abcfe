"""mpopt.optim beside torch.optim: the same bits, states, schedules and errors."""

from __future__ import annotations

import copy
import functools
import inspect
import pickle

import mpopt
import pytest
import torch
from mpopt import optim
from mpopt.errors import MpoptError
from mpopt.native import load
from torch.optim.lr_scheduler import LambdaLR, StepLR
from torch.testing._internal.common_optimizers import optim_db

OURS = {torch.optim.Adam: optim.Adam, torch.optim.AdamW: optim.AdamW, torch.optim.SGD: optim.SGD}
INFOS = [info for info in optim_db if info.optim_cls in OURS]
# Whole vectors: what is left of one PyTorch contracts otherwise in SGD.
SHAPES = [(32, 16), (4096,), (16,), (160, 224)]


def params(dtype=torch.float32, shapes=SHAPES, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.nn.Parameter(torch.randn(s, generator=generator).to(dtype)) for s in shapes]


def give_gradients(parameters, seed, dtype=None):
    generator = torch.Generator().manual_seed(100 + seed)
    for p in parameters:
        grad = torch.randn(p.shape, generator=generator)
        if dtype is not None:
            p.grad_dtype = dtype
        p.grad = grad.to(dtype or p.dtype)


def train(optimizer, parameters, steps=4, **kwargs):
    for i in range(steps):
        give_gradients(parameters, i)
        optimizer.step(**kwargs)


def assert_equal(first, second):
    for a, b in zip(first, second, strict=True):
        assert torch.equal(a, b), (a - b).abs().max()


def inputs():
    """The configurations that PyTorch tests its optimizers with."""
    for info in INFOS:
        for index, given in enumerate(info.optim_inputs_func(device="cpu")):
            if not given.kwargs.get("differentiable"):
                name = f"{info.optim_cls.__name__}-{index}-{given.desc.replace(' ', '_')}"
                yield pytest.param(info.optim_cls, given.kwargs, id=name)


@functools.cache
def stock_updates(theirs, dtype):
    """False for SGD of half weights in PyTorch 2.11 to 2.13: its kernel leaves whole vectors
    as they were."""
    (weight,) = params(dtype, [(64,)])
    before = weight.detach().clone()
    train(theirs([weight], lr=1.0, fused=True), [weight], 1)
    return not torch.equal(before, weight)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("theirs", "kwargs"), inputs())
def test_bits_are_those_of_the_fused_optimizer(theirs, kwargs, dtype):
    if not stock_updates(theirs, dtype):
        pytest.skip(f"this PyTorch's fused {theirs.__name__} does not update {dtype}")
    kwargs = {k: v for k, v in kwargs.items() if k not in ("foreach", "capturable", "fused")}
    if kwargs.get("weight_decay") == 0.9 and theirs is torch.optim.SGD:
        kwargs["lr"] = 0.01  # else the weights grow beyond fp16
    first, second = params(dtype), params(dtype)
    ours = OURS[theirs](first, **copy.deepcopy(kwargs))
    stock = theirs(second, fused=True, **copy.deepcopy(kwargs))
    train(ours, first)
    train(stock, second)
    assert_equal(first, second)
    mine, other = ours.state_dict(), stock.state_dict()
    for index, state in other["state"].items():
        assert state.keys() == mine["state"][index].keys()
        for key, value in state.items():
            if isinstance(value, torch.Tensor):
                assert torch.equal(mine["state"][index][key], value), key


def errors():
    for info in INFOS:
        for index, wrong in enumerate(info.optim_error_inputs_func(device="cpu", dtype=None)):
            if issubclass(wrong.error_type, Warning):
                continue
            yield pytest.param(info, wrong, id=f"{info.optim_cls.__name__}-{index}")


@pytest.mark.parametrize(("info", "wrong"), errors())
def test_errors_are_those_of_torch(info, wrong):
    given = wrong.optimizer_error_input
    messages = []
    for cls in (info.optim_cls, OURS[info.optim_cls]):
        with pytest.raises(wrong.error_type) as caught:
            cls(given.params, **given.kwargs)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


@pytest.mark.parametrize("theirs", list(OURS))
def test_state_dict_goes_both_ways(theirs):
    kwargs = {"lr": 0.01, "momentum": 0.9} if theirs is torch.optim.SGD else {"lr": 0.01}
    first, second = params(), params()
    stock = theirs(first, fused=True, **kwargs)
    train(stock, first, 2)
    ours = OURS[theirs](second, **kwargs)
    ours.load_state_dict(pickle.loads(pickle.dumps(stock.state_dict())))
    for p, q in zip(first, second, strict=True):
        q.data.copy_(p)
    train(ours, second, 3)
    train(stock, first, 3)
    assert_equal(first, second)
    third = [torch.nn.Parameter(p.detach().clone()) for p in second]
    back = theirs(third, fused=True, **kwargs)
    back.load_state_dict(copy.deepcopy(ours.state_dict()))
    train(back, third, 2)
    train(ours, second, 2)
    assert_equal(third, second)


# ---- fuse


def test_fuse_keeps_the_object_its_state_and_its_scheduler():
    first, second = params(), params()
    stock, fused = (torch.optim.AdamW(p, lr=0.1, fused=True) for p in (first, second))
    schedules = [StepLR(o, step_size=2, gamma=0.5) for o in (stock, fused)]
    train(stock, first, 1)
    train(fused, second, 1)
    assert optim.fuse(fused) is fused
    assert type(fused) is optim.AdamW
    assert optim.fuse(fused) is fused
    for i in range(5):
        for optimizer, parameters, schedule in (
            (stock, first, schedules[0]),
            (fused, second, schedules[1]),
        ):
            give_gradients(parameters, i)
            optimizer.step()
            schedule.step()
    assert fused.param_groups[0]["lr"] == stock.param_groups[0]["lr"] == 0.1 / 4
    assert_equal(first, second)


def test_fuse_refuses_what_it_does_not_know():
    class Mine(torch.optim.AdamW):
        pass

    for optimizer in (torch.optim.RMSprop(params()), Mine(params())):
        before = type(optimizer)
        with pytest.raises(MpoptError, match=f"cannot fuse .*{before.__name__}.*Adam, AdamW, SGD"):
            optim.fuse(optimizer)
        assert type(optimizer) is before


def test_scheduler_sees_the_step(recwarn):
    parameters = params()
    optimizer = optim.SGD(parameters, lr=1.0)
    schedule = LambdaLR(optimizer, lambda epoch: 0.5**epoch)
    train(optimizer, parameters, 1)
    schedule.step()
    assert optimizer.param_groups[0]["lr"] == 0.5
    assert not [w for w in recwarn if "lr_scheduler.step" in str(w.message)]


def test_hooks_and_closure_run_once():
    parameters = params()
    optimizer = optim.fuse(torch.optim.SGD(parameters, lr=0.1))
    calls = []
    optimizer.register_step_pre_hook(lambda *_: calls.append("pre"))
    optimizer.register_step_post_hook(lambda *_: calls.append("post"))

    def closure():
        calls.append("closure")
        assert torch.is_grad_enabled()
        give_gradients(parameters, 0)
        return 7.0

    assert optimizer.step(closure) == 7.0
    assert calls == ["pre", "closure", "post"]


def test_groups_have_their_own_figures():
    first, second = params(), params()
    for cls, parameters in ((optim.AdamW, first), (torch.optim.AdamW, second)):
        kwargs = {} if cls is optim.AdamW else {"fused": True}
        groups = [{"params": parameters[:1], "lr": 0.1}, {"params": parameters[1:3]}]
        optimizer = cls(groups, lr=torch.tensor(1e-3), **kwargs)
        optimizer.add_param_group({"params": parameters[3:], "weight_decay": 0.5})
        train(optimizer, parameters)
    assert_equal(first, second)


# ---- clip, skip, clear


def test_clip_is_clip_grad_norm():
    first, second = params(), params()
    ours, stock = optim.AdamW(first), torch.optim.AdamW(second, fused=True)
    for i in range(3):
        give_gradients(first, i)
        give_gradients(second, i)
        ours.step(clip=0.5)
        torch.nn.utils.clip_grad_norm_(second, 0.5)
        stock.step()
    for a, b in zip(first, second, strict=True):
        # The norm is summed in fp64 here, in fp32 there.
        torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-7)
    with pytest.raises(ValueError, match="clip must not be negative"):
        ours.step(clip=-1.0)


def test_not_finite_gradients_are_not_clipped_but_skipped():
    parameters = params()
    optimizer = optim.AdamW(parameters)
    train(optimizer, parameters, 1)
    before = [p.detach().clone() for p in parameters]
    state = copy.deepcopy(optimizer.state_dict())
    give_gradients(parameters, 5)
    parameters[1].grad[7] = float("nan")
    optimizer.step(clip=1.0, zero_grad=True)
    assert_equal(parameters, before)
    assert all(not p.grad.any() for p in parameters)
    assert optimizer.skipped_steps == 1
    for index, values in optimizer.state_dict()["state"].items():
        for key, value in values.items():
            assert torch.equal(value, state["state"][index][key]), key


def test_zero_grad_clears_by_store_and_keeps_the_buffer():
    parameters = params()
    optimizer = optim.SGD(parameters, lr=0.1)
    give_gradients(parameters, 0)
    grads = [p.grad for p in parameters]
    optimizer.step(zero_grad=True)
    assert all(p.grad is g and not g.any() for p, g in zip(parameters, grads, strict=True))


def test_nothing_happens_without_gradients():
    parameters = params()
    optimizer = optim.AdamW(parameters)
    before = [p.detach().clone() for p in parameters]
    optimizer.step(clip=1.0)
    assert_equal(parameters, before)
    assert not optimizer.state


# ---- types and layouts


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_gradients_of_fp32_weights(dtype):
    if not hasattr(torch.nn.Parameter(torch.ones(1)), "grad_dtype"):
        pytest.skip("this PyTorch has no grad_dtype")
    first, second = params(), params()
    ours, stock = optim.AdamW(first), torch.optim.AdamW(second, fused=True)
    for i in range(3):
        give_gradients(first, i, dtype)
        for p, q in zip(first, second, strict=True):
            q.grad = p.grad.float()
        ours.step()
        stock.step()
    assert_equal(first, second)


def test_channels_last_and_strided_gradients():
    results = []
    for cls, kwargs in ((optim.AdamW, {}), (torch.optim.AdamW, {"fused": False})):
        weight = torch.randn(8, 4, 3, 3, generator=torch.Generator().manual_seed(0))
        parameters = [torch.nn.Parameter(weight.to(memory_format=torch.channels_last))]
        optimizer = cls(parameters, lr=0.1, **kwargs)
        for i in range(3):
            grad = torch.randn(8, 4, 3, 3, generator=torch.Generator().manual_seed(i))
            parameters[0].grad = grad if i else grad.to(memory_format=torch.channels_last)
            optimizer.step()
        results.append(parameters[0].detach().clone())
        if cls is optim.AdamW:
            optimizer.step(zero_grad=True)
            assert not parameters[0].grad.any()
    torch.testing.assert_close(*results, rtol=1e-6, atol=1e-7)


def test_complex_parameters_are_pairs():
    results = []
    for cls, kwargs in ((optim.Adam, {}), (torch.optim.Adam, {"foreach": False})):
        generator = torch.Generator().manual_seed(3)
        parameters = [torch.nn.Parameter(torch.randn(40, dtype=torch.cfloat, generator=generator))]
        optimizer = cls(parameters, lr=0.1, **kwargs)
        for _ in range(3):
            parameters[0].grad = torch.randn(40, dtype=torch.cfloat, generator=generator)
            optimizer.step()
        results.append(parameters[0].detach())
        assert optimizer.state[parameters[0]]["exp_avg"].is_complex()
    torch.testing.assert_close(*results, rtol=1e-5, atol=1e-6)


def double():
    parameters = [torch.nn.Parameter(torch.ones(4, dtype=torch.float64))]
    parameters[0].grad = torch.ones(4, dtype=torch.float64)
    return parameters


def test_what_is_not_taken_is_an_error_under_strict():
    parameters = double()
    optimizer = optim.AdamW(parameters)
    with pytest.raises(MpoptError, match=r"AdamW cannot update a parameter of torch.float64"):
        optimizer.step()
    assert torch.equal(parameters[0], torch.ones(4, dtype=torch.float64))


def test_what_is_not_taken_falls_back_and_is_counted(monkeypatch):
    monkeypatch.setenv("MPOPT_STRICT", "0")
    before = mpopt.counters["fallbacks.update"]
    first, second = double(), double()
    calls = []
    ours = optim.AdamW(first)
    ours.register_step_pre_hook(lambda *_: calls.append("pre"))
    stock = torch.optim.AdamW(second)
    ours.step()
    stock.step()
    assert_equal(first, second)
    assert mpopt.counters["fallbacks.update"] == before + 1
    assert calls == ["pre"]


def test_lion_has_nothing_to_fall_back_on(monkeypatch):
    monkeypatch.setenv("MPOPT_STRICT", "0")
    with pytest.raises(MpoptError, match="PyTorch has no Lion"):
        optim.Lion(double()).step()


def test_sparse_gradients_fall_back(monkeypatch):
    monkeypatch.setenv("MPOPT_STRICT", "0")
    results = []
    for cls in (optim.SGD, torch.optim.SGD):
        embedding = torch.nn.Embedding(10, 4, sparse=True)
        torch.nn.init.ones_(embedding.weight)
        optimizer = cls(embedding.parameters(), lr=0.5)
        embedding(torch.tensor([1, 1, 3])).sum().backward()
        optimizer.step()
        results.append(embedding.weight.detach())
    assert_equal(results[:1], results[1:])


class Wrapped(torch.Tensor):
    """A tensor that is not memory itself, as far as one can tell."""


def test_wrappers_are_not_taken_for_memory():
    parameter = torch.nn.Parameter(torch.ones(4))
    parameter.grad = torch.ones(4).as_subclass(Wrapped)
    with pytest.raises(MpoptError, match="a tensor of class Wrapped"):
        optim.SGD([parameter], lr=0.1).step()


def test_gradient_that_a_hook_replaces_is_the_one_that_counts():
    parameter = torch.nn.Parameter(torch.ones(4))
    optimizer = optim.SGD([parameter], lr=1.0)
    scaler = mpopt.GradScaler("cpu", init_scale=2.0)
    scaler.scale(parameter.sum()).backward()

    def replace(*_):
        parameter.grad = parameter.grad * 3.0

    optimizer.register_step_pre_hook(replace)
    scaler.step(optimizer, clip=0.25)
    # The norm of four threes is 6; a quarter of it over four elements is an eighth each.
    torch.testing.assert_close(parameter.detach(), torch.full((4,), 1.0 - 0.125))


def test_differentiable_is_refused():
    parameters = params()
    optimizer = optim.SGD(parameters, lr=0.1, differentiable=True)
    give_gradients(parameters, 0)
    with pytest.raises(ValueError, match="not differentiable"):
        optimizer.step()


# ---- Lion


def test_lion_against_its_formula():
    parameters = [torch.nn.Parameter(p.detach().double().float()) for p in params()]
    expected = [p.detach().double() for p in parameters]
    means = [torch.zeros_like(p) for p in expected]
    optimizer = optim.Lion(parameters, lr=0.01, betas=(0.9, 0.99), weight_decay=0.1)
    for i in range(4):
        give_gradients(parameters, i)
        optimizer.step()
        for p, m, e in zip(parameters, means, expected, strict=True):
            grad = p.grad.double()
            e.mul_(1 - 0.01 * 0.1).sub_(0.01 * torch.sign(0.9 * m + 0.1 * grad))
            m.mul_(0.99).add_(0.01 * grad)
    for p, e in zip(parameters, expected, strict=True):
        torch.testing.assert_close(p.detach().double(), e, rtol=0, atol=1e-6)


# Case 23: powers of two scale the gradient and the mean, not the step.
def test_lion_does_not_see_powers_of_two():
    first, second = params(), params()
    optimizers = [optim.Lion(p, lr=0.01) for p in (first, second)]
    for i in range(3):
        give_gradients(first, i)
        give_gradients(second, i)
        for p in second:
            p.grad *= 2.0**20
        for optimizer in optimizers:
            optimizer.step()
    assert_equal(first, second)


def test_lion_errors():
    for kwargs, text in (
        ({"lr": -1.0}, "Invalid learning rate"),
        ({"lr": torch.ones(2)}, "Tensor lr must be 1-element"),
        ({"betas": (1.0, 0.9)}, "Invalid beta parameter at index 0"),
        ({"weight_decay": -1.0}, "Invalid weight_decay"),
    ):
        with pytest.raises(ValueError, match=text):
            optim.Lion(params(), **kwargs)


# ---- half copies


def test_half_copy_is_written_by_the_step():
    parameters = params()
    optimizer = optim.AdamW(parameters, lr=0.1)
    copies = [optimizer.half_copy(p) for p in parameters]
    casts = mpopt.counters["half_copies_cast_again"]
    train(optimizer, parameters, 2)
    for p, half in zip(parameters, copies, strict=True):
        assert optimizer.half_copy(p) is half
        assert torch.equal(half, p.detach().bfloat16())
    assert mpopt.counters["half_copies_cast_again"] == casts


def test_half_copy_follows_what_pytorch_counts():
    parameter = params()[1]
    optimizer = optim.AdamW([parameter])
    optimizer.half_copy(parameter, torch.float16)
    casts = mpopt.counters["half_copies_cast_again"]
    with torch.no_grad():
        parameter.mul_(2.0)
    assert torch.equal(optimizer.half_copy(parameter, torch.float16), parameter.detach().half())
    parameter.data = parameter.data.clone() + 1.0
    assert torch.equal(optimizer.half_copy(parameter, torch.float16), parameter.detach().half())
    assert mpopt.counters["half_copies_cast_again"] == casts + 2
    parameter.data.mul_(3.0)  # PyTorch does not count this
    optimizer.refresh_half_copies()
    assert torch.equal(optimizer.half_copy(parameter, torch.float16), parameter.detach().half())


def test_step_counts_as_a_change():
    parameter = params()[0]
    optimizer = optim.SGD([parameter], lr=0.1)
    give_gradients([parameter], 0)
    version = parameter._version
    optimizer.step()
    assert parameter._version > version
    skipped = parameter._version
    parameter.grad[0, 0] = float("inf")
    optimizer.step(clip=1.0)
    assert parameter._version == skipped


def test_half_copy_errors():
    parameters = params()
    optimizer = optim.AdamW(parameters)
    with pytest.raises(MpoptError, match="does not update"):
        optimizer.half_copy(torch.nn.Parameter(torch.ones(2)))
    with pytest.raises(MpoptError, match=r"float16 or bfloat16, not torch.float64"):
        optimizer.half_copy(parameters[0], torch.float64)
    optimizer.half_copy(parameters[0])
    with pytest.raises(MpoptError, match=r"is in torch.bfloat16, not torch.float16"):
        optimizer.half_copy(parameters[0], torch.float16)


def test_half_copies_are_no_part_of_a_saved_optimizer():
    parameters = params()
    optimizer = optim.AdamW(parameters)
    train(optimizer, parameters, 1)
    optimizer.half_copy(parameters[0])
    assert "_half_copies" not in pickle.loads(pickle.dumps(optimizer)).__dict__
    assert copy.deepcopy(optimizer).skipped_steps == 0


# ---- the native part


def test_native_update_checks_what_it_gets():
    address = torch.ones(4).data_ptr()
    none = (0, "") * 4
    update = load().Update
    with pytest.raises(ValueError, match="unknown format 'f64'"):
        update([(4, 0, 0, 1.0, True, address, "f32", address, "f64", *none, 0)], [])
    with pytest.raises(ValueError, match="a tensor is in no group"):
        update([(4, 0, 0, 1.0, True, address, "f32", 0, "", *none, 0)], [])
    with pytest.raises(ValueError, match="described by 18 values"):
        update([(4, 0)], [])
    with pytest.raises(ValueError, match="does not run the kernels 'sse9'"):
        update([], [], "sse9")


def test_signature_is_that_of_torch():
    for ours, theirs in ((optim.AdamW, torch.optim.AdamW), (optim.SGD, torch.optim.SGD)):
        mine = list(inspect.signature(ours.__init__).parameters.values())
        stock = list(inspect.signature(theirs.__init__).parameters.values())
        assert mine[: len(stock)] == stock
        further = [parameter.name for parameter in mine[len(stock) :]]
        assert further == ["master", "rounding", "seed", "state_dtype"]


@pytest.mark.parametrize("ours", [optim.Adam, optim.SGD, optim.Lion])
def test_parameter_without_elements(ours):
    parameters = params(shapes=[(0, 4), (16,)])
    optimizer = ours(parameters, lr=0.1)
    before = parameters[1].detach().clone()
    train(optimizer, parameters, clip=1.0)
    assert not torch.equal(parameters[1], before)
    assert parameters[0].shape == (0, 4)
