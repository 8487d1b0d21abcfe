"""How optimizers store weights and moments: split masters, stochastic rounding, half moments."""

from __future__ import annotations

import copy
import functools
import io
import math

import mpopt
import pytest
import torch
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st
from mpopt import optim
from mpopt.errors import MpoptError, OptionError
from mpopt.optim._split import join
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import distribute_tensor

BF16 = torch.bfloat16
SHAPES = [(32, 16), (600,), (7, 5)]
OPTIMIZERS = [
    (optim.AdamW, {"lr": 1e-3, "weight_decay": 0.1}),
    (optim.Adam, {"lr": 1e-3, "amsgrad": True}),
    (optim.SGD, {"lr": 1e-3}),
    (optim.SGD, {"lr": 1e-3, "momentum": 0.9, "nesterov": True}),
    (optim.Lion, {"lr": 1e-4, "weight_decay": 0.1}),
]
each_optimizer = pytest.mark.parametrize(
    ("cls", "kwargs"), OPTIMIZERS, ids=lambda v: v.__name__ if isinstance(v, type) else None
)


def params(dtype=BF16, shapes=SHAPES, seed=0):
    """Values that bfloat16 holds, in `dtype`."""
    generator = torch.Generator().manual_seed(seed)
    values = [torch.randn(shape, generator=generator).to(BF16) for shape in shapes]
    return [torch.nn.Parameter(value.to(dtype)) for value in values]


def train(optimizer, parameters, first, steps=1, clip=0.0):
    """Steps number `first` and so on; the gradients are those that bfloat16 holds."""
    for number in range(first, first + steps):
        generator = torch.Generator().manual_seed(1000 + number)
        for p in parameters:
            p.grad = torch.randn(p.shape, generator=generator).to(BF16).to(p.dtype)
        optimizer.step(clip=clip)


def bits(tensor):
    return tensor.detach().view(torch.int32 if tensor.dtype is torch.float32 else torch.int16)


def saved(optimizer):
    """Its state dictionary by way of a file."""
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def clones(parameters):
    return [torch.nn.Parameter(p.detach().clone()) for p in parameters]


def assert_equal(first, second):
    for a, b in zip(first, second, strict=True):
        assert a.dtype is b.dtype
        assert torch.equal(bits(a), bits(b)), (a.float() - b.float()).abs().max()


# ---- split masters


@each_optimizer
@pytest.mark.parametrize("clip", [0.0, 0.5])
def test_split_master_is_the_fp32_parameter(cls, kwargs, clip):
    """Case 21: join(weight, low) has the bits of an fp32 parameter with the same gradients."""
    halves, wide = params(), params(torch.float32)
    split = cls(halves, master="split", **kwargs)
    other = cls(wide, **kwargs)
    for first in range(5):
        train(split, halves, first, clip=clip)
        train(other, wide, first, clip=clip)
        assert_equal([split.master_weight(p) for p in halves], wide)
    assert any((split.state[p]["weight_low"] < 0).any() for p in halves)
    for half, master in zip(halves, wide, strict=True):
        # Rounded to nearest, ties away from zero.
        assert torch.equal(bits(half), ((bits(master) + 0x8000) >> 16).short())
        is_tie = (bits(master) & 0xFFFF) == 0x8000
        assert torch.equal(half[~is_tie], master.to(BF16)[~is_tie])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=40))
def test_split_master_keeps_all_bits_of_any_weight(patterns):
    """Case 21: what is stored joins to what was computed: here an fp32 weight plus zero."""
    values = torch.tensor(patterns, dtype=torch.int32).view(torch.float32)
    values = values[~values.isnan()]
    high = ((bits(values) + 0x8000) >> 16).short().view(BF16)
    low = (bits(values) & 0xFFFF).to(torch.int32)
    low = torch.where(low >= 0x8000, low - 0x10000, low).short()
    assert torch.equal(bits(join(high, low)), bits(values))
    parameter = torch.nn.Parameter(high.clone())
    optimizer = optim.SGD([parameter], lr=0.0, master="split")
    optimizer.state[parameter]["weight_low"] = low.clone()
    parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    finite = values.isfinite()
    assert torch.equal(bits(optimizer.master_weight(parameter))[finite], bits(values)[finite])


