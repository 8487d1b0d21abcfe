"""Cases about the state of autocast: what was compiled under one state never runs under another.

B38: a block of autocast with a graph break inside, or none, and the same module without it.
"""

from __future__ import annotations

import contextlib
from typing import Any

import mpopt
import pytest
import torch
from acceptance import BF16, F16, F32
from mpopt.bench.cuda_policy import cuda_policy
from torch import nn


def _randn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def _break(is_broken: bool) -> None:
    if is_broken:
        torch._dynamo.graph_break()


@pytest.fixture(autouse=True)
def _fresh() -> Any:
    torch._dynamo.reset()
    with torch._inductor.config.patch(force_disable_caches=True):
        yield
    torch._dynamo.reset()


def _wide_outside(x: torch.Tensor, is_broken: bool) -> torch.Tensor:
    """A product outside of the block, to which the block's half result is added."""
    with torch.autocast("cpu", BF16):
        half = torch.mm(x, x)
        _break(is_broken)
        half = half.relu()
    wide = torch.mm(x, x)
    return wide + half


def _wide_inside(x: torch.Tensor, is_broken: bool) -> torch.Tensor:
    """A mean by hand inside the block; CUDA's lists give the sum in f32."""
    with torch.autocast("cpu", F16):
        half = x + x
        _break(is_broken)
        return half.sum() / half.numel()


@pytest.mark.parametrize("is_broken", [False, True], ids=["whole", "broken"])
@pytest.mark.parametrize("place", ["outside", "inside"])
def test_b38_types_are_eagers_in_and_behind_a_block(place: str, is_broken: bool) -> None:
    """All four results are f32, and so are the values: not those of halves."""
    function = {"outside": _wide_outside, "inside": _wide_inside}[place]
    x = _randn(64, 64)
    x = x.half() if place == "inside" else x
    with cuda_policy() if place == "inside" else contextlib.nullcontext():
        eager = function(x, is_broken)
        graphs = mpopt.counters["graphs"]
        got = torch.compile(function, backend=mpopt.mpopt, fullgraph=not is_broken)(x, is_broken)
        assert mpopt.counters["graphs"] - graphs == (2 if is_broken else 1)
    assert got.dtype == eager.dtype == F32
    double = x.double()
    if place == "inside":
        exact = (x + x).double().mean()
        assert abs(got - exact) <= 2.0**-22 * (x + x).double().abs().mean()
        return
    product = double.mm(double)
    # The product outside is exact but for f32's own error; the half one is off by what bf16
    # makes of the operands and of the result.
    bound = 2.0**-18 * 64 + 2.0**-7 * double.abs().mm(double.abs())
    assert ((got.double() - product - product.relu()).abs() <= bound).all()
    assert (got - eager).abs().max() <= 2.0**-7 * product.abs().max()
    block = product - (got.double() - product.relu())
    assert not torch.equal(block.to(BF16).double(), block), "the product outside was rounded"


@pytest.mark.parametrize("state", [(False, BF16), (True, F16)], ids=["off", "another type"])
@pytest.mark.parametrize("train", [False, True], ids=["inference", "training"])
def test_b38_another_state_of_autocast_compiles_again(
    state: tuple[bool, torch.dtype], train: bool
) -> None:
    """On, then off or of another type, then on again: each call has eager's type, and the third
    takes what the first one compiled."""
    torch.manual_seed(0)
    model, x = nn.Linear(16, 16), _randn(8, 16)
    step = torch.compile(model, backend=mpopt.mpopt, dynamic=False)
    compiled: list[float] = []

    def call(enabled: bool, dtype: torch.dtype) -> torch.Tensor:
        with torch.autocast("cpu", dtype, enabled=enabled), torch.set_grad_enabled(train):
            result = step(x)
        with torch.autocast("cpu", dtype, enabled=enabled), torch.no_grad():
            assert result.dtype == model(x).dtype == (dtype if enabled else F32)
        seen = mpopt.counters
        compiled.append(seen["graphs"] + seen["stock_graphs"])
        return result.detach()

    first, second, third = call(True, BF16), call(*state), call(True, BF16)
    assert compiled == [1, 2, 2]
    assert torch.equal(first, third)
    exact = nn.functional.linear(x.double(), model.weight.double(), model.bias.double())
    bound = {F32: 2.0**-20, F16: 2.0**-9}[second.dtype]
    assert (second.double() - exact).abs().max() <= bound * exact.abs().max().clamp(min=1)


def test_b38_a_device_type_of_autocast_is_part_of_the_state() -> None:
    """CUDA's autocast says nothing of CPU tensors; after it, CPU's compiles again."""

    def product(x: torch.Tensor) -> torch.Tensor:
        return torch.mm(x, x)

    step = torch.compile(product, backend=mpopt.mpopt, dynamic=False)
    x = _randn(32, 32)
    dtypes = []
    for device in ("cpu", "other", "cpu"):
        context = torch.autocast("cpu", BF16) if device == "cpu" else contextlib.nullcontext()
        if device == "other":
            torch.set_autocast_enabled("cuda", True)
        try:
            with context, torch.no_grad():
                dtypes.append(step(x).dtype)
        finally:
            torch.set_autocast_enabled("cuda", False)
    assert dtypes == [BF16, F32, BF16]
