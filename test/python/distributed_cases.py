"""What each rank does in test_distributed.py. Every function runs on all ranks at once."""

from __future__ import annotations

import contextlib
import pickle

import mpopt
import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from mpopt import optim
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel

STEPS = 4
ROWS = 6  # of a batch, for each rank
FIGURES = {"init_scale": 8.0, "growth_interval": 100}
OPTIMIZERS = {
    "adam": (optim.Adam, torch.optim.Adam, {"lr": 0.01, "amsgrad": True}),
    "adamw": (optim.AdamW, torch.optim.AdamW, {"lr": 0.01}),
    "sgd": (optim.SGD, torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
}


def start():
    """Before each case."""
    torch._dynamo.reset()
    mpopt.reset()
    torch.manual_seed(0)


class Net(nn.Module):
    """Sizes that do not divide by the number of ranks; one weight with a single row."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(8, 17)
        self.norm = nn.LayerNorm(17)
        self.second = nn.Linear(17, 5)
        self.row = nn.Parameter(torch.randn(1, 5))

    def forward(self, x):
        hidden = self.norm(torch.relu(self.first(x)))
        return (self.second(hidden) * self.row).float().square().mean()


def make(seed=0):
    torch.manual_seed(seed)
    return Net()


def batch(step, rank):
    generator = torch.Generator().manual_seed(100 * step + rank)
    return torch.randn(ROWS, 8, generator=generator)


def autocast(enabled=True):
    return torch.autocast("cpu", torch.bfloat16, enabled=enabled)


def mean_over_ranks(loss):
    total = loss.detach().double().clone()
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()


def train(step, optimizer, scaler, *, casts=False, clip=0.0):
    """A few steps of this rank; the mean loss of all ranks for each."""
    losses = []
    for number in range(STEPS):
        with autocast(casts):
            loss = step(batch(number, dist.get_rank()))
        scaler.scale(loss).backward()
        scaler.step(optimizer, **({"clip": clip} if clip else {}))
        scaler.update()
        optimizer.zero_grad()
        losses.append(mean_over_ranks(loss))
    return losses


def train_alone(step, optimizer, scaler, *, casts=False, clip=0.0):
    """The same in one process: the batches of all ranks one after the other."""
    losses, world = [], dist.get_world_size()
    for number in range(STEPS):
        total = 0.0
        for rank in range(world):
            with autocast(casts):
                loss = step(batch(number, rank))
            scaler.scale(loss / world).backward()
            total += loss.detach().double().item()
        scaler.step(optimizer, **({"clip": clip} if clip else {}))
        scaler.update()
        optimizer.zero_grad()
        losses.append(total / world)
    return losses


def whole(tensor):
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor.detach()


def weights(model):
    return {
        name.replace("module.", "").replace("_orig_mod.", ""): whole(p).clone()
        for name, p in model.named_parameters()
    }


def assert_same(mine, theirs, **bounds):
    """Weights of two models: bit for bit without bounds."""
    assert mine.keys() == theirs.keys()
    bounds = bounds or {"rtol": 0.0, "atol": 0.0}
    for name in mine:
        torch.testing.assert_close(mine[name], theirs[name], **bounds)


def assert_all_ranks_have(*values):
    everybody = [None] * dist.get_world_size()
    dist.all_gather_object(everybody, values)
    assert all(each == values for each in everybody), everybody


def bounds_for_world():
    """Two summands have one sum; the order of more is the library's: a few units in the last
    place of the largest summand, which Adam's division passes on to the weights."""
    return {} if dist.get_world_size() == 2 else {"rtol": 1e-5, "atol": 1e-6}


# ---- training as in one process


def square_mesh():
    return init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))


def wrapped(kind, model):
    if kind == "ddp":
        return DistributedDataParallel(model)
    mesh = {"mesh": square_mesh()} if kind == "hsdp" else {}
    fully_shard(model.first, **mesh)
    return fully_shard(model, **mesh)


