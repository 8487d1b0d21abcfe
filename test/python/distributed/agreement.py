"""Gradients of one rank are not finite: all skip, with the same scale."""

from __future__ import annotations

import os
import pickle

import mpopt
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

from distributed.common import (
    BAD,
    FIGURES,
    assert_all_ranks_have,
    optimizer_of,
    placed_weights,
    poison,
    set_gradients,
    weights_of_two_meshes,
    whole,
)


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


def fallback_agrees(unscales):
    """What PyTorch's update does in place of ours (here in fp64) is skipped by all, too."""
    os.environ["MPOPT_STRICT"] = "0"
    try:
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        value = torch.ones(4, 2, dtype=torch.float64)
        param = nn.Parameter(distribute_tensor(value, mesh, [Shard(0)]))
        optimizer = optimizer_of("ours", [param], "sgd")
        scaler = mpopt.GradScaler("cpu", **FIGURES)
        for bad in (True, False):
            scaler.scale(torch.zeros(()))
            param.grad = distribute_tensor(8.0 * value, mesh, [Shard(0)])
            if bad:
                poison(param, BAD["inf"], 0)
            if unscales:
                scaler.unscale_(optimizer)
            scaler.step(optimizer, clip=0.5)
            scaler.update()
            assert scaler.get_scale() == 4.0
            assert torch.equal(whole(param), value) == bad
        assert mpopt.counters["fallbacks.update"] == 2
        assert optimizer.skipped_steps == 1
        # The norm of all is 0.5; momentum 0.9 as of Nesterov, at lr 0.1.
        moved = 0.1 * 1.9 * 0.5 / 8**0.5
        torch.testing.assert_close(whole(param), value - moved, rtol=1e-6, atol=0.0)
    finally:
        os.environ["MPOPT_STRICT"] = "1"
