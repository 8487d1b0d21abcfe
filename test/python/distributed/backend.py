"""Compiled steps on several ranks."""

from __future__ import annotations

import contextlib

import mpopt
import pytest
import torch
import torch.distributed as dist
from mpopt.errors import MpoptError
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (
    FullyShardedDataParallel,
    MixedPrecisionPolicy,
    fully_shard,
)
from torch.distributed.tensor.parallel import parallelize_module
from torch.nn.parallel import DistributedDataParallel

from distributed.common import (
    COLUMNS_AND_ROWS,
    FIGURES,
    STEPS,
    assert_all_ranks_have,
    assert_same,
    autocast,
    batch,
    make,
    optimizer_of,
    train,
    train_alone,
    weights,
)

BOUND_BF16 = {"rtol": 2e-2, "atol": 2e-3}
"""A sum in another order may round a half weight otherwise."""


FEW_BYTES = 200


@contextlib.contextmanager
def small_buckets():
    """Buckets of DDP, the first one too, that hold one weight."""
    before, dist._DEFAULT_FIRST_BUCKET_BYTES = dist._DEFAULT_FIRST_BUCKET_BYTES, FEW_BYTES
    try:
        yield
    finally:
        dist._DEFAULT_FIRST_BUCKET_BYTES = before


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


def both_backends(make_step, kind, same_batches=False):
    """Losses and weights are those of the same step compiled by stock Inductor; what the
    backend counted, and the losses."""
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
    return counted, losses


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

    counted, losses = both_backends(make_step, kind)
    assert counted["half_weights"] == 0
    assert "stock_graphs" not in counted
    if kind == "autocast":
        alone = make()
        step = torch.compile(alone, backend="mpopt", options={"half_weights": False})
        expected = train_alone(step, tuned(alone), mpopt.GradScaler("cpu", **FIGURES), casts=True)
        torch.testing.assert_close(losses, expected, rtol=1e-3, atol=0.0)


def fsdp1(model, uses_parameters=True):
    return FullyShardedDataParallel(
        model, use_orig_params=uses_parameters, device_id=torch.device("cpu")
    )


def with_compiled_blocks(backend, model):
    for block in (model.first, model.second):
        block.compile(backend=backend)
    return model


def compiled_in_fsdp1():
    """FullyShardedDataParallel fills whole parameters through `.data`, unseen by version
    counters: a copy would be stale, and no weight comes in as one. (Without its
    `use_orig_params` Dynamo compiles nothing.)"""

    def make_step(backend):
        model = fsdp1(with_compiled_blocks(backend, make()))
        return model, model

    counted, _ = both_backends(make_step, "fsdp1")
    assert counted["half_weights"] == 0


def copies_of_pieces_are_refused():
    """What FSDP1 and FSDP2 hold: the error says why."""
    for wrap, reason in (
        (fully_shard, "not of a DTensor"),
        (fsdp1, "nobody can tell"),
        (lambda model: fsdp1(model, uses_parameters=False), "nobody can tell"),
    ):
        model = wrap(make())
        optimizer = optimizer_of("ours", model.parameters())
        param = next(model.parameters())
        assert not optimizer.can_copy(param, torch.bfloat16)
        with pytest.raises(MpoptError, match=reason):
            optimizer.half_copy(param)


def sharded_after_its_copies_were_made():
    """A copy that was current before FSDP1 took the parameter is not used again."""
    model = with_compiled_blocks("mpopt", make())
    optimizer = tuned(model)
    with autocast():
        model(batch(0, 0)).backward()
    assert mpopt.counters["half_weights"] == 4
    assert len(optimizer.half_copies()) == 4
    optimizer.zero_grad()
    wrapped = fsdp1(model)
    with torch.no_grad(), FullyShardedDataParallel.summon_full_params(wrapped):
        for param in model.parameters():
            param.data.mul_(2.0)  # which no counter sees
    with autocast(), torch.no_grad():
        mine = wrapped(batch(0, 0))
        torch._dynamo.reset()
        stock = fsdp1(with_compiled_blocks("inductor", doubled()))(batch(0, 0))
    assert torch.equal(mine, stock)


def doubled():
    model = make()
    with torch.no_grad():
        for param in model.parameters():
            param.mul_(2.0)
    return model


def compiled_tensor_parallel():
    """Weights that come in as DTensor have no half copies."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))

    def make_step(backend):
        model = parallelize_module(make(), mesh, COLUMNS_AND_ROWS)
        return model, torch.compile(model, backend=backend)

    counted, _ = both_backends(make_step, "tp", same_batches=True)
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