def trains_as_one_process(kind, name, clip):
    optimizer_class, _, figures = OPTIMIZERS[name]
    model = wrapped(kind, make())
    optimizer = optimizer_class(model.parameters(), **figures)
    losses = train(model, optimizer, mpopt.GradScaler("cpu", **FIGURES), clip=clip)
    alone = make()
    reference = optimizer_class(alone.parameters(), **figures)
    expected = train_alone(alone, reference, mpopt.GradScaler("cpu", **FIGURES), clip=clip)
    bounds = bounds_for_world()
    if clip and kind != "ddp":  # the norm is summed in another order, in fp64, and used in fp32
        bounds = {"rtol": 1e-5, "atol": 1e-6}
    torch.testing.assert_close(losses, expected, **(bounds or {"rtol": 0.0, "atol": 0.0}))
    assert_same(weights(model), weights(alone), **bounds)
    assert_all_ranks_have(losses)
    assert losses[-1] < losses[0]


COLUMNS_AND_ROWS = {
    "first": ColwiseParallel(output_layouts=Replicate()),
    "second": RowwiseParallel(input_layouts=Replicate()),
}


def tensor_parallel(clip):
    """All ranks see the same batches; some weights are pieces and some are not."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    model = make()
    parallelize_module(model, mesh, COLUMNS_AND_ROWS)
    alone = make()
    results = []
    for each in (model, alone):
        optimizer = optim.AdamW(each.parameters(), lr=0.01)
        scaler = mpopt.GradScaler("cpu", **FIGURES)
        results.append(train_alone(each, optimizer, scaler, clip=clip))
    assert isinstance(model.first.weight, DTensor)
    torch.testing.assert_close(*results, rtol=1e-5, atol=0.0)
    assert_same(weights(model), weights(alone), rtol=1e-4, atol=1e-6)
    assert_all_ranks_have(results[0])


def sequence_parallel(unscales, whose):
    """Each rank has a summand of the norm's gradients, which the update first adds up."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    models = []
    for _ in range(2):
        torch.manual_seed(0)
        models.append(nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16), nn.Linear(16, 16)))
    plan = {
        "0": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(0)),
        "1": SequenceParallel(sequence_dim=0),
        "2": ColwiseParallel(input_layouts=Shard(0), output_layouts=Replicate()),
    }
    parallelize_module(models[0], mesh, plan)
    for model in models:
        optimizer = optimizer_of(whose, model.parameters())
        scaler = mpopt.GradScaler("cpu", **FIGURES)
        for number in range(STEPS):
            scaler.scale(model(batch(number, 0)).square().mean()).backward()
            if model is models[0] and number == 0:
                assert models[0][1].weight.grad.placements[0].is_partial()
            if unscales:
                scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
    assert_same(weights(models[0]), weights(models[1]), rtol=1e-4, atol=1e-6)
    assert mpopt.counters["gradients_moved"] == 2 * STEPS


