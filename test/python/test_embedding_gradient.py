"""The gradient of a tied embedding: the bits of the plain sum, without its buffer."""

from __future__ import annotations

import mpopt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mpopt import optim
from mpopt.embedding_gradient import add_rows
from torch import nn

ROWS = 64


def bits(tensor):
    return tensor.detach().view(torch.int32)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, ROWS - 1), min_size=1, max_size=40),
    st.integers(-1, ROWS - 1),
    st.integers(0, 2**31),
)
def test_rows_are_those_of_the_plain_sum(tokens, padding, seed):
    generator = torch.Generator().manual_seed(seed)
    grad = torch.randn(len(tokens), 5, generator=generator)
    other = torch.randn(ROWS, 5, generator=generator)
    other[torch.rand(ROWS, 5, generator=generator) < 0.3] = -0.0
    grad[torch.rand(grad.shape, generator=generator) < 0.3] = -0.0
    indices = torch.tensor(tokens)
    plain = torch.ops.aten.embedding_dense_backward(grad, indices, ROWS, padding, False) + other
    assert torch.equal(bits(add_rows(grad, indices, other, padding)), bits(plain))


class Tied(nn.Module):
    """Lookup, a layer, and the lookup's weight as the last one."""

    def __init__(self, **kwargs):
        super().__init__()
        self.embedding = nn.Embedding(ROWS * 8, 32, **kwargs)
        self.layer = nn.Linear(32, 32)

    def forward(self, tokens, *more):
        h = torch.tanh(self.layer(self.embedding(tokens)))
        for others in more:
            h = h + self.embedding(others).mean(1, keepdim=True)
        return (h @ self.embedding.weight.t()).float().square().mean()


def gradients(backend, tokens, ours=False, dtype=torch.bfloat16, **kwargs):
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = Tied(**kwargs)
    optimizer = optim.SGD(model.parameters(), lr=0.1) if ours else None
    compiled = torch.compile(model, backend=backend)
    with torch.autocast("cpu", dtype):
        loss = compiled(*tokens) if isinstance(tokens, tuple) else compiled(tokens)
    loss.backward()
    del optimizer
    return [loss, *(p.grad for p in model.parameters())]


def tokens_of(*shape):
    return torch.randint(0, 40, shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("ours", [False, True])
@pytest.mark.parametrize("kwargs", [{}, {"padding_idx": 3}])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_gradients_are_those_of_stock(dtype, kwargs, ours):
    tokens = tokens_of(4, 16)
    mpopt.counters.clear()
    made = gradients("mpopt", tokens, ours, dtype, **kwargs)
    assert mpopt.counters["embedding_sums"] == 1
    for a, b in zip(made, gradients("inductor", tokens, False, dtype, **kwargs), strict=True):
        assert torch.equal(bits(a), bits(b))


def test_weight_of_several_lookups():
    tokens = tokens_of(4, 16), tokens_of(4, 8), tokens_of(4, 4)
    mpopt.counters.clear()
    made = gradients("mpopt", tokens)
    assert mpopt.counters["embedding_sums"] == 3
    for a, b in zip(made, gradients("inductor", tokens), strict=True):
        assert torch.equal(bits(a), bits(b))


@pytest.mark.parametrize(
    ("shape", "kwargs"),
    [((16, 16), {}), ((4, 16), {"scale_grad_by_freq": True})],
    ids=["many tokens", "counted tokens"],
)
def test_left_alone_where_it_gains_nothing(shape, kwargs):
    tokens = tokens_of(*shape)
    mpopt.counters.clear()
    made = gradients("mpopt", tokens, **kwargs)
    assert mpopt.counters["embedding_sums"] == 0
    for a, b in zip(made, gradients("inductor", tokens, **kwargs), strict=True):
        assert torch.equal(bits(a), bits(b))


def test_dynamic_sizes_are_left_alone():
    torch._dynamo.reset()
    mpopt.counters.clear()
    compiled = torch.compile(Tied(), backend="mpopt", dynamic=True)
    with torch.autocast("cpu", torch.bfloat16):
        for length in (8, 12):
            compiled(tokens_of(2, length)).backward()
    assert mpopt.counters["embedding_sums"] == 0 and mpopt.counters["fallbacks"] == 0
