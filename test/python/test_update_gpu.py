"""The update on a GPU that is emulated: values beside those of the CPU, and the launches."""

from __future__ import annotations

import copy
import math
import struct

import mpopt
import pytest
import torch
from emulated_gpu import STREAM, machine
from mpopt import log, optim
from mpopt.errors import MpoptError
from mpopt.optim import _device, _distributed
from mpopt.optim._device import word
from torch.utils._python_dispatch import TorchDispatchMode

SHAPES = [(7,), (33, 40), (1,), (32768 + 21,)]


@pytest.fixture
def gpu(monkeypatch):
    machine().install(monkeypatch)
    return machine()


def params(dtype=torch.float32, shapes=SHAPES):
    generator = torch.Generator().manual_seed(0)
    return [torch.nn.Parameter(torch.randn(s, generator=generator).to(dtype)) for s in shapes]


def give_gradients(parameters, seed, scale=1.0, dtype=None):
    """In memory of their own as a backward pass makes it the first time, then in place."""
    generator = torch.Generator().manual_seed(100 + seed)
    for p in parameters:
        grad = (scale * torch.randn(p.shape, generator=generator)).to(dtype or p.dtype)
        if p.grad is None:
            p.grad_dtype = grad.dtype
            p.grad = grad
        else:
            p.grad.copy_(grad)


def train(optimizer, parameters, steps=3, grad_dtype=None, **kwargs):
    for i in range(steps):
        give_gradients(parameters, i, dtype=grad_dtype)
        optimizer.step(**kwargs)


def assert_same(ours, theirs, first, second):
    """Parameters and states have the same bits."""
    for a, b in zip(first, second, strict=True):
        assert torch.equal(a, b), (a - b).abs().max()
    mine, other = ours.state_dict(), theirs.state_dict()
    assert mine["state"].keys() == other["state"].keys()
    for index, state in other["state"].items():
        assert state.keys() == mine["state"][index].keys()
        for key, value in state.items():
            found = mine["state"][index][key]
            assert torch.equal(found, value), (index, key)


FP16, BF16 = torch.float16, torch.bfloat16
CASES = {
    "adamw": (optim.AdamW, {"weight_decay": 0.1}, torch.float32, None),
    "adamw-bf16-gradients": (optim.AdamW, {"betas": (0.8, 0.95)}, torch.float32, BF16),
    "adam-amsgrad-maximize": (
        optim.Adam,
        {"amsgrad": True, "maximize": True, "weight_decay": 0.2},
        torch.float32,
        None,
    ),
    "adamw-split": (optim.AdamW, {"master": "split"}, BF16, None),
    "adamw-stochastic": (
        optim.AdamW,
        {"rounding": "stochastic", "seed": 2**63 + 5, "state_dtype": BF16},
        BF16,
        None,
    ),
    "sgd": (optim.SGD, {"lr": 0.1, "weight_decay": 0.1}, torch.float32, FP16),
    "sgd-momentum": (optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}, FP16, None),
    "sgd-nesterov": (
        optim.SGD,
        {"lr": 0.1, "momentum": 0.9, "nesterov": True},
        torch.float32,
        None,
    ),
    "sgd-stochastic": (
        optim.SGD,
        {"lr": 0.1, "momentum": 0.9, "rounding": "stochastic"},
        BF16,
        None,
    ),
    "lion": (optim.Lion, {"weight_decay": 0.1}, torch.float32, None),
    "lion-stochastic": (optim.Lion, {"rounding": "stochastic", "seed": 3}, FP16, None),
}


@pytest.mark.parametrize("name", CASES)
def test_bits_are_those_of_the_cpu(gpu, name):
    kind, options, dtype, grad_dtype = CASES[name]
    with gpu.off():
        theirs_params = params(dtype)
        theirs = kind(theirs_params, **options)
        train(theirs, theirs_params, grad_dtype=grad_dtype)
    ours_params = params(dtype)
    ours = kind(ours_params, **options)
    train(ours, ours_params, grad_dtype=grad_dtype)
    assert_same(ours, theirs, ours_params, theirs_params)
    assert gpu.names().count("update") == 3
    assert ours.skipped_steps == 0