def sharded_and_tensor_parallel(clip):
    """Pieces along one dimension of the mesh for speed, along the other for memory."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "tensor"))
    results = []
    for is_alone in (False, True):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
        if not is_alone:
            plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
            parallelize_module(model, mesh["tensor"], plan)
            fully_shard(model, mesh=mesh["data"])
        optimizer = optim.AdamW(model.parameters(), lr=0.01)
        scaler = mpopt.GradScaler("cpu", **FIGURES)
        mine = [0, 1] if is_alone else [mesh["data"].get_local_rank()]
        for number in range(STEPS):
            for rank in mine:
                loss = model(batch(number, rank)).square().mean()
                scaler.scale(loss / len(mine)).backward()
            scaler.step(optimizer, **({"clip": clip} if clip else {}))
            scaler.update()
            optimizer.zero_grad()
        results.append(weights(model))
    assert_same(*results, rtol=1e-4, atol=1e-6)


# ---- the backend


def tuned(model, whose="ours", half_gradients=False):
    optimizer = optimizer_of(whose, model.parameters())
    if whose == "ours":
        optimizer.half_gradients = half_gradients
    return optimizer


def ddp_of_compiled():
    model = DistributedDataParallel(torch.compile(make(), backend="mpopt"))
    return model, model


def compiled_ddp():
    model = DistributedDataParallel(make(), bucket_cap_mb=FEW_BYTES / 2**20)
    return model, torch.compile(model, backend="mpopt")


FEW_BYTES = 200


@contextlib.contextmanager
def small_buckets():
    """Buckets of DDP, the first one too, that hold one weight."""
    before, dist._DEFAULT_FIRST_BUCKET_BYTES = dist._DEFAULT_FIRST_BUCKET_BYTES, FEW_BYTES
    try:
        yield
    finally:
        dist._DEFAULT_FIRST_BUCKET_BYTES = before


def compiled_with_ddp(is_outside, half_gradients):
    """DDP around the compiled model, or compiled with it and split by Dynamo at its buckets:
    half weights come in, gradients reach DDP in fp32."""
    with small_buckets():
        model, step = compiled_ddp() if is_outside else ddp_of_compiled()
        optimizer = tuned(model, half_gradients=half_gradients)
        losses = train(step, optimizer, mpopt.GradScaler("cpu", **FIGURES), casts=True)
    assert mpopt.counters["half_weights"] == 4
    assert mpopt.counters["half_copies_cast_again"] == 0
    assert mpopt.counters["half_weights_cast"] == 0
    widened = 4 * STEPS if half_gradients else 0
    assert mpopt.counters["half_gradients_widened"] == widened
    torch._dynamo.reset()
    alone = make()
    reference = tuned(alone, half_gradients=half_gradients)
    step = torch.compile(alone, backend="mpopt")
    expected = train_alone(step, reference, mpopt.GradScaler("cpu", **FIGURES), casts=True)
    if dist.get_world_size() == 2 and not is_outside:
        assert losses == expected
        assert_same(weights(model), weights(alone))
    else:
        torch.testing.assert_close(losses, expected, rtol=1e-3, atol=0.0)
        assert_same(weights(model), weights(alone), **BOUND_BF16)
    assert_all_ranks_have(losses)


BOUND_BF16 = {"rtol": 2e-2, "atol": 2e-3}
"""A sum in another order may round a half weight otherwise."""


def both_backends(make_step, kind, same_batches=False):
    """Losses and weights are those of the same step compiled by stock Inductor."""
    results = []
    for backend in ("mpopt", "inductor"):
        torch._dynamo.reset()
        mpopt.reset()
        model, step = make_step(backend)
        optimizer = tuned(model, half_gradients=kind == "ddp" and backend == "mpopt")
        scaler = mpopt.GradScaler("cpu", **FIGURES)
        run = train_alone if same_batches else train
        losses = run(step, optimizer, scaler, casts=kind != "policy")
        results.append((losses, weights(model)))
        assert mpopt.counters["fallbacks"] == 0
        if backend == "mpopt":
            counted = dict(mpopt.counters)
    (losses, mine), (expected, theirs) = results
    assert losses == expected
    assert_same(mine, theirs)
    assert_all_ranks_have(losses)
    assert losses[-1] < losses[0]
    return counted


def split_by_ddp():
    """The bits of casts are those of stock, split at the same buckets."""

    def make_step(backend):
        model = DistributedDataParallel(make(), bucket_cap_mb=FEW_BYTES / 2**20)
        options = {"half_weights": False} if backend == "mpopt" else None
        return model, torch.compile(model, backend=backend, options=options)

    before = torch._dynamo.utils.counters["aot_autograd"]["total"]
    with small_buckets():
        both_backends(make_step, "ddp")
    assert torch._dynamo.utils.counters["aot_autograd"]["total"] >= before + 4


def compiled_in_fsdp(kind):
    """Blocks compiled, then sharded; hooks swap whole parameters in, which are never ours."""
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    options = {"mp_policy": policy} if kind == "policy" else {}

    def make_step(backend):
        model = make()
        for block in (model.first, model.second):
            block.compile(backend=backend)
            fully_shard(block, **options)
        return model, torch.compile(fully_shard(model, **options), backend=backend)

    counted = both_backends(make_step, kind)
    assert counted["half_weights"] == 0
    assert "stock_graphs" not in counted


def compiled_tensor_parallel():
    """Weights that come in as DTensor have no half copies."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))

    def make_step(backend):
        model = parallelize_module(make(), mesh, COLUMNS_AND_ROWS)
        return model, torch.compile(model, backend=backend)

    counted = both_backends(make_step, "tp", same_batches=True)
    assert counted["half_weights"] == 0
    assert "stock_graphs" not in counted


