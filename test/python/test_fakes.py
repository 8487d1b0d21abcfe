"""Traced values made without the dispatcher are those that it makes."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mpopt import _torch, fakes
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

aten = torch.ops.aten
VIEWS = [
    (aten.view.default, ([4, 6],)),
    (aten.view.default, ([-1],)),
    (aten.permute.default, ([2, 0, 1],)),
    (aten.transpose.int, (0, 2)),
    (aten.squeeze.dims, ([1],)),
    (aten.squeeze.default, ()),
    (aten.unsqueeze.default, (-1,)),
    (aten.expand.default, ([5, 2, 3, 4],)),
    (aten.slice.Tensor, (2, 1, 3)),
    (aten.slice.Tensor, (2, 1, 9223372036854775807, 2)),
    (aten.select.int, (0, 1)),
    (aten.alias.default, ()),
    (aten.as_strided.default, ([3, 4], [4, 1], 2)),
    (aten.view.dtype, (torch.int16,)),
    (aten.t.default, ()),
]


def described(value):
    if not isinstance(value, torch.Tensor):
        return value
    return (
        type(value),
        value.dtype,
        value.device,
        tuple(map(str, value.shape)),
        tuple(map(str, value.stride())),
        str(value.storage_offset()),
        value.requires_grad,
        value.fake_mode,
    )


def node_of(target, source, args):
    graph = fx.Graph()
    placeholder = graph.placeholder("x")
    placeholder.meta["val"] = source
    return graph.call_function(target, (placeholder, *args))


def both(mode, target, source, args):
    node = node_of(target, source, args)
    results = []
    for run in (fakes.run_node, fakes.evaluate):
        with _torch.fake_execution(mode):
            try:
                results.append(run(node))
            except (RuntimeError, ValueError, IndexError):
                results.append("refused")
    return results


@st.composite
def sources(draw):
    mode = FakeTensorMode()
    dtype = draw(st.sampled_from([torch.bfloat16, torch.float16, torch.float32]))
    rank = draw(st.integers(0, 4))
    shape = [draw(st.sampled_from([1, 2, 3, 4])) for _ in range(rank)]
    order = draw(st.permutations(range(rank)))
    with mode:
        value = torch.empty(shape, dtype=dtype).permute(order)
        if rank and draw(st.booleans()):
            value = value[value.shape[0] // 2 :]
    return mode, value


@given(sources(), st.sampled_from(VIEWS))
def test_views_are_the_dispatchers(source, view):
    mode, value = source
    slow, fast = both(mode, view[0], value, view[1])
    assert described(slow) == described(fast)
    if isinstance(fast, torch.Tensor):
        assert torch._C._is_alias_of(fast, value) == torch._C._is_alias_of(slow, value)


@given(sources(), st.sampled_from([torch.float32, torch.bfloat16, torch.float64, torch.int64]))
def test_conversions_are_the_dispatchers(source, dtype):
    mode, value = source
    slow, fast = both(mode, _torch.CONVERT, value, (dtype,))
    assert described(slow) == described(fast)
    assert torch._C._is_alias_of(fast, value) == torch._C._is_alias_of(slow, value)


@pytest.mark.parametrize(
    ("target", "args"), [(aten.t.default, ()), (_torch.CONVERT, (torch.half,))]
)
def test_symbolic_sizes_go_through_the_dispatcher(target, args):
    mode = FakeTensorMode(shape_env=ShapeEnv())
    value = mode.from_tensor(torch.empty(6, 7))
    assert any(type(size) is torch.SymInt for size in value.shape)
    assert _torch.viewed_fake(target, value, ()) is None
    assert _torch.converted_fake(value, torch.half) is None
    slow, fast = both(mode, target, value, args)
    assert described(slow) == described(fast)
    assert not mode.shape_env.guards


def test_what_is_no_view_goes_through_the_dispatcher():
    with FakeTensorMode():
        value = torch.empty(2, 3)
    assert _torch.viewed_fake(aten.relu.default, value, ()) is None
    assert _torch.viewed_fake(aten.view.default, torch.empty(2, 3), [[6]]) is None


def test_plain_values_do_not_go_through_the_dispatcher():
    with FakeTensorMode():
        value = torch.empty(1, 3)
    assert _torch.viewed_fake(aten.squeeze.dims, value, ([0],)) is not None
    assert _torch.converted_fake(value, torch.half) is not None