def test_split_master_stays_a_nan():
    """Case 21: a NaN in the master is a NaN in the weight, of the same sign."""
    parameter = torch.nn.Parameter(torch.tensor([1.0, 2.0], dtype=BF16))
    optimizer = optim.SGD([parameter], lr=1.0, master="split")
    parameter.grad = torch.tensor([math.nan, 0.5], dtype=BF16)
    optimizer.step()
    assert parameter.isnan().tolist() == [True, False]
    assert optimizer.master_weight(parameter).isnan().tolist() == [True, False]


@each_optimizer
@pytest.mark.parametrize("model_first", [True, False])
def test_split_master_is_saved_and_loaded(cls, kwargs, model_first):
    parameters = params()
    optimizer = cls(parameters, master="split", **kwargs)
    train(optimizer, parameters, 0, 3)
    state, weights = saved(optimizer), [p.detach().clone() for p in parameters]
    assert state["state"][0]["weight_low"].dtype is torch.int16

    fresh = params(seed=9)
    other = cls(fresh, **kwargs)  # the saved options win
    drops = mpopt.counters["split_masters_dropped"]
    if not model_first:
        other.load_state_dict(state)
    with torch.no_grad():
        for p, weight in zip(fresh, weights, strict=True):
            p.copy_(weight)
    if model_first:
        other.load_state_dict(state)
    train(optimizer, parameters, 3, 2)
    train(other, fresh, 3, 2)
    assert mpopt.counters["split_masters_dropped"] == drops
    assert_equal(
        *([o.master_weight(p) for p in q] for o, q in ((optimizer, parameters), (other, fresh)))
    )
    assert_equal(parameters, fresh)
    twin = copy.deepcopy(other)
    assert_equal(
        [s["weight_low"] for s in twin.state.values()],
        [s["weight_low"] for s in other.state.values()],
    )


def test_split_master_loads_a_state_of_torch_and_back():
    first, second = params(), params()
    stock = torch.optim.AdamW(first, fused=True)
    train_stock(stock, first)
    optimizer = optim.AdamW(second, master="split")
    optimizer.load_state_dict(copy.deepcopy(stock.state_dict()))
    assert optimizer.param_groups[0]["master"] == "split"
    state = optimizer.state[second[0]]
    assert state["exp_avg"].dtype is torch.float32, "moments beside a master are wide"
    assert torch.equal(state["exp_avg"], stock.state[first[0]]["exp_avg"].float())
    assert torch.equal(optimizer.master_weight(second[0]), second[0].detach().float())
    train(optimizer, second, 0, 2)
    stock.load_state_dict(saved(optimizer))
    train_stock(stock, first)
    assert float(stock.state[first[0]]["step"]) == 4.0


def train_stock(stock, parameters):
    for p in parameters:
        p.grad = torch.ones_like(p)
    stock.step()


def test_split_master_is_dropped_when_others_write_the_weight():
    parameter = params()[1]
    optimizer = optim.AdamW([parameter], lr=1e-3, master="split")
    train(optimizer, [parameter], 0, 3)
    assert optimizer.state[parameter]["weight_low"].any()
    drops = mpopt.counters["split_masters_dropped"]
    written = torch.randn(600, generator=torch.Generator().manual_seed(4)).to(BF16)
    with torch.no_grad():
        parameter.copy_(written)
    assert torch.equal(optimizer.master_weight(parameter), written.float())
    assert mpopt.counters["split_masters_dropped"] == drops + 1
    wide = torch.nn.Parameter(written.float())
    other = optim.AdamW([wide], lr=1e-3)
    state = copy.deepcopy(optimizer.state_dict())
    other.load_state_dict(state | {"param_groups": other.state_dict()["param_groups"]})
    train(optimizer, [parameter], 3)
    train(other, [wide], 3)
    assert_equal([optimizer.master_weight(parameter)], [wide])
    parameter.data = written.clone()  # other memory
    assert not optimizer.state_dict()["state"][0]["weight_low"].any()
    assert mpopt.counters["split_masters_dropped"] == drops + 2