def stale_copies_are_cast_again():
    """DDP broadcasts rank 0's weights into ours after their copies were made."""
    model = make(seed=dist.get_rank())
    optimizer = tuned(model)
    copy = [optimizer.half_copy(p) for p in model.parameters()][1]
    wrapped = DistributedDataParallel(torch.compile(model, backend="mpopt"))
    with autocast():
        wrapped(batch(0, 0)).backward()
    assert mpopt.counters["half_copies_cast_again"] == (4 if mpopt.counters["half_weights"] else -1)
    assert torch.equal(copy, make(seed=0).first.weight.bfloat16())


# ---- found-inf


BAD = {"inf": float("inf"), "nan": float("nan")}


def poison(param, value, on_rank):
    """A value in the piece of `param`'s gradient that `on_rank` has; it must have one."""
    if dist.get_rank() == on_rank:
        grad = param.grad.to_local() if isinstance(param.grad, DTensor) else param.grad
        grad.view(-1)[-1] = value


def placed_weights():
    """The first whole on all ranks, the second in shards, the third on rank 0 alone."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    params = []
    for shape, placement in (((4, 16), Replicate()), ((8, 16), Shard(0)), ((1, 16), Shard(0))):
        generator = torch.Generator().manual_seed(len(params))
        value = torch.randn(shape, generator=generator)
        params.append(nn.Parameter(distribute_tensor(value, mesh, [placement])))
    return params


def set_gradients(params, scale):
    for number, param in enumerate(params):
        generator = torch.Generator().manual_seed(10 + number)
        value = torch.randn(param.shape, generator=generator) * scale
        param.grad = distribute_tensor(value, param.device_mesh, param.placements)


def optimizer_of(whose, params, name="adamw"):
    ours, theirs, figures = OPTIMIZERS[name]
    if whose == "ours":
        return ours(params, **figures)
    return theirs(params, **figures, fused=whose == "fused")


def steps_of(optimizer, params):
    return [float(optimizer.state.get(p, {}).get("step", 0.0)) for p in params]


def one_rank_overflows(whose, kind, unscales, clip):
    """Case 17: rank 0 or the last one overflows; both skip, 8 becomes 4; the next one counts."""
    params = placed_weights()
    optimizer = optimizer_of(whose, params)
    scaler = mpopt.GradScaler("cpu", **FIGURES)
    for number, rank in enumerate((0, dist.get_world_size() - 1)):
        before = [whole(p).clone() for p in params]
        scale = 8.0 / 2**number
        scaler.scale(torch.zeros(()))
        set_gradients(params, scale)
        poison(params[1], BAD[kind], rank)
        reductions = mpopt.counters["update_reductions"]
        if unscales:
            scaler.unscale_(optimizer)
        scaler.step(optimizer, **({"clip": clip} if clip else {}))
        assert mpopt.counters["update_reductions"] == reductions + 1
        scaler.update()
        assert scaler.get_scale() == scale / 2
        assert scaler.skipped_steps == number + 1
        assert all(map(torch.equal, before, map(whole, params)))
        assert steps_of(optimizer, params) == [0.0] * 3
    if kind == "nan" and whose == "ours" and not unscales:
        assert scaler.nan_steps == 2, "also on the rank that saw none"
    set_gradients(params, 2.0)
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 2.0
    assert not any(map(torch.equal, before, map(whole, params)))
    assert steps_of(optimizer, params) == [1.0] * 3
    assert_all_ranks_have(scaler.get_scale(), scaler._get_growth_tracker())


def bad_rank_without_other_gradients(whose):
    """A rank that has no gradient takes part with flag 0."""
    params = placed_weights()
    optimizer = optimizer_of(whose, params)
    scaler = mpopt.GradScaler("cpu", **FIGURES)
    scaler.scale(torch.zeros(()))
    set_gradients(params, 8.0)
    poison(params[2], BAD["inf"], 0)
    if dist.get_rank() > 0:
        for param in params:
            param.grad = None
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 4.0
    if whose == "ours":
        optimizer.step(clip=1.0)  # measured together again
        assert optimizer.skipped_steps == 2


def group_shares_flags(whose, unscales, shares):
    """Gradients that are plain and differ, as under `no_sync`."""
    param = nn.Parameter(torch.ones(4))
    optimizer = optimizer_of(whose, [param])
    group = {"process_group": dist.group.WORLD} if shares else {}
    scaler = mpopt.GradScaler("cpu", **FIGURES, **group)
    scaler.scale(param.sum()).backward()
    poison(param, BAD["inf"], 0)
    if unscales:
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    is_bad = shares or dist.get_rank() == 0
    assert scaler.get_scale() == (4.0 if is_bad else 8.0)
    assert torch.equal(param, torch.ones(4)) == is_bad
    assert mpopt.counters["update_reductions"] == int(shares)


def group_and_pieces_are_one_reduction():
    params = placed_weights()
    optimizer = optimizer_of("ours", params)
    scaler = mpopt.GradScaler("cpu", **FIGURES, process_group=params[0].device_mesh.get_group())
    scaler.scale(torch.zeros(()))
    set_gradients(params, 8.0)
    scaler.step(optimizer, clip=0.1)
    assert mpopt.counters["update_reductions"] == 1
    scaler.update()
    assert pickle.loads(pickle.dumps(scaler)).process_group is None


# ---- the update of pieces


def local(tensor):
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


def step_a_few(optimizer, params, set_all, scales):
    scaler = mpopt.GradScaler("cpu", **FIGURES, enabled=scales)
    for _ in range(3):
        scaler.scale(torch.zeros(()))
        set_all(params, 8.0)
        scaler.step(optimizer)
        if scales:
            scaler.update()
    return optimizer.state_dict()["state"]


def set_pieces(params, scale):
    """Gradients of parameters that are the pieces of `placed_weights`."""
    placed = placed_weights()
    set_gradients(placed, scale)
    for param, other in zip(params, placed):
        param.grad = local(other.grad)


def update_is_torchs(name, scales):
    """Values as of PyTorch's fused update of the pieces alone, bit for bit (whole vectors:
    PyTorch contracts the rest otherwise); states as PyTorch has them for DTensors."""
    params = placed_weights()
    states = step_a_few(optimizer_of("ours", params, name), params, set_gradients, scales)
    pieces = [nn.Parameter(local(p).detach().clone()) for p in placed_weights()]
    fused = step_a_few(optimizer_of("fused", pieces, name), pieces, set_pieces, scales)
    others = placed_weights()
    foreach = step_a_few(optimizer_of("foreach", others, name), others, set_gradients, scales)
    assert all(torch.equal(local(a), b) for a, b in zip(params, pieces))
    assert states.keys() == foreach.keys() == {0, 1, 2}
    for number, wanted in foreach.items():
        assert states[number].keys() == wanted.keys()
        for key, value in wanted.items():
            found = states[number][key]
            assert torch.equal(local(found), fused[number][key]), key
            assert type(found) is type(value), key
            if isinstance(value, DTensor):
                assert found.placements == value.placements
                assert found.device_mesh == value.device_mesh


def ragged_weights():
    """Pieces of different sizes, also along the second dimension; a bf16 weight."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    params = []
    for shape, dim, dtype in (
        ((5, 3), 0, torch.float32),
        ((7, 9), 1, torch.float32),
        ((3,), 0, torch.bfloat16),
        ((1, 2), 0, torch.float32),
    ):
        value = torch.randn(shape, generator=torch.Generator().manual_seed(len(params)))
        params.append(nn.Parameter(distribute_tensor(value.to(dtype), mesh, [Shard(dim)])))
    return params