def test_half_copies_groups_and_cleared_gradients(gpu):
    def run():
        first, second = params(), params(BF16)
        groups = [
            {"params": first[:2], "lr": 0.1},
            {"params": first[2:], "weight_decay": 0.0},
            {"params": second, "lr": 0.01, "betas": (0.5, 0.6)},
        ]
        optimizer = optim.AdamW(groups)
        halves = [optimizer.half_copy(p) for p in first[1:]]
        train(optimizer, first + second, zero_grad=True)
        assert all(not p.grad.any() for p in first + second)
        assert all(torch.equal(h, p.to(BF16)) for h, p in zip(halves, first[1:], strict=True))
        assert [optimizer.half_copy(p) is h for h, p in zip(halves, first[1:], strict=True)]
        return optimizer, first + second

    before = log.counters["half_copies_cast_again"]
    with gpu.off():
        theirs, theirs_params = run()
    ours, ours_params = run()
    assert log.counters["half_copies_cast_again"] == before
    assert_same(ours, theirs, ours_params, theirs_params)


def test_a_loaded_state_goes_on(gpu):
    """Of torch.optim, with step counts of the CPU, and back."""
    with gpu.off():
        # Whole vectors: what is left of one PyTorch contracts otherwise.
        stock_params = params(shapes=[(32, 16), (4096,)])
        stock = torch.optim.AdamW(stock_params, fused=True)
        train(stock, stock_params, 2)
    mine = [torch.nn.Parameter(p.detach().clone()) for p in stock_params]
    ours = optim.AdamW(mine)
    ours.load_state_dict(copy.deepcopy(stock.state_dict()))
    train(ours, mine, 2)
    with gpu.off():
        train(stock, stock_params, 2)
    assert_same(ours, stock, mine, stock_params)
    stock.load_state_dict(ours.state_dict())


def test_a_loaded_buffer_is_not_new(gpu):
    options = {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}
    with gpu.off():
        theirs_params = params()
        theirs = optim.SGD(theirs_params, **options)
        train(theirs, theirs_params, 2)
        state = copy.deepcopy(theirs.state_dict())
        ours_params = [torch.nn.Parameter(p.detach().clone()) for p in theirs_params]
        train(theirs, theirs_params, 2)
    ours = optim.SGD(ours_params, **options)
    ours.load_state_dict(state)
    train(ours, ours_params, 2)
    assert_same(ours, theirs, ours_params, theirs_params)


# With a loss scaler -----------------------------------------------------------------------


def scaled_run(scaler, optimizer, parameters, bad=(), clip=0.0, nan=False, steps=6):
    scales = []
    for i in range(steps):
        scale = float(scaler.scale(torch.ones(())))
        give_gradients(parameters, i, scale)
        if i in bad:
            parameters[1].grad.view(-1)[5] = math.nan if nan else math.inf
        kwargs = {"clip": clip} if clip else {}
        scaler.step(optimizer, **kwargs)
        scaler.update()
        scales.append(scaler.get_scale())
    return scales


RULES = [
    ("torch", {"growth_interval": 2}),
    ("megatron", {"growth_interval": 2, "init_scale": 1024.0}),
    ("tf", {"growth_interval": 2, "min_scale": 2.0**13}),
]