def test_split_master_has_no_trace_of_a_skipped_step():
    parameter = params()[1]
    optimizer = optim.AdamW([parameter], master="split")
    before = parameter.detach().clone()
    parameter.grad = torch.full_like(parameter, math.inf)
    optimizer.step(clip=1.0)
    assert not optimizer.state[parameter]
    train(optimizer, [parameter], 0, 2)
    low = optimizer.state[parameter]["weight_low"].clone()
    before = parameter.detach().clone()
    parameter.grad = torch.full_like(parameter, math.nan)
    optimizer.step(clip=1.0, zero_grad=True)
    assert torch.equal(optimizer.state[parameter]["weight_low"], low)
    assert_equal([parameter], [before])


def test_groups_have_their_own_storage():
    halves, wide = params(), params(torch.float32)
    optimizer = optim.AdamW([{"params": halves[:1], "master": "split"}, {"params": wide}])
    optimizer.add_param_group({"params": halves[1:], "rounding": "stochastic", "seed": 3})
    reference = params(torch.float32)
    other = optim.AdamW(reference)
    train(optimizer, [*halves, *wide], 0)
    train(other, reference, 0)
    assert torch.equal(optimizer.master_weight(halves[0]), reference[0])
    assert "weight_low" not in optimizer.state[wide[0]]
    assert "weight_low" not in optimizer.state[halves[1]]
    assert "master" not in other.param_groups[0], "groups are torch's without options"


def test_fuse_takes_options():
    parameters = params()
    stock = torch.optim.AdamW(parameters)
    train_stock(stock, parameters)
    with pytest.raises(OptionError, match="no option 'mastr'; did you mean 'master'"):
        optim.fuse(stock, mastr="split")
    assert optim.fuse(stock, master="split") is stock
    train(stock, parameters, 0)
    assert stock.state[parameters[0]]["exp_avg"].dtype is torch.float32
    assert stock.state[parameters[0]]["weight_low"].any()


@pytest.mark.parametrize(
    ("dtype", "options", "text"),
    [
        (torch.float16, {"master": "split"}, r'"split" is for .*bfloat16.* parameter 0 .*float16'),
        (torch.float32, {"master": "split"}, r"not for parameter 0 of its group: torch.float32 of"),
        (BF16, {"master": "fp32"}, r'master must be None or "split", not \'fp32\''),
        (BF16, {"rounding": "up"}, r'rounding must be "nearest" or "stochastic"'),
        (BF16, {"rounding": "stochastic", "seed": -1}, "seed must be a whole number from 0"),
        (BF16, {"rounding": "stochastic", "seed": 0.5}, "seed must be a whole number from 0"),
        (BF16, {"rounding": "stochastic", "master": "split"}, "without a master"),
        (torch.float32, {"rounding": "stochastic"}, "parameters or moments in a half type"),
        (
            BF16,
            {"state_dtype": torch.float16},
            r"torch.float32 or torch.bfloat16, not torch.float16",
        ),
        (torch.cfloat, {"state_dtype": BF16}, "state_dtype is for real parameters"),
    ],
)
def test_bad_options_name_the_parameter(dtype, options, text):
    parameters = [torch.nn.Parameter(torch.ones(3, dtype=dtype))]
    for build in (optim.AdamW, optim.SGD, optim.Lion):
        with pytest.raises(OptionError, match=text):
            build(parameters, **options)
    stock = torch.optim.AdamW(parameters)
    with pytest.raises(ValueError, match=text):
        optim.fuse(stock, **options)
    assert type(stock) is torch.optim.AdamW
    ours = optim.AdamW(params())
    with pytest.raises(OptionError):
        ours.add_param_group({"params": parameters, **options})
    assert len(ours.param_groups) == 1


def test_bad_options_name_a_named_parameter():
    model = torch.nn.Linear(2, 3)
    with pytest.raises(OptionError, match=r"parameter 'weight': torch.float32 of shape \(3, 2\)"):
        optim.AdamW(model.named_parameters(), master="split")


def test_state_of_a_split_master_does_not_load_into_fp32():
    halves, wide = params(), params(torch.float32)
    optimizer, other = optim.AdamW(halves, master="split"), optim.AdamW(wide)
    train(optimizer, halves, 0)
    with pytest.raises(OptionError, match='"split" is for parameters in bfloat16'):
        other.load_state_dict(optimizer.state_dict())
    assert not other.state
    assert "master" not in other.param_groups[0]