def set_ragged(params, pieces, seed):
    """Half gradients, and one whose elements lie in another order."""
    for number, (param, piece) in enumerate(zip(params, pieces)):
        generator = torch.Generator().manual_seed(10 * seed + number)
        value = torch.randn(param.shape, generator=generator)
        placed = distribute_tensor(value, param.device_mesh, param.placements).to_local()
        if number == 0:
            placed, param.grad_dtype, piece.grad_dtype = placed.bfloat16(), *[torch.bfloat16] * 2
        elif number == 1:
            placed = placed.t().contiguous().t()
        else:
            placed = placed.to(param.dtype)
        where = {"shape": param.shape, "stride": param.stride()}
        param.grad = DTensor.from_local(placed, param.device_mesh, param.placements, **where)
        piece.grad = placed.clone()


def update_is_that_of_pieces(name):
    """Bit for bit the update of each rank's pieces as parameters of their own."""
    make_optimizer = {
        "lion": lambda params: optim.Lion(params, lr=0.01, weight_decay=0.1),
        **{n: lambda params, n=n: optimizer_of("ours", params, n) for n in OPTIMIZERS},
    }[name]
    params = ragged_weights()
    pieces = [nn.Parameter(p.to_local().detach().clone()) for p in params]
    first, second = make_optimizer(params), make_optimizer(pieces)
    for number in range(3):
        set_ragged(params, pieces, number)
        first.step(zero_grad=True)
        second.step(zero_grad=True)
        assert all(not local(p.grad).any() for p in params)
    for param, piece in zip(params, pieces):
        assert torch.equal(local(param), piece)
        for key, value in second.state[piece].items():
            assert torch.equal(local(first.state[param][key]), value), key
    assert params[0].shape == (5, 3), "the whole one"