@pytest.mark.parametrize(("rule", "figures"), RULES)
def test_scale_and_bits_with_overflows(gpu, rule, figures):
    def run():
        parameters = params()
        optimizer = optim.AdamW(parameters, lr=0.01)
        scaler = mpopt.GradScaler("cpu", rule=rule, **figures)
        scales = scaled_run(scaler, optimizer, parameters, bad=(0, 3, 4), nan=True)
        return optimizer, parameters, scaler, scales

    with gpu.off():
        theirs, theirs_params, their_scaler, their_scales = run()
    ours, ours_params, scaler, scales = run()
    assert scales == their_scales
    assert_same(ours, theirs, ours_params, theirs_params)
    for name in ("applied_steps", "skipped_steps", "nan_steps", "inf_steps", "status"):
        assert getattr(scaler, name) == getattr(their_scaler, name), name
    assert ours.skipped_steps == 3
    assert scaler.known_scale == scales[-1]
    assert scaler.state_dict() == their_scaler.state_dict()


def test_clipping_by_the_norm_of_all_gradients(gpu):
    def run():
        parameters = params()
        optimizer = optim.SGD(parameters, lr=1.0)
        scaler = mpopt.GradScaler("cpu", init_scale=256.0)
        scaled_run(scaler, optimizer, parameters, clip=0.5, bad=(2,), steps=4)
        return optimizer, parameters

    with gpu.off():
        theirs, theirs_params = run()
    ours, ours_params = run()
    # The sums of chunks are added in another order, in double.
    for a, b in zip(ours_params, theirs_params, strict=True):
        torch.testing.assert_close(a, b, rtol=3e-7, atol=1e-9)
    assert ours.measured.norm == pytest.approx(theirs.measured.norm, rel=1e-12)


def test_clip_without_a_scaler_skips_bad_steps(gpu):
    parameters = params()
    optimizer = optim.SGD(parameters, lr=1.0)
    give_gradients(parameters, 0)
    optimizer.step(clip=1.0)
    before = [p.detach().clone() for p in parameters]
    parameters[0].grad[3] = math.nan
    optimizer.step(clip=1.0)
    assert all(map(torch.equal, parameters, before))
    assert optimizer.skipped_steps == 1 and optimizer.measured.flags


def test_torchs_scaler_and_a_scaler_of_two_optimizers(gpu):
    def run(make):
        parameters = params()
        halves = parameters[:2], parameters[2:]
        optimizers = [optim.AdamW(halves[0]), optim.SGD(halves[1], lr=0.1)]
        scaler = make()
        scales = []
        for i in range(4):
            give_gradients(parameters, i, float(scaler.scale(torch.ones(()))))
            if i == 1:
                parameters[3].grad[7] = math.inf
            if i == 2:
                scaler.unscale_(optimizers[0])
                torch.nn.utils.clip_grad_norm_(halves[0], 0.1)
            for optimizer in optimizers:
                scaler.step(optimizer)
            scaler.update()
            scales.append(scaler.get_scale())
        return parameters, scales

    for make in (
        lambda: torch.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=2),
        lambda: mpopt.GradScaler("cpu", init_scale=1024.0, growth_interval=2),
    ):
        with gpu.off():
            theirs, their_scales = run(make)
        ours, scales = run(make)
        assert scales == their_scales
        assert all(map(torch.equal, ours, theirs))


def test_errors_are_those_of_torch(gpu):
    parameters = params()
    optimizer = optim.AdamW(parameters)
    scaler = mpopt.GradScaler("cpu")
    scaler.scale(torch.ones(()))
    give_gradients(parameters, 0)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"step\(\) has already been called"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"unscale_\(\) is being called after step"):
        scaler.unscale_(optimizer)
    scaler.update()
    with pytest.raises(AssertionError, match="No inf checks were recorded"):
        scaler.update()
    failing = mpopt.GradScaler("cpu", init_scale=1.0, min_scale=1.0, at_floor="fail")
    with pytest.raises(mpopt.grad_scaler.LossScaleError):
        scaled_run(failing, optim.SGD(parameters), parameters, bad=(0,), steps=1)


# The launches -----------------------------------------------------------------------------