def test_options_do_not_fall_back_silently(monkeypatch):
    monkeypatch.setenv("MPOPT_STRICT", "0")
    embedding = torch.nn.Embedding(10, 4, sparse=True, dtype=BF16)
    optimizer = optim.SGD(embedding.parameters(), lr=0.5, rounding="stochastic")
    embedding(torch.tensor([1])).sum().backward()
    with pytest.raises(MpoptError, match="PyTorch's update has no rounding"):
        optimizer.step()


@pytest.fixture
def mesh():
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield init_device_mesh("cpu", (1,))
    dist.destroy_process_group()


@pytest.mark.parametrize(
    "options",
    [{"master": "split"}, {"rounding": "stochastic", "seed": 2}, {"state_dtype": torch.float32}],
    ids=lambda options: next(iter(options)),
)
def test_options_hold_for_pieces_of_parameters(mesh, options):
    whole = params(shapes=[(64, 8)])
    pieces = [torch.nn.Parameter(distribute_tensor(p.detach().clone(), mesh)) for p in whole]
    first, second = (optim.AdamW(p, lr=1e-3, **options) for p in (whole, pieces))
    for number in range(3):
        train(first, whole, number, clip=1.0)
        for p, q in zip(pieces, whole, strict=True):
            p.grad = distribute_tensor(q.grad.clone(), mesh)
        second.step(clip=1.0)
    assert_equal([p.to_local() for p in pieces], whole)
    mine = first.state[whole[0]]
    for key, value in second.state[pieces[0]].items():
        assert torch.equal(mine[key], value.to_local() if key != "step" else value), key
    if "master" in options:
        drops = mpopt.counters["split_masters_dropped"]
        with torch.no_grad():
            pieces[0].mul_(2.0)
        assert not second.state_dict()["state"][0]["weight_low"].to_local().any()
        assert mpopt.counters["split_masters_dropped"] == drops + 1


# ---- stochastic rounding


def stochastic(cls, kwargs, parameters, seed=0, **options):
    return cls(parameters, rounding="stochastic", seed=seed, **kwargs, **options)


@each_optimizer
@pytest.mark.parametrize("dtype", [BF16, torch.float16])
def test_stochastic_rounding_is_reproducible(cls, kwargs, dtype):
    def run(seed, threads=1):
        before = torch.get_num_threads()
        torch.set_num_threads(threads)
        parameters = params(dtype, [(300, 300), (40,)])
        train(stochastic(cls, kwargs, parameters, seed), parameters, 0, 2)
        torch.set_num_threads(before)
        return parameters

    first = run(0)
    assert_equal(run(0), first)
    assert_equal(run(0, threads=2), first)
    assert any(not torch.equal(a, b) for a, b in zip(run(1), first, strict=True))


@pytest.mark.parametrize("build", [optim.SGD, functools.partial(optim.Lion, betas=(0.0, 0.0))])
def test_stochastic_rounding_draws_anew_at_each_step(build):
    parameter = params(shapes=[(600,)])[0]
    optimizer = build([parameter], lr=1e-3, rounding="stochastic")
    start, results = parameter.detach().clone(), []
    for _ in range(2):
        with torch.no_grad():
            parameter.copy_(start)
        parameter.grad = torch.ones_like(parameter)
        optimizer.step()
        results.append(parameter.detach().clone())
    assert not torch.equal(*results)


@each_optimizer
def test_stochastic_rounding_goes_on_where_it_was_saved(cls, kwargs):
    first = params()
    optimizer = stochastic(cls, kwargs, first, seed=7)
    train(optimizer, first, 0, 2)
    second = clones(first)
    other = cls(second, **kwargs)
    other.load_state_dict(saved(optimizer))
    train(optimizer, first, 2, 2)
    train(other, second, 2, 2)
    assert_equal(first, second)
    steps = {float(state["step"]) for state in other.state.values()}
    assert steps == {4.0}