def clip_is_torchs(extra):
    """`extra`: a parameter that is no DTensor counts once, too."""
    results = []
    for whose in ("ours", "theirs"):
        params = placed_weights()
        set_gradients(params, 1.0)
        whole_norm = sum(whole(p.grad).double().square().sum() for p in params)
        if extra:
            params.append(nn.Parameter(torch.ones(5)))
            params[-1].grad = torch.full((5,), 3.0)
            whole_norm += 45.0
        optimizer = optimizer_of("ours", params, "sgd")
        if whose == "ours":
            measured = optimizer.measure()
            # Blocks are summed in fp32, blocks and ranks in fp64.
            torch.testing.assert_close(measured.norm, whole_norm.sqrt().item(), rtol=1e-7, atol=0)
            assert measured.flags == 0
            assert measured.first_bad is None
            assert_all_ranks_have(measured.norm)
            optimizer.step(clip=0.5, zero_grad=True)
            assert all(not local(p.grad).any() for p in params)
        elif extra:  # torch's does not take both kinds at once
            for param in params:
                param.grad.mul_(0.5 / (whole_norm.sqrt() + 1e-6))
            optimizer.step()
        else:
            torch.nn.utils.clip_grad_norm_(params, 0.5)
            optimizer.step()
        results.append([whole(p) for p in params])
    for mine, theirs in zip(*results):
        torch.testing.assert_close(mine, theirs, rtol=1e-6, atol=1e-7)


def weights_of_two_meshes():
    """Four ranks: a weight in shards over two, one over all, one in shards of replicas, one
    that is no DTensor."""
    mesh = square_mesh()
    params = []
    for shape, where, placements in (
        ((8, 16), mesh["shard"], [Shard(0)]),
        ((8, 16), mesh, [Shard(1), Shard(0)]),
        ((8, 16), mesh, [Replicate(), Shard(0)]),
    ):
        generator = torch.Generator().manual_seed(len(params))
        value = torch.randn(shape, generator=generator)
        params.append(nn.Parameter(distribute_tensor(value, where, placements)))
    return params


def norm_over_two_meshes():
    params = weights_of_two_meshes()
    set_gradients(params, 1.0)
    squares = sum(whole(p.grad).double().square().sum().item() for p in params)
    params.append(nn.Parameter(torch.ones(16)))
    params[-1].grad = torch.full((16,), 2.0)
    measured = optimizer_of("ours", params).measure()
    torch.testing.assert_close(measured.norm, (squares + 64.0) ** 0.5, rtol=1e-7, atol=0)
    assert_all_ranks_have(measured.norm)
    assert mpopt.counters["update_reductions"] == 2


