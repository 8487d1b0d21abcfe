"""Training on several ranks is that of one process."""

from __future__ import annotations

import mpopt
import torch
import torch.distributed as dist
from mpopt import optim
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)

from distributed.common import (
    COLUMNS_AND_ROWS,
    FIGURES,
    OPTIMIZERS,
    STEPS,
    assert_all_ranks_have,
    assert_same,
    batch,
    bounds_for_world,
    make,
    optimizer_of,
    train,
    train_alone,
    weights,
    wrapped,
)


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