@each_optimizer
def test_stochastic_rounding_of_one_parameter_does_not_see_others(cls, kwargs):
    alone, all_of_them = params(), params()
    for parameters, chosen in ((alone, alone[1:2]), (all_of_them, all_of_them)):
        train(stochastic(cls, kwargs, parameters), chosen, 0)
    reference = params()
    generator = torch.Generator().manual_seed(1000)
    reference[1].grad = torch.randn(reference[1].shape, generator=generator).to(BF16)
    stochastic(cls, kwargs, reference).step()
    assert_equal([reference[1]], [alone[1]])
    # The gradient of the second of three is another draw; so compare with its own.
    repeated = params()
    optimizer = stochastic(cls, kwargs, repeated)
    for p, q in zip(repeated[1:], all_of_them[1:], strict=True):
        p.grad = q.grad
    optimizer.step()
    assert_equal(repeated[1:], all_of_them[1:])


@pytest.mark.parametrize("dtype", [BF16, torch.float16])
@pytest.mark.parametrize(("cls", "kwargs"), OPTIMIZERS[::2], ids=["AdamW", "SGD", "Lion"])
def test_stochastic_rounding_has_the_mean_of_the_fp32_update(cls, kwargs, dtype):
    """Over seeds: five deviations of the mean of a Bernoulli draw between two neighbours."""
    seeds, size = 400, 64
    wide = params(torch.float32, [(size,)])
    train(cls(wide, **kwargs), wide, 0)
    total = torch.zeros(size, dtype=torch.float64)
    for seed in range(seeds):
        halves = params(dtype, [(size,)])
        train(stochastic(cls, kwargs, halves, seed), halves, 0)
        total += halves[0].detach().double()
    master = wide[0].detach()
    spacing = torch.finfo(dtype).eps * 2.0 ** master.abs().log2().floor()
    fraction = (master / spacing) % 1.0
    deviation = spacing * (fraction * (1 - fraction) / seeds).sqrt()
    difference = (total / seeds - master.double()).abs()
    assert (difference <= 5 * deviation + 1e-7 * master.abs()).all()
    assert (fraction > 0.01).sum() > size / 4, "rounding had something to do"


def test_moments_in_bf16_are_rounded_stochastically_too():
    wide = torch.nn.Parameter(torch.ones(20000))
    optimizer = optim.AdamW([wide], lr=0.0, rounding="stochastic", state_dtype=BF16)
    wide.grad = torch.full_like(wide, 1.003)
    optimizer.step()
    square = optimizer.state[wide]["exp_avg_sq"]
    assert square.dtype is BF16
    assert len(square.unique()) == 2
    torch.testing.assert_close(square.double().mean().item(), 1e-3 * 1.003**2, rtol=1e-4, atol=0)


# ---- moments


@each_optimizer
def test_moments_in_bf16_are_the_rounded_ones(cls, kwargs):
    """One step from moments in bf16 is a step from those values, rounded once when stored."""
    first, second = params(torch.float32), params(torch.float32)
    half = cls(first, state_dtype=BF16, **kwargs)
    wide = cls(second, **kwargs)
    for number in range(3):
        train(half, first, number)
        train(wide, second, number)
        assert_equal(first, second)
        for p, q in zip(first, second, strict=True):
            for key, value in wide.state[q].items():
                if key != "step":
                    assert torch.equal(half.state[p][key], value.to(BF16))
                    value.copy_(half.state[p][key])
    again = clones(first)
    other = cls(again, **kwargs)
    other.load_state_dict(saved(half))
    train(half, first, 3)
    train(other, again, 3)
    assert_equal(first, again)


def test_moments_in_bf16_go_to_torch_and_back():
    first = params(torch.float32)
    optimizer = optim.AdamW(first, state_dtype=BF16)
    train(optimizer, first, 0)
    second = clones(first)
    stock = torch.optim.AdamW(second, fused=True)
    stock.load_state_dict(saved(optimizer))
    value = optimizer.state[first[0]]["exp_avg"]
    assert torch.equal(stock.state[second[0]]["exp_avg"], value.float())
    optimizer.load_state_dict(copy.deepcopy(stock.state_dict()))
    assert optimizer.state[first[0]]["exp_avg"].dtype is BF16
    assert torch.equal(optimizer.state[first[0]]["exp_avg"], value)