def flags_over_two_meshes(whose, unscales):
    """A value that is not finite on any one rank, in any one weight."""
    for number in range(3):
        for rank in range(4):
            params = weights_of_two_meshes()
            optimizer = optimizer_of(whose, params)
            scaler = mpopt.GradScaler("cpu", **FIGURES)
            scaler.scale(torch.zeros(()))
            set_gradients(params, 8.0)
            poison(params[number], BAD["inf"], rank)
            if unscales:
                scaler.unscale_(optimizer)
            scaler.step(optimizer)
            scaler.update()
            assert scaler.get_scale() == 4.0, (number, rank)


def replicas_measure_in_one_reduction():
    model = wrapped("hsdp", make())
    optimizer = optim.AdamW(model.parameters(), lr=0.01)
    model(batch(0, dist.get_rank())).backward()
    squares = sum(whole(p.grad).double().square().sum().item() for p in model.parameters())
    measured = optimizer.measure()
    torch.testing.assert_close(measured.norm, squares**0.5, rtol=1e-7, atol=0)
    assert_all_ranks_have(measured.norm)
    assert mpopt.counters["update_reductions"] == 1


def update_is_seen():
    """By autograd and others that look at version counters."""
    params = placed_weights()
    optimizer = optimizer_of("ours", params)
    product = (params[1] * params[1]).sum()
    set_gradients(params, 1.0)
    before = [(p._version, p._local_tensor._version) for p in params]
    optimizer.step()
    for param, (outer, inner) in zip(params, before):
        assert param._version > outer
        assert param._local_tensor._version > inner
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


def first_bad_is_of_this_rank():
    params = placed_weights()
    optimizer = optimizer_of("ours", params)
    set_gradients(params, 1.0)
    poison(params[1], BAD["nan"], 0)
    measured = optimizer.measure()
    assert measured.flags == 2
    assert (measured.first_bad is params[1]) == (dist.get_rank() == 0)


def gradient_placed_otherwise():
    """Its pieces come to where the parameter lies."""
    results = []
    for placement in (Replicate(), Shard(1), Shard(0)):
        param = placed_weights()[1]
        value = torch.arange(128.0).reshape(8, 16)
        param.grad = distribute_tensor(value, param.device_mesh, [placement])
        optimizer_of("ours", [param], "sgd").step()
        results.append(whole(param))
    assert torch.equal(results[0], results[2])
    assert torch.equal(results[1], results[2])


def gradient_on_another_mesh():
    param = placed_weights()[1]
    optimizer = optimizer_of("ours", [param])
    mesh = init_device_mesh("cpu", (dist.get_world_size(), 1))
    param.grad = distribute_tensor(torch.ones(8, 16), mesh, [Shard(0), Replicate()])
    text = "AdamW cannot update a gradient on another device mesh than its parameter itself"
    with pytest.raises(mpopt.MpoptError, match=text):
        optimizer.step()


def plain_state_is_refused():
    param = placed_weights()[1]
    optimizer = optimizer_of("ours", [param])
    set_gradients([param], 1.0)
    optimizer.step()
    optimizer.state[param]["exp_avg"] = torch.zeros(8, 16)
    with pytest.raises(mpopt.MpoptError, match=r"a state of class Tensor .*set_state_dict"):
        optimizer.step()


def copies_are_refused():
    param = placed_weights()[1]
    optimizer = optimizer_of("ours", [param])
    assert not optimizer.can_copy(param, torch.bfloat16)
    with pytest.raises(mpopt.MpoptError, match="of a whole parameter, not of a"):
        optimizer.half_copy(param)


# ---- checkpoints


def fsdp_training(seed, rule="megatron"):
    model = make(seed)
    fully_shard(model.first)
    fully_shard(model)
    optimizer = optim.AdamW(model.parameters(), lr=0.01, amsgrad=True)
    scaler = mpopt.GradScaler("cpu", **FIGURES, rule=rule)
    return model, optimizer, scaler