class Operators(TorchDispatchMode):
    """Which operators of PyTorch run."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.append(function._schema.name)
        return function(*args, **(kwargs or {}))


def warm_step(gpu, clip=1.0):
    parameters = params()
    optimizer = optim.AdamW([{"params": parameters[:2]}, {"params": parameters[2:], "lr": 0.5}])
    scaler = mpopt.GradScaler("cpu")
    scaled_run(scaler, optimizer, parameters, clip=clip, steps=2)
    gpu.clear()
    give_gradients(parameters, 9)
    with Operators() as operators:
        scaler.step(optimizer, clip=clip)
        scaler.update()
    return optimizer, scaler, operators.names


def test_a_warm_step_is_launches_and_nothing_else(gpu):
    optimizer, scaler, operators = warm_step(gpu)
    names = "measure total decide factors factors update note advance".split()
    assert gpu.names() == names
    # No memory is made, nothing is read.
    allowed = {"aten::select", "aten::view", "aten::slice", "aten::detach"}
    assert {name for name in operators if not name.startswith("profiler::")} <= allowed
    launched = [line for line in gpu.log().splitlines() if line.startswith("cuLaunchKernel")]
    grids = ["5x1x1 of 256", "1x1x1 of 256", "1x1x1 of 1", "1x1x1 of 128", "1x1x1 of 128"]
    grids += ["5x1x1 of 256", "1x1x1 of 1", "1x1x1 of 1"]
    stream = f"0x{STREAM:x}"
    assert launched == [f"cuLaunchKernel {g}x1x1 shared 0 on {stream}" for g in grids]
    assert "cuMemset" not in gpu.log() and "cuModuleLoad" not in gpu.log()
    tables, ledger = optimizer._ledger().tables, optimizer._ledger()
    by_name = {line.split()[0]: (addresses, numbers) for line, addresses, numbers in gpu.launches}
    scale = scaler._scale.data_ptr()
    assert by_name["measure"][0] == [
        tables.rows,
        tables.chunks_from(0),
        scale,
        tables.parts_from(0),
    ]
    decision = ledger.decision.data_ptr()
    zero = ledger.zero.data_ptr()
    totals = tables.totals[0].data_ptr()
    assert by_name["total"] == ([tables.parts_from(0), totals], [5])
    assert by_name["decide"] == ([totals, scale, zero, decision], [word(1.0)])
    # The second group, with bits of its own figures.
    lr, beta1, beta2, epsilon, decay = 0.5, 0.9, 0.999, 1e-8, 0.01
    figures = [word(x) for x in (lr, beta1, beta2, epsilon, decay, 0.0, 0.0)]
    addresses = [tables.clocks_from(2), tables.factors, decision, 0]
    assert by_name["factors"] == (addresses, [2, *figures, 1 | 4, 0])
    assert by_name["update"][1] == [5]
    assert by_name["note"][0][0] == totals


def test_tables_are_written_only_where_tensors_move(gpu):
    parameters = params()
    optimizer = optim.AdamW(parameters)
    train(optimizer, parameters, 2)
    tables = optimizer._ledger().tables
    gpu.clear()
    train(optimizer, parameters, 1)
    assert "poke" not in gpu.names()
    parameters[1].grad = parameters[1].grad.clone()
    optimizer.step()
    assert gpu.names().count("poke") == 2 and optimizer._ledger().tables is tables
    for group in optimizer.param_groups:  # a schedule
        group["lr"] = 0.5
    optimizer.step()
    assert gpu.names().count("poke") == 2
    parameters[0].grad = None
    optimizer.step()
    assert optimizer._ledger().tables is not tables


def test_large_tables_come_in_pieces(gpu):
    with gpu.off():
        theirs_params = params(shapes=[(3,)] * 80)
        theirs = optim.AdamW(theirs_params)
        train(theirs, theirs_params, 1)
    ours_params = params(shapes=[(3,)] * 80)
    ours = optim.AdamW(ours_params)
    train(ours, ours_params, 1)
    assert_same(ours, theirs, ours_params, theirs_params)
    # 80 rows of 8 words, 80 clocks of 3, 80 chunks of 1; 480 in a launch.
    assert gpu.names().count("poke") == 2 + 1 + 1


def replay(gpu, launches):
    for line, addresses, numbers in list(launches):
        gpu.launch(_device.Device.of(torch.device("cpu")), line, addresses, numbers)


def test_a_captured_step_is_replayed(gpu):
    """The launches of one step, done again, are further steps; steps outside do no harm."""
    with gpu.off():
        theirs_params = params()
        theirs = optim.AdamW(theirs_params)
        train(theirs, theirs_params, 1)
        give_gradients(theirs_params, 5)
        for _ in range(4):
            theirs.step()
    ours_params = params()
    ours = optim.AdamW(ours_params)
    train(ours, ours_params, 1)
    warm = ours._ledger().tables
    old = [p.grad for p in ours_params]
    for p in ours_params:  # what a backward in the graph makes lies elsewhere
        p.grad = p.grad.clone()
    give_gradients(ours_params, 5)
    gpu.clear()
    gpu.is_capturing = True
    ours.step()
    gpu.is_capturing = False
    captured = list(gpu.launches)
    assert ours._ledger().tables is warm and len(ours._ledger().captured) == 1
    replay(gpu, captured)
    kept = [p.grad for p in ours_params]  # as a graph keeps its memory
    for p, grad in zip(ours_params, old, strict=True):
        p.grad = grad
    give_gradients(ours_params, 5)
    ours.step()
    replay(gpu, captured)
    assert all(map(torch.equal, ours_params, theirs_params)) and kept
    assert float(ours.state[ours_params[0]]["step"]) == 5.0


def test_a_graph_keeps_the_tables_it_shares(gpu):
    parameters = params()
    optimizer = optim.AdamW(parameters)
    train(optimizer, parameters, 1)
    gpu.is_capturing = True
    optimizer.step()
    gpu.is_capturing = False
    shared = optimizer._ledger().tables
    parameters[0].grad = parameters[0].grad.clone()
    optimizer.step()
    assert optimizer._ledger().tables is not shared
    assert optimizer._ledger().captured == [shared]


def test_a_capture_needs_a_step_before(gpu):
    parameters = params()
    optimizer = optim.AdamW(parameters)
    give_gradients(parameters, 0)
    gpu.is_capturing = True
    with pytest.raises(MpoptError, match="take one step before a graph captures"):
        optimizer.step()


def test_a_learning_rate_on_the_device_is_read_there(gpu):
    rate = torch.tensor(0.1)
    parameters = params()
    optimizer = optim.AdamW(parameters, lr=rate, capturable=True)
    with gpu.off():
        theirs_params = params()
        theirs = optim.AdamW(theirs_params, lr=0.1)
        theirs.param_groups[0]["lr"] = float(rate)
        train(theirs, theirs_params, 1)
        theirs.param_groups[0]["lr"] = float(torch.tensor(0.3))
        train(theirs, theirs_params, 1)
    train(optimizer, parameters, 1)
    rate.fill_(0.3)
    train(optimizer, parameters, 1)
    assert all(map(torch.equal, parameters, theirs_params))
    (line, addresses, _) = next(x for x in gpu.launches if x[0].startswith("factors"))
    assert line == "factors rate" and addresses[3] == rate.data_ptr()


def test_measure_waits_and_names_the_first_bad_parameter(gpu):
    parameters = params()
    optimizer = optim.AdamW(parameters)
    give_gradients(parameters, 0, 4.0)
    with gpu.off():
        expected = optimizer.measure(4.0)
    found = optimizer.measure(4.0)
    assert found.norm == pytest.approx(expected.norm, rel=1e-13) and found.flags == 0
    parameters[2].grad.fill_(math.inf)
    assert optimizer.measure(4.0).first_bad is parameters[2]


# What is not taken ------------------------------------------------------------------------


def fallback_reason(optimizer, parameters):
    give_gradients(parameters, 0)
    with pytest.raises(MpoptError) as caught:
        optimizer.step()
    return str(caught.value)


def test_fallbacks_are_named(gpu, monkeypatch):
    parameters = params()
    optimizer = optim.AdamW(parameters)
    with monkeypatch.context() as patch:
        patch.setattr(_device.Device, "why_not", property(lambda device: "there is no driver"))
        assert "there is no driver" in fallback_reason(optimizer, parameters)
        patch.setenv("MPOPT_STRICT", "0")
        before = log.counters["fallbacks.update"]
        optimizer.step()
        assert log.counters["fallbacks.update"] == before + 1
    other = optim.Lion(parameters, betas=(torch.tensor(0.9), 0.999))
    assert "a group whose beta1 is a tensor" in fallback_reason(other, parameters)
    with monkeypatch.context() as patch:
        patch.setattr(_device, "is_gpu", lambda device: device.type == "cpu")
        mixed = optim.AdamW([*parameters, torch.nn.Parameter(torch.ones(3, device="meta"))])
        assert "several devices" in fallback_reason(mixed, parameters)


def test_a_launch_that_fails_says_why(gpu):
    parameters = params()
    optimizer = optim.AdamW(parameters)
    train(optimizer, parameters, 1)
    gpu.driver.fakeFail(b"cuLaunchKernel", 719)
    with pytest.raises(MpoptError, match="cuLaunchKernel of decide failed: CUDA_ERROR_FAKE"):
        optimizer.step()


# With other ranks -------------------------------------------------------------------------


def test_ranks_share_one_reduction(gpu, monkeypatch):
    """Each of two ranks is this one: sums and counts are twice as large."""
    messages = []

    def twice(values, op, group):
        messages.append((values.clone(), op, group))
        return values * 2

    monkeypatch.setattr(_distributed, "_all_reduce", twice)
    parameters = params()
    optimizer = optim.AdamW(parameters)
    scaler = mpopt.GradScaler("cpu", process_group="everybody")
    scaled_run(scaler, optimizer, parameters, bad=(1,), steps=2)
    assert [group for *_, group in messages] == ["everybody"] * 2
    assert [values.tolist() for values, *_ in messages] == [[0.0, 0.0], [1.0, 0.0]]
    assert scaler.skipped_steps == 1


def spreads():
    class Mesh:
        def __init__(self, size):
            self._size = size

        def size(self):
            return self._size

    small, large = Mesh(2), Mesh(4)
    whole = _distributed.WHOLE
    return [whole, _distributed.Spread(large, 1), _distributed.Spread(small, 2)]


def test_sums_over_meshes_are_those_of_the_host(monkeypatch):
    each = spreads()
    monkeypatch.setattr(_distributed, "_groups", lambda mesh: [mesh])
    monkeypatch.setattr(
        _distributed, "_all_reduce", lambda values, op, group: values * group.size()
    )
    totals = torch.tensor([[3.0, 0, 0], [5.0, 1, 0], [7.0, 0, 0]], dtype=torch.float64)
    sums = {spread: float(row[0]) for spread, row in zip(each, totals, strict=True)}
    expected, flags = _distributed.agree(sums, 1)
    found = _distributed.agree_on_device(totals, each, None)
    assert float(found[0]) == pytest.approx(expected)
    assert (float(found[1]) > 0, float(found[2]) > 0) == (True, False) and flags == 1


def test_layouts_are_those_of_the_runtime():
    """CudaClock and CudaRow as _tables.py packs them."""
    assert struct.calcsize("<2q2I") == 24 and struct.calcsize("<8q") == 64
    assert struct.calcsize("<fIdQQ") == 32
