"""What each rank does in test_distributed.py. Every function runs on all ranks at once."""

from __future__ import annotations

import contextlib

import mpopt
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from mpopt import optim
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
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
        scaler.step(optimizer, clip=clip)
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
        scaler.step(optimizer, clip=clip)
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
        torch.testing.assert_close(mine[name], theirs[name], **bounds, msg=lambda m: f"{name}: {m}")


def assert_all_ranks_have(*values):
    everybody = [None] * dist.get_world_size()
    dist.all_gather_object(everybody, values)
    assert all(each == values for each in everybody), everybody


def bounds_for_world():
    """Two summands have one sum; the order of more is the library's: a few units in the last
    place of the largest summand, which Adam's division passes on to the weights."""
    return {} if dist.get_world_size() == 2 else {"rtol": 1e-5, "atol": 1e-6}


# ---- training as in one process


def wrapped(kind, model):
    if kind == "ddp":
        return DistributedDataParallel(model)
    fully_shard(model.first)
    return fully_shard(model)


def trains_as_one_process(kind, name, clip):
    optimizer_class, _, figures = OPTIMIZERS[name]
    model = wrapped(kind, make())
    optimizer = optimizer_class(model.parameters(), **figures)
    losses = train(model, optimizer, mpopt.GradScaler("cpu", **FIGURES), clip=clip)
    alone = make()
    reference = optimizer_class(alone.parameters(), **figures)
    expected = train_alone(alone, reference, mpopt.GradScaler("cpu", **FIGURES), clip=clip)
    bounds = bounds_for_world()
    if clip and kind == "fsdp":  # the norm is summed in another order, in fp64, and used in fp32
        bounds = {"rtol": 1e-5, "atol": 1e-6}
    torch.testing.assert_close(losses, expected, **(bounds or {"rtol": 0.0, "atol": 0.0}))
    assert_same(weights(model), weights(alone), **bounds)
    assert_all_ranks_have(losses)
    assert losses[-1] < losses[0]