def ddp_training(seed):
    model = DistributedDataParallel(make(seed))
    optimizer = optim.AdamW(model.parameters(), lr=0.01, amsgrad=True)
    return model, optimizer, mpopt.GradScaler("cpu", **FIGURES, rule="megatron")


TRAININGS = {"fsdp": fsdp_training, "ddp": ddp_training}


def overflow(model, optimizer, scaler):
    """One step that is skipped, so that the scaler has something to remember."""
    scaler.scale(model(batch(0, dist.get_rank()))).backward()
    for param in model.parameters():
        if local(param.grad).numel():
            local(param.grad).fill_(float("inf"))
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()


def save(model, optimizer, scaler, folder):
    model_state, optimizer_state = get_state_dict(model, optimizer)
    parts = {"model": model_state, "optimizer": optimizer_state, "scaler": scaler}
    dcp.save(parts, checkpoint_id=folder)


def load(model, optimizer, scaler, folder):
    model_state, optimizer_state = get_state_dict(model, optimizer)
    parts = {"model": model_state, "optimizer": optimizer_state, "scaler": scaler}
    dcp.load(parts, checkpoint_id=folder)
    set_state_dict(
        model,
        optimizer,
        model_state_dict=parts["model"],
        optim_state_dict=parts["optimizer"],
    )


def everything(model, optimizer, scaler):
    """Weights and states whole, and the scaler's state."""
    names = {id(p): n for n, p in model.named_parameters()}
    found = {f"weight {names[id(p)]}": whole(p) for p in model.parameters()}
    for param, state in optimizer.state.items():
        found.update({f"{key} {names[id(param)]}": whole(v) for key, v in state.items()})
    return found, scaler.state_dict()


def checkpoint_round_trip(kind, folder):
    """A run that is loaded in the middle goes on as the one that was not interrupted."""
    parts = TRAININGS[kind](0)
    train(*parts)
    overflow(*parts)
    save(*parts, folder)
    saved = everything(*parts)
    fresh = TRAININGS[kind](1)
    load(*fresh, folder)
    loaded = everything(*fresh)
    assert loaded[1] == saved[1]
    assert loaded[1]["_hysteresis_left"] == 1, "one of two overflows"
    assert_same(loaded[0], saved[0])
    assert len(saved[0]) == 7 * 5
    assert train(*fresh) == train(*parts)
    overflow(*parts)
    overflow(*fresh)
    assert fresh[2].get_scale() == parts[2].get_scale() == 4.0
    assert_same(everything(*fresh)[0], everything(*parts)[0])


def save_for_others(folder):
    parts = fsdp_training(0)
    train(*parts)
    overflow(*parts)
    save(*parts, folder)
    found = everything(*parts)
    if dist.get_rank() == 0:
        torch.save(found, f"{folder}/whole.pt")


def load_from_others(folder):
    """On another number of ranks than saved."""
    fresh = fsdp_training(1)
    load(*fresh, folder)
    found, scaler = everything(*fresh)
    expected, expected_scaler = torch.load(f"{folder}/whole.pt")
    assert scaler == expected_scaler
    assert_same(found, expected)
    losses = train(*fresh)
    assert_all_ranks_have(losses)


def state_of_torch_is_taken(folder):
    """A checkpoint that PyTorch's optimizer saved, and the other way round."""
    for saves, loads in ((torch.optim.AdamW, optim.AdamW), (optim.AdamW, torch.optim.AdamW)):
        parts = []
        for seed, optimizer_class in ((0, saves), (1, loads)):
            model, _, scaler = fsdp_training(seed)
            parts.append((model, optimizer_class(model.parameters(), lr=0.01), scaler))
        train(*parts[0])
        where = f"{folder}/{saves.__module__}"
        save(*parts[0], where)
        load(*parts[1], where)
        assert_same(everything(*parts[1])[0], everything(*parts[0])[0])
        first, second = (train(*each) for each in parts)
        torch.testing.assert_close(first, second, rtol=1e-6, atol=0.0)
