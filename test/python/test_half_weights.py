"""Half weights that the optimizer writes, as inputs of the compiled step."""

from __future__ import annotations

import copy
import gc

import mpopt
import pytest
import torch
from mpopt import optim
from torch import nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    """Linear layers, a convolution, a weight that is transposed, one that is shared."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(16, 32)
        self.first = nn.Linear(32, 64)
        self.second = nn.Linear(64, 32, bias=False)
        self.free = nn.Parameter(torch.randn(32, 32) * 0.1)
        self.norm = nn.LayerNorm(32)
        self.conv = nn.Conv1d(32, 32, 3, padding=1)

    def forward(self, tokens):
        x = self.embedding(tokens)
        x = x + self.second(torch.relu(self.first(self.norm(x))))
        x = x + x @ self.free.t()
        x = self.conv(x.transpose(1, 2)).transpose(1, 2)
        return nn.functional.linear(x, self.embedding.weight).float().square().mean()


def tokens():
    return torch.randint(0, 16, (2, 8), generator=torch.Generator().manual_seed(5))


def make(seed=0):
    torch.manual_seed(seed)
    return Block()


def train(model, optimizer, step, dtype=torch.bfloat16, steps=3, micro=1):
    losses = []
    for _ in range(steps):
        for _ in range(micro):
            with torch.autocast("cpu", dtype=dtype):
                loss = step(tokens())
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    return losses


def both(dtype=torch.bfloat16, half_gradients=False, micro=1, **options):
    """A model with our optimizer and half weights, and one as stock compiles and updates it."""
    results = []
    for ours in (True, False):
        torch._dynamo.reset()
        model = make()
        if ours:
            optimizer = optim.AdamW(model.parameters(), lr=0.01)
            optimizer.half_gradients = half_gradients
            step = torch.compile(model, backend="mpopt", options=options)
        else:
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, fused=True)
            step = torch.compile(model, backend="inductor")
        # Before 2.13, PyTorch finds a graph of bf16 under the key of the one in fp16.
        with torch._functorch.config.patch(enable_autograd_cache=ours):
            losses = train(model, optimizer, step, dtype, micro=micro)
        if ours:
            # first.weight and bias, second, free, conv's weight and bias, the tied embedding
            assert mpopt.counters["half_weights"] == 7
            assert mpopt.counters["half_copies_cast_again"] == 0
            assert mpopt.counters["half_weights_cast"] == 0
        results.append((losses, [p.detach() for p in model.parameters()]))
    return results


def assert_equal(results):
    (first, mine), (second, theirs) = results
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True)), (first, second)
    for a, b in zip(mine, theirs, strict=True):
        assert torch.equal(a, b), (a - b).abs().max()


@pytest.fixture(autouse=True)
def fresh():
    mpopt.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_training_has_the_bits_of_stock(dtype):
    assert_equal(both(dtype))


def test_half_gradients_have_the_bits_of_stock():
    assert_equal(both(half_gradients=True))


@pytest.mark.parametrize("half_gradients", [True, False])
def test_micro_batches_are_added_in_fp32(half_gradients):
    assert_equal(both(half_gradients=half_gradients, micro=3))


def test_gradient_stays_in_half_until_a_second_one_comes():
    model = make()
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    optimizer.half_gradients = True
    step = torch.compile(model, backend="mpopt")
    for expected in (torch.bfloat16, torch.float32):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = step(tokens())
        loss.backward()
        assert model.first.weight.grad.dtype is expected
        assert model.norm.weight.grad.dtype is torch.float32
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        step(tokens()).backward()
    assert model.first.weight.grad.dtype is torch.bfloat16


def loss_of(step):
    with torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        return step(tokens())


def trained():
    model = make()
    optimizer = optim.AdamW(model.parameters(), lr=0.01)
    step = torch.compile(model, backend="mpopt")
    train(model, optimizer, step, steps=2)
    return model, optimizer, step


def fresh_loss(model):
    """Of the same weights without half copies."""
    torch._dynamo.reset()
    other = make()
    other.load_state_dict(model.state_dict())
    return loss_of(torch.compile(other, backend="mpopt"))


CHANGES = {
    "in place": lambda model: model.first.weight.mul_(1.5),
    "load_state_dict": lambda model: model.load_state_dict(make(7).state_dict()),
    "ema swap": lambda model: model.first.weight.copy_(model.first.weight * 0.9),
    "new storage": lambda model: setattr(
        model.first.weight, "data", model.first.weight.data.clone() * 2.0
    ),
}


@pytest.mark.parametrize("change", list(CHANGES))
def test_stale_copies_are_cast_again_and_counted(change):
    model, _, step = trained()
    before = mpopt.counters["half_copies_cast_again"]
    with torch.no_grad():
        CHANGES[change](model)
    found = loss_of(step)
    assert mpopt.counters["half_copies_cast_again"] > before
    assert torch.equal(found, fresh_loss(model))


def test_frozen_weights_and_inference():
    model = make()
    model.second.weight.requires_grad_(False)
    optimizer = optim.AdamW(model.parameters(), lr=0.01)
    step = torch.compile(model, backend="mpopt")
    train(model, optimizer, step, steps=2)
    assert mpopt.counters["half_weights"] == 7
    assert model.second.weight.grad is None
    assert torch.equal(loss_of(step), fresh_loss(model))


def test_off_by_option_and_without_an_optimizer_of_ours():
    for options, optimizer in (({"half_weights": False}, optim.AdamW), ({}, torch.optim.AdamW)):
        torch._dynamo.reset()
        mpopt.reset()
        model = make()
        train(
            model,
            optimizer(model.parameters()),
            torch.compile(model, backend="mpopt", options=options),
            steps=1,
        )
        assert mpopt.counters["half_weights"] == 0


def test_another_dtype_later_casts_and_is_counted():
    model, optimizer, step = trained()
    train(model, optimizer, step, dtype=torch.float16, steps=1)
    assert mpopt.counters["half_weights_cast"] > 0


def test_model_and_optimizer_can_be_copied_and_saved(tmp_path):
    model, optimizer, _ = trained()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "x")
    loaded = torch.load(tmp_path / "x", weights_only=True)
    assert torch.equal(loaded["model"]["first.weight"], model.first.weight)
    clone = copy.deepcopy(model)
    assert torch.equal(loss_of(clone), loss_of(model))


def test_dead_optimizer_leaves_weights_alone():
    model, optimizer, step = trained()
    del optimizer
    gc.collect()
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), step, steps=1)
    assert mpopt.counters["half_weights_cast"] > 0


class Readers(nn.Module):
    def __init__(self, read):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 8))
        self.read = read

    def forward(self, x):
        return self.read(x, self.weight)


def _disabled(x, w):
    with torch.autocast("cpu", enabled=False):
        return x @ w


def _inner_fp16(x, w):
    with torch.autocast("cpu", dtype=torch.float16):
        return x @ w


READERS = {
    "matmul": (lambda x, w: x @ w, 1),
    "two uses": (lambda x, w: (x @ w) @ w, 0),
    "transposed": (lambda x, w: x @ w.t(), 1),
    "rows": (lambda x, w: x[:, :4] @ w[0:4], 1),
    "added": (lambda x, w: x @ w + w[0], 1),
    "scaled": (lambda x, w: x @ (w * 2), 0),
    "norm": (lambda x, w: nn.functional.layer_norm(x, (8,), w[0]), 0),
    "returned as it is": (lambda x, w: (x @ w, w), 1),
    "autocast off": (_disabled, 0),
    "autocast of another type": (_inner_fp16, 1),
    "two types": (lambda x, w: (_inner_fp16(x, w), x @ w), 0),
}


@pytest.mark.parametrize("name", list(READERS))
def test_only_weights_that_autocast_narrows_alone(name):
    read, expected = READERS[name]
    model = Readers(read)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    step = torch.compile(model, backend="mpopt")
    x = torch.randn(4, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = step(x)
    assert mpopt.counters["half_weights"] == expected
    if isinstance(found, torch.Tensor):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            wanted = read(x, model.weight)
        torch.testing.assert_close(found, wanted, rtol=2e-2, atol=2e-2)
    assert optimizer.param_groups


class Checkpointed(nn.Module):
    """Blocks that run again in backward, and a layer that does not."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32)) for _ in range(2)
        )
        self.last = nn.Linear(32, 8)

    def forward(self, x):
        for block in self.blocks:
            x = x + checkpoint(block, x, use_reentrant=False)
        return self.last(x).float().square().mean()


def train_checkpointed(backend, optimizer_class, **kwargs):
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = Checkpointed()
    optimizer = optimizer_class(model.parameters(), lr=0.01, **kwargs)
    step, losses = torch.compile(model, backend=backend), []
    for seed in range(3):
        x = torch.randn(96, 32, generator=torch.Generator().manual_seed(seed))
        with torch.autocast("cpu", torch.bfloat16):
            losses.append(step(x))
        losses[-1].backward()
        optimizer.step()
        optimizer.zero_grad()
    return losses, list(model.parameters()), optimizer


def test_weights_in_checkpointed_regions_come_in_half():
    losses, weights, optimizer = train_checkpointed("mpopt", optim.AdamW)
    assert len(optimizer.half_copies()) == 10
    assert mpopt.counters["half_weights_cast"] == 0
    expected, theirs, _ = train_checkpointed("inductor", torch.optim.AdamW, fused=True)
    assert all(map(torch.equal, losses, expected))
    assert all(map(torch.equal, weights, theirs))
