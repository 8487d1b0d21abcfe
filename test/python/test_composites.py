"""Expansion of operators that are kept whole."""

from __future__ import annotations

import pickle

import pytest
import torch
from mpopt import _torch, composites, importer
from torch.fx.experimental.proxy_tensor import make_fx

aten = torch.ops.aten


def traced(function, *inputs, keep=True, mode="fake"):
    table = composites.keeping_table() if keep else _torch.decomposition_table({})
    return make_fx(function, decomposition_table=table, tracing_mode=mode)(*inputs)


def targets(gm):
    return [str(n.target) for n in gm.graph.nodes if n.op == "call_function"]


def expanded(gm):
    count = composites.expand(gm.graph, _torch.decomposition_table({}))
    gm.graph.lint()
    gm.recompile()
    return count


FUNCTIONS = {
    "layer_norm": lambda x: aten.native_layer_norm(x, [8], None, None, 1e-5)[0],
    "softmax": lambda x: aten._softmax(x, -1, False),
    "log_softmax": lambda x: aten._log_softmax(x, 0, False),
    "gelu": lambda x: aten.gelu(x, approximate="tanh"),
    "silu": aten.silu,
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("mode", ["fake", "symbolic"])
def test_same_as_tracing_with_inductors_table(name, dtype, mode):
    x = torch.randn(4, 8).to(dtype)
    stock = traced(FUNCTIONS[name], x, keep=False, mode=mode)
    ours = traced(FUNCTIONS[name], x, mode=mode)
    assert len(ours.graph.nodes) < len(stock.graph.nodes)
    assert expanded(ours) == 1
    stock.graph.eliminate_dead_code()
    assert targets(ours) == targets(stock)
    assert torch.equal(ours(x), stock(x))
    for old, new in zip(stock.graph.nodes, ours.graph.nodes, strict=True):
        if isinstance(old.meta.get("val"), torch.Tensor):
            assert new.meta["val"].dtype == old.meta["val"].dtype
            assert str(new.meta["val"].stride()) == str(old.meta["val"].stride())


def test_memo_tells_repeated_arguments_apart():
    """The same operator on the same shapes, first with one tensor in both places."""

    def function(x, y):
        return aten.gelu_backward(x, x), aten.gelu_backward(x, y), aten.gelu_backward(y, y)

    x, y = torch.randn(8), torch.randn(8)
    gm = traced(function, x, y)
    assert expanded(gm) == 3
    assert all(map(torch.allclose, gm(x, y), function(x, y)))


def test_values_are_not_shared():
    gm = traced(lambda x: aten.silu(x) + aten.silu(x * 2), torch.randn(8))
    assert expanded(gm) == 2
    values = [n.meta["val"] for n in gm.graph.nodes if "val" in n.meta]
    assert len({id(v) for v in values}) == len(values)


def test_metadata_comes_along():
    gm = traced(aten.silu, torch.randn(8).bfloat16())
    (node,) = (n for n in gm.graph.nodes if n.target is aten.silu.default)
    node.meta.update(
        partitioner_tag="is_backward", custom={"k": 1}, seq_nr=5, recompute=2, stack_trace="here"
    )
    node.meta[_torch.BARRIER] = True
    expanded(gm)
    new = [n for n in gm.graph.nodes if n.op == "call_function"]
    assert len(new) > 2
    for each in new:
        assert importer.is_backward(each)
        assert each.meta["custom"] == {"k": 1}
        assert (each.meta["seq_nr"], each.meta["recompute"]) == (5, 2)
        assert each.meta["stack_trace"] == "here"
        assert _torch.BARRIER not in each.meta


def test_table_is_picklable():
    table = composites.keeping_table()
    assert not composites.KEPT & table.keys()
    assert len(pickle.dumps(table)) < 1000
    assert pickle.loads(pickle.dumps(table)).keys() == table.keys()