def test_moments_of_half_weights_are_wide_if_asked():
    halves, wide = params(), params(torch.float32)
    optimizer, other = optim.AdamW(halves, state_dtype=torch.float32), optim.AdamW(wide)
    train(optimizer, halves, 0)
    train(other, wide, 0)
    for p, q in zip(halves, wide, strict=True):
        assert torch.equal(optimizer.state[p]["exp_avg"], other.state[q]["exp_avg"])
        assert torch.equal(p, q.to(BF16)), "one rounding, when stored"
    again = clones(halves)
    loaded = optim.AdamW(again)
    loaded.load_state_dict(saved(optimizer))
    assert torch.equal(loaded.state[again[0]]["exp_avg"], optimizer.state[halves[0]]["exp_avg"])


# ---- figures as tensors


@pytest.mark.parametrize("decay", [0.1, "tensor"])
@pytest.mark.parametrize(
    ("ours", "theirs", "kwargs"),
    [
        (optim.AdamW, torch.optim.AdamW, {}),
        (optim.Adam, torch.optim.Adam, {}),
        (optim.SGD, torch.optim.SGD, {"momentum": 0.9}),
    ],
    ids=["AdamW", "Adam", "SGD"],
)
def test_figures_as_tensors_are_read_at_each_step(ours, theirs, kwargs, decay):
    first, second = params(torch.float32, [(32, 16)]), params(torch.float32, [(32, 16)])

    def figures():
        weight_decay = torch.tensor(0.1) if decay == "tensor" else decay
        return {"lr": torch.tensor(1e-2), "weight_decay": weight_decay}

    stock = theirs(second, fused=True, **kwargs, **figures())
    optimizer = ours(first, **kwargs, **figures())
    for number in range(4):
        train(optimizer, first, number)
        for p, q in zip(first, second, strict=True):
            q.grad = p.grad
        if decay == "tensor":  # the fused operators take a number, read from the tensor
            group = stock.param_groups[0]
            kept, group["weight_decay"] = group["weight_decay"], group["weight_decay"].item()
        stock.step()
        if decay == "tensor":
            group["weight_decay"] = kept
        assert_equal(first, second)
        for each in (optimizer, stock):
            each.param_groups[0]["lr"].mul_(0.5)
            if decay == "tensor":
                each.param_groups[0]["weight_decay"].add_(0.1)
    loaded = ours(clones(first), **kwargs)
    loaded.load_state_dict(saved(optimizer))
    rate = loaded.param_groups[0]["lr"]
    assert isinstance(rate, torch.Tensor)
    assert rate.item() == pytest.approx(1e-2 / 16)


def test_fuse_keeps_a_rate_that_is_a_tensor():
    parameters = params(torch.float32)
    rate = torch.tensor(0.5)
    optimizer = optim.fuse(torch.optim.SGD(parameters, lr=rate, fused=True))
    assert optimizer.param_groups[0]["lr"] is rate
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    before = [p.detach().clone() for p in parameters]
    train(optimizer, parameters, 0)
    for p, value in zip(parameters, before, strict=True):
        assert torch.equal(p, value - 0.5 * p.grad)
    schedule.step()
    assert optimizer.param_groups[0]["lr"].item() == 0.25


# ---- what an update reports


def test_case_21_overflow_of_a_copy_is_counted():
    values = [65519.99609375, 65520.0, -65520.0, 1.0, math.inf]
    parameter = torch.nn.Parameter(torch.tensor(values))
    optimizer = optim.SGD([parameter], lr=1.0)
    half = optimizer.half_copy(parameter, torch.float16)
    parameter.grad = torch.zeros_like(parameter)
    counted = mpopt.counters["half_copy_overflows"]
    optimizer.step()
    assert half.tolist() == [65504.0, math.inf, -math.inf, 1.0, math.inf]
    assert optimizer.cast_overflows == 2
    assert mpopt.counters["half_copy_overflows"] == counted + 2
    parameter.grad[1] = 1024.0
    optimizer.step()
    assert optimizer.cast_overflows == 3, "one has come back"


def test_copies_in_bf16_do_not_overflow():
    parameter = torch.nn.Parameter(torch.tensor([65520.0, 1e30]))
    optimizer = optim.SGD([parameter], lr=1.0)
    optimizer.half_copy(parameter, BF16)
    parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    assert optimizer.cast_overflows == 0
