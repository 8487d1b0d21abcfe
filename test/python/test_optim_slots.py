"""Rows of the native update that are kept from step to step, and what makes them anew."""

from __future__ import annotations

import mpopt
import pytest
import torch
from mpopt import optim
from mpopt.errors import MpoptError


def loose(optimizer):
    """Let every step make all rows."""
    optimizer._slots = dict
    return optimizer


def move(optimizer, params):
    for param in params:
        param.data = param.data.clone()


def move_states(optimizer, params):
    for state in optimizer.state.values():
        for name, value in state.items():
            if name != "step":
                state[name] = value.clone()
                value.fill_(torch.nan)


def move_memory_of_states(optimizer, params):
    for state in optimizer.state.values():
        for value in state.values():
            value.data = value.data.clone()


def load(optimizer, params):
    optimizer.load_state_dict(optimizer.state_dict())


def take_half_copy(optimizer, params):
    optimizer.half_copy(params[1])


def use_amsgrad(optimizer, params):
    for group in optimizer.param_groups:
        group["amsgrad"] = True


def reorder(optimizer, params):
    optimizer.param_groups[0]["params"].reverse()


def split_group(optimizer, params):
    moved = optimizer.param_groups[0]["params"].pop()
    optimizer.param_groups.append({**optimizer.param_groups[0], "params": [moved], "lr": 0.5})


CHANGES = [
    None,
    move,
    move_states,
    move_memory_of_states,
    load,
    take_half_copy,
    use_amsgrad,
    reorder,
    split_group,
]


def give_gradients(params, step):
    generator = torch.Generator().manual_seed(step)
    for param in params:
        dtype = (torch.float32, torch.bfloat16)[step % 2] if param.ndim == 2 else torch.float32
        param.grad_dtype = None
        grad = torch.randn(param.shape, generator=generator).to(dtype)
        param.grad = grad.t().contiguous().t() if step % 3 == 0 and param.ndim == 2 else grad


def train(optimizer, params, change):
    for step in range(8):
        if step == 4 and change is not None:
            change(optimizer, params)
        give_gradients(params, step)
        optimizer.step(clip=1.0)
    return params


def make():
    generator = torch.Generator().manual_seed(0)
    shapes = [(3, 3), (5,), (4, 6), (0, 3)]
    return [torch.nn.Parameter(torch.randn(shape, generator=generator)) for shape in shapes]


@pytest.mark.skipif(not hasattr(torch.Tensor, "grad_dtype"), reason="needs Tensor.grad_dtype")
@pytest.mark.parametrize("change", CHANGES)
def test_rows_that_are_kept_give_the_bits_of_rows_that_are_made(change):
    ours, other = make(), make()
    kept = optim.AdamW(ours, lr=0.1)
    train(kept, ours, change)
    train(loose(optim.AdamW(other, lr=0.1)), other, change)
    assert len(kept._slots()) >= 2
    for mine, theirs in zip(ours, other, strict=True):
        assert torch.equal(mine, theirs)


def test_weights_in_another_type_are_seen():
    params = make()
    optimizer = optim.SGD(params, lr=1.0)
    for step in (1, 3):
        give_gradients(params, step)
        optimizer.step()
    params[0].data = params[0].data.bfloat16()
    params[0].grad = torch.ones(3, 3, dtype=torch.bfloat16)
    expected = params[0].detach() - 1.0
    optimizer.step()
    assert torch.equal(params[0], expected)


def test_another_order_of_elements_is_seen():
    params = make()
    optimizer = optim.AdamW(params, lr=0.1)
    for step in (1, 2):
        give_gradients(params, step)
        optimizer.step()
    params[0].data = params[0].data.t()
    with pytest.raises(MpoptError, match="lies in another order"):
        optimizer.step()


def test_split_master_begins_anew():
    params = [torch.nn.Parameter(torch.ones(4, dtype=torch.bfloat16))]
    optimizer = optim.SGD(params, lr=2.0**-12, rounding="stochastic")
    for _ in range(3):
        params[0].grad = torch.ones_like(params[0])
        optimizer.step()
    optimizer.param_groups[0].update(master="split", rounding="nearest")
    with torch.no_grad():
        params[0].fill_(1.0)
    for _ in range(8):
        params[0].grad = torch.ones_like(params[0])
        optimizer.step()
    assert torch.equal(optimizer.master_weight(params[0]), torch.full((4,), 1.0 - 2.0**-9))


def test_rows_are_not_saved():
    params = make()
    before = mpopt.counters["fallbacks"]
    optimizer = optim.AdamW(params, lr=0.1)
    for step in (1, 2):
        give_gradients(params, step)
        optimizer.step()
    assert optimizer._slots()
    assert "_rows" not in optimizer.__getstate__()
    assert mpopt.counters["fallbacks"] == before
