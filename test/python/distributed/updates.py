"""The update of parameters of which each rank has a piece."""

from __future__ import annotations

import mpopt
import pytest
import torch
import torch.distributed as dist
from mpopt import optim
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor

from distributed.common import (
    BAD,
    FIGURES,
    OPTIMIZERS,
    assert_all_ranks_have,
    batch,
    local,
    make,
    optimizer_of,
    placed_weights,
    poison,
    set_gradients,
    weights_of_two_meshes,
    whole,
    wrapped,
)


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
