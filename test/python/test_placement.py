"""Storage types under numerics="relaxed", and the types of calls under precision=."""

from __future__ import annotations

import copy
import json
from typing import Any

import mpopt
import pytest
import torch
from mpopt import native
from mpopt.errors import OptionError
from mpopt.options import resolve
from torch import nn

WIDTH = 128


class Block(nn.Module):
    """A pre-norm feed-forward block; its residual stream is f32 and saved by stock."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


class Net(nn.Module):
    """Blocks behind a joined token, as in a vision transformer."""

    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.randn(1, 1, WIDTH))
        self.stem = nn.Linear(WIDTH, WIDTH)
        self.blocks = nn.Sequential(Block(), Block(), Block())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tokens = torch.cat([self.token.expand(x.shape[0], -1, -1), self.stem(x)], 1)
        return self.blocks(tokens).square().mean()


def _step(model: nn.Module, x: torch.Tensor, autocast: bool, **how: Any) -> list[torch.Tensor]:
    model = copy.deepcopy(model)
    torch._dynamo.reset()
    compiled = torch.compile(model, **how) if how else model
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        loss = compiled(x)
    loss.backward()
    return [loss.detach(), *(p.grad for p in model.parameters())]


def _error(got: list[torch.Tensor], want: list[torch.Tensor]) -> float:
    """Norm of the difference of all gradients, relative to the norm of all."""
    top = sum((a.double() - b).square().sum() for a, b in zip(got[1:], want[1:], strict=True))
    return float((top / sum(b.square().sum() for b in want[1:])).sqrt())


@pytest.fixture(scope="module")
def net() -> tuple[nn.Module, torch.Tensor, list[torch.Tensor]]:
    """A model, its input, and its loss and gradients in fp64."""
    torch.manual_seed(0)
    model, x = Net(), torch.randn(4, 63, WIDTH)
    exact = _step(copy.deepcopy(model).double(), x.double(), autocast=False)
    return model, x, exact


def test_relaxed_saves_fewer_bytes_within_its_budget(net: Any) -> None:
    """What backward reads is kept in half, and the error stays below 1.10 x stock's."""
    model, x, exact = net
    stock = _step(model, x, autocast=True, backend="inductor")
    mpopt.reset()
    ours = _step(model, x, autocast=True, backend="mpopt", mode="relaxed")
    counts = mpopt.counters
    assert counts["partitions"] == 1
    assert counts["saved_bytes"] < 0.8 * counts["saved_bytes_before"]
    assert counts["fallbacks"] == 0
    assert _error(ours, exact) <= 1.10 * _error(stock, exact)


def test_without_budget_nothing_is_rounded(net: Any) -> None:
    """epsilon=0 gives what precise gives, bit for bit."""
    model, x, _ = net
    precise = _step(model, x, autocast=True, backend="mpopt")
    options = {"numerics": "relaxed", "epsilon": 0.0}
    relaxed = _step(model, x, autocast=True, backend="mpopt", options=options)
    assert all(map(torch.equal, precise, relaxed))


def test_precision_is_autocast_for_a_program_without_it(
    net: Any, tmp_path: Any
) -> None:
    """Products become half where the cost model says so; results stay f32; errors are
    autocast's, and far from fp32's."""
    model, x, exact = net
    file = tmp_path / "fast-halves.json"
    file.write_text(_fast_halves())
    options = {"precision": "bf16", "cost_model": str(file)}
    mpopt.reset()
    ours = _step(model, x, autocast=False, backend="mpopt", options=options)
    autocast = _step(model, x, autocast=True, backend="inductor")
    wide = _step(model, x, autocast=False, backend="inductor")
    assert all(t.dtype is torch.float32 for t in ours)
    assert 20 * _error(wide, exact) < _error(ours, exact) <= 1.10 * _error(autocast, exact)


def _fast_halves() -> str:
    """The model of AMX, where halves are fast at these sizes too, without start costs."""
    data = json.loads(native.load().cost_model_text("cpu-amx"))
    data["launch"] = 1e-9
    for rates in data["types"].values():
        rates["launch"] = 1e-9
    return json.dumps(data)


def test_calls_that_do_not_pay_stay_wide(net: Any) -> None:
    """With avx2 halves are slower: the graph is computed in fp32 to the bit."""
    model, x, _ = net
    options = {"precision": "bf16", "cost_model": "cpu-avx2"}
    ours = _step(model, x, autocast=False, backend="mpopt", options=options)
    wide = _step(model, x, autocast=False, backend="inductor")
    assert all(map(torch.equal, ours, wide))


def test_unknown_precision_is_an_error() -> None:
    with pytest.raises(OptionError, match="precision must be bf16 or fp16, not 'int8'"):
        resolve({"precision": "int8"})
