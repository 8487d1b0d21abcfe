"""FX graphs as modules: texts, operands, places; and which nodes keep their rounding."""

from __future__ import annotations

import math
import operator

import pytest
import torch
from eager_code import step
from mpopt import _torch, attributes, barriers, composites, importer, native
from mpopt.errors import UnsupportedError
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx

aten = torch.ops.aten


def imported(function, *inputs, mode="fake"):
    gm = make_fx(function, tracing_mode=mode)(*inputs)
    return importer.import_graph(gm.graph), gm


def text_of(graph):
    module = native.module_type().from_graph(
        graph.inputs, graph.nodes, graph.outputs, sources=graph.sources
    )
    return str(module)


@pytest.mark.parametrize(
    "value",
    [
        *(0, -5, 2**40, True, False, None, 0.1, -0.0, 1e-5, 1e300, math.inf, -math.inf),
        *('a"b\\c\n', "é\\22", "", [1, 2.5, [True]], [], ["x", None]),
        *(torch.bfloat16, torch.complex64, torch.int64),
    ],
    ids=repr,
)
def test_attributes_survive_the_compiler(value):
    attrs = f"{{args = {{v = {attributes.attribute_text(value)}}}}}"
    node = ("aten.probe.default", attrs, (), ("tensor<2xf32>",), 0, -1)
    module = native.module_type().from_graph([], [node], [(0, "")])
    printed = str(module).partition("args = ")[2].partition("} :")[0]
    back = attributes.parse_dictionary(printed)["v"]
    assert repr(back) == repr(value)


def test_nan():
    text = f"{{v = {attributes.attribute_text(math.nan)}}}"
    assert math.isnan(attributes.parse_dictionary(text)["v"])


@pytest.mark.parametrize("text", ["3", "{a = 1} b", "[1]"])
def test_not_a_dictionary(text):
    with pytest.raises(ValueError, match="not a dictionary"):
        attributes.parse_dictionary(text)


def test_plain_tensors_are_operands_only():
    graph, _ = imported(lambda x, y: torch.addmm(x, y, y, alpha=2), torch.ones(4), torch.ones(4, 4))
    (node,) = graph.nodes
    assert node[:4] == (
        "aten.addmm.default",
        "{args = {alpha = 2}}",
        (0, 1, 1),
        ("tensor<4x4xf32>",),
    )


def test_a_missing_optional_tensor_is_spelled_out():
    def function(x, b):
        return aten.native_layer_norm(x, [4], None, b, 1e-5)

    graph, _ = imported(function, torch.ones(2, 4), torch.ones(4))
    target, attrs, operands, types, *_ = graph.nodes[0]
    assert target == "aten.native_layer_norm.default"
    assert operands == (0, 1)
    assert 'weight = unit, bias = "%1"' in attrs
    assert types == ("tensor<2x4xf32>", "tensor<2x1xf32>", "tensor<2x1xf32>")
    assert [number for number, _ in graph.outputs] == [2, 3, 4]


def test_like_arguments_of_other_shape_are_not_mixed_up():
    """Texts are shared between nodes; what differs must differ in the text."""

    def function(x, y):
        return x + y, x + 1, x + 1.0, x + True, torch.cat([x, y]), torch.cat([x, y], 1)

    graph, _ = imported(function, torch.ones(2, 2), torch.ones(2, 2))
    attrs = [attrs for _, attrs, *_ in graph.nodes]
    assert attrs == [
        "",
        "{args = {other = 1}}",
        "{args = {other = 1.0}}",
        "{args = {other = true}}",
        '{args = {tensors = ["%0", "%1"]}}',
        '{args = {tensors = ["%0", "%1"], dim = 1}}',
    ]


def test_symbolic_sizes():
    graph, gm = imported(
        lambda x: x.view(x.shape[0] * x.shape[1]).sum(), torch.ones(4, 6), mode="symbolic"
    )
    assert graph.inputs[0][0] == "tensor<?x?xf32>"
    text = text_of(graph)
    assert '"aten.sym_size.int"' in text
    assert "index" in text
    assert len(graph.fx_nodes) == len([n for n in gm.graph.nodes if n.op == "call_function"])


def test_effects():
    graph, _ = imported(lambda x: (torch.bernoulli(x), x.sin()), torch.ones(2))
    assert [flags & importer.EFFECTS for *_, flags, _ in graph.nodes] == [1, 0]


def test_unknown_values_are_refused_by_name():
    graph = fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.ones(2)
    graph.output(graph.call_function(operator.add, (x, x)))
    with pytest.raises(UnsupportedError, match=r"node add .*no traced value"):
        importer.import_graph(graph)


@pytest.mark.parametrize(
    ("trace", "line"),
    [
        ('  File "a.py", line 3, in f\n    g()\n  File "b.py", line 41, in g\n    x', ("b.py", 41)),
        ('  File "a.py", line 3', ("a.py", 3)),
        ("", ("", 0)),
        ("no frame", ("", 0)),
    ],
)
def test_innermost_line(trace, line):
    assert importer.innermost_line(trace) == line


def marked(function, *inputs):
    """A graph in which every operation has a barrier, and the names that keep it."""
    gm = make_fx(function, tracing_mode="fake")(*inputs)
    nodes = [n for n in gm.graph.nodes if n.op == "call_function"]
    for node in nodes:
        node.meta[_torch.BARRIER] = True
    taken = barriers.relax(gm.graph)
    kept = [n.name for n in nodes if n.meta.get(_torch.BARRIER)]
    assert taken == len(nodes) - len(kept)
    return kept


X = torch.ones(4, 4, dtype=torch.bfloat16)


@pytest.mark.parametrize(
    ("function", "kept"),
    [
        (lambda x: x.sin() * 2, []),
        (lambda x: x.sin() > 0, ["sin"]),
        (lambda x: x.sin().argmax(), ["sin"]),
        (lambda x: x.sin().floor() * 2, ["sin"]),
        (lambda x: x.sin().to(torch.int32), ["sin"]),
        (lambda x: x.sin().t().clone() > 0, ["sin", "t", "clone"]),
        (lambda x: x.sin().relu() > 0, ["sin", "relu"]),
        (lambda x: (x.sin() * 2) > 0, ["mul"]),
        (lambda x: x.sin().float() > 0, ["sin", "_to_copy"]),
        (lambda x: x.sin().max(0)[0] * 2, ["sin"]),
    ],
)
def test_barriers_stay_where_a_decision_is_made(function, kept):
    assert marked(function, X) == kept


def branches(x, w):
    def one(a, b):
        return torch.nn.functional.gelu(a @ b).softmax(-1)

    return torch.cond(x.sum() > 0, one, lambda a, b: (a @ b) * 2, (x, w))


@torch.compiler.nested_compile_region
def region(x, w):
    return torch.nn.functional.gelu(x @ w)


def nested(x, w):
    return region(region(x, w), w).softmax(-1)


@pytest.mark.parametrize("function", [branches, nested])
@pytest.mark.parametrize("train", [True, False])
def test_nothing_stays_whole_in_sub_graphs(function, train):
    x, w = torch.randn(8, 8), torch.randn(8, 8, requires_grad=train)
    *_, graphs = step(lambda: function, (x, w), train=train)
    modules = [m for g in graphs for m in g.modules() if isinstance(m, fx.GraphModule)]
    if function is branches:
        assert len(modules) > len(graphs)
    whole = {str(n.target) for m in modules for n in m.graph.nodes if n.target in composites.KEPT}
    assert whole == set()
