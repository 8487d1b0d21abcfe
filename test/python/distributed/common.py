"""What the cases share: a model, batches, training, weights in pieces, comparisons."""

from __future__ import annotations

import mpopt
import torch
import torch.distributed as dist
from mpopt import optim
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel
from torch.nn.parallel import DistributedDataParallel

STEPS = 4
ROWS = 6  # of a batch, for each rank
FIGURES = {"init_scale": 8.0, "growth_interval": 100}
OPTIMIZERS = {
    "adam": (optim.Adam, torch.optim.Adam, {"lr": 0.01, "amsgrad": True}),
    "adamw": (optim.AdamW, torch.optim.AdamW, {"lr": 0.01}),
    "sgd": (optim.SGD, torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
}
BAD = {"inf": float("inf"), "nan": float("nan")}


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


def local(tensor):
    return tensor.to_local() if isinstance(tensor, DTensor) else tensor


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


def square_mesh():
    return init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))


def wrapped(kind, model):
    if kind == "ddp":
        return DistributedDataParallel(model)
    mesh = {"mesh": square_mesh()} if kind == "hsdp" else {}
    fully_shard(model.first, **mesh)
    return fully_shard(model, **mesh)


COLUMNS_AND_ROWS = {
    "first": ColwiseParallel(output_layouts=Replicate()),
    "second": RowwiseParallel(input_layouts=Replicate()),
}


def optimizer_of(whose, params, name="adamw"):
    ours, theirs, figures = OPTIMIZERS[name]
    if whose == "ours":
        return ours(params, **figures)
    return theirs(params, **figures, fused=whose == "fused")


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


def poison(param, value, on_rank):
    """A value in the piece of `param`'s gradient that `on_rank` has; it must have one."""
    if dist.get_rank() == on_rank:
        grad = param.grad.to_local() if isinstance(param.grad, DTensor) else param.grad
        grad.view(-1)[-1] = value


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
