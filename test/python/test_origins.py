"""Who asked for each conversion, and which inputs are weights."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from eager_code import eager_code
from mpopt import backend, importer, joint_pass, origins
from torch import nn


@pytest.fixture
def seen(monkeypatch):
    """(source, target, origin, backward) of each conversion, and the imported graphs."""
    casts, graphs = [], []
    original = importer.import_graph

    def spy(graph, *rest):
        for node in graph.nodes:
            if importer.conversion_target(node) is not None:
                source = str(node.args[0].meta["val"].dtype)[6:]
                target = str(importer.conversion_target(node))[6:]
                casts.append((source, target, origins.origin_of(node), importer.is_backward(node)))
        graphs.append(original(graph, *rest))
        return graphs[-1]

    monkeypatch.setattr(joint_pass.importer, "import_graph", spy)
    return casts, graphs


def run(function, *inputs, autocast=True, train=True):
    with eager_code(), torch.set_grad_enabled(train):
        compiled = torch.compile(function, backend=backend.mpopt, options={"pipeline": ""})
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
            result = compiled(*inputs)
        if train:
            result.float().sum().backward()


def test_autocast_and_its_backward(seen):
    run(nn.Linear(8, 8), torch.randn(4, 8))
    casts = seen[0]
    assert casts.count(("float32", "bfloat16", "autocast", False)) == 3
    assert {c[2] for c in casts} == {"autocast"}
    assert ("bfloat16", "float32", "autocast", True) in casts


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.to(torch.bfloat16),
        lambda x: x.bfloat16(),
        lambda x: x.type(torch.bfloat16),
        lambda x: x.type_as(torch.ones((), dtype=torch.bfloat16)),
        lambda x: torch.Tensor.to(x, torch.bfloat16),
    ],
    ids=["to", "bfloat16", "type", "type_as", "function"],
)
@pytest.mark.parametrize("autocast", [True, False])
def test_user(seen, function, autocast):
    run(function, torch.randn(8, requires_grad=True), autocast=autocast)
    narrowing = [c for c in seen[0] if c[:2] == ("float32", "bfloat16") and not c[3]]
    assert narrowing
    assert {c[2] for c in narrowing} == {"user"}


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.zeros(8, dtype=torch.bfloat16).copy_(x),
        lambda x: torch.zeros(8, dtype=torch.bfloat16).index_add_(0, torch.arange(8), x.bfloat16()),
        lambda x: torch.sum(x, 0, dtype=torch.bfloat16),
    ],
    ids=["copy_", "index_add_", "dtype="],
)
def test_a_chosen_result_dtype_is_the_users(seen, function):
    """The operator converts inside; backward converts the gradient back."""
    run(function, torch.randn(8, requires_grad=True))
    assert {c[2] for c in seen[0]} == {"user"}


def test_user_inside_autocast(seen):
    """One conversion of the user between two of autocast."""

    def function(x, w):
        return F.linear(F.linear(x, w).float().exp(), w)

    run(function, torch.randn(4, 8), torch.randn(8, 8, requires_grad=True))
    forward = [c for c in seen[0] if not c[3]]
    assert ("bfloat16", "float32", "user", False) in forward
    assert {c[2] for c in forward if c[1] == "bfloat16"} == {"autocast"}


def test_autocast_region_in_the_graph(seen):
    def function(x, w):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = F.linear(x, w)
        return y.float()

    run(function, torch.randn(4, 8), torch.randn(8, 8, requires_grad=True), autocast=False)
    forward = [c[:3] for c in seen[0] if not c[3]]
    assert forward.count(("float32", "bfloat16", "autocast")) == 2
    assert forward.count(("bfloat16", "float32", "user")) == 1


def test_decomposition(seen):
    """Inductor computes batch_norm of a half tensor in f32: its own conversions."""
    x = torch.randn(4, 8, dtype=torch.bfloat16)
    run(nn.BatchNorm1d(8).bfloat16(), x, autocast=False)
    assert seen[0]
    assert {c[2] for c in seen[0]} == {"decomposition"}


def test_promotion(seen):
    def function(x, y):
        return torch.ops.aten.mse_loss(x, y)

    x = torch.randn(4, dtype=torch.bfloat16)
    run(function, x, torch.randn(4, requires_grad=True), autocast=False)
    assert {c[2] for c in seen[0]} <= {"promotion"}


def test_unknown_is_the_users():
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    cast = graph.call_function(torch.ops.prims.convert_element_type.default, (x, torch.float16))
    assert origins.origin_of(cast) == "user"
    cast.meta["custom"] = {"mpopt": "autocast"}
    assert origins.origin_of(cast) == "user"  # nothing says what it was decomposed from
    cast.meta["original_aten"] = torch.ops.aten._to_copy.default
    assert origins.origin_of(cast) == "autocast"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.ModuleDict({"proj": nn.Linear(8, 8)})
        self.register_buffer("scale", torch.ones(8))

    def forward(self, x, n):
        return self.layer["proj"](x) * self.scale + n


@pytest.mark.parametrize("train", [True, False])
def test_roles(seen, train):
    run(Net(), torch.randn(4, 8), 3, train=train)
    (graph,) = seen[1]
    attrs = [attrs for _, attrs in graph.inputs]
    assert any('"layer.proj.weight", mp.role = "parameter"' in a for a in attrs)
    assert any('"layer.proj.bias", mp.role = "parameter"' in a for a in attrs)
    assert any('"scale", mp.role = "buffer"' in a for a in attrs)
    assert any('"x", mp.role = "input"' in a for a in attrs)
    assert any('mp.role = "tangent"' in a for a in attrs) == train


def test_module_path_and_line(seen):
    run(Net(), torch.randn(4, 8), 3)
    (graph,) = seen[1]
    paths = {path: (file, line) for path, file, line in graph.sources if "proj" in path}
    assert set(paths) == {"layer.proj"}
    assert paths["layer.proj"][0].endswith(".py")
    assert paths["layer.proj"][1] > 0


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ("L['self'].blocks.0.norm", "blocks.0.norm"),
        ("L['self']._modules['blocks']._modules['0']._parameters['weight']", "blocks.0.weight"),
        ("L['x']", "x"),
        ("L['self']", ""),
        ("", ""),
    ],
)
def test_clean_path(source, path):
    assert origins.clean_path(source) == path


def test_custom_metadata_of_others_stays():
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    node = graph.call_method("float", (x,))
    node.meta["custom"] = {"theirs": 1}
    graph.output(node)
    origins.capture(torch.fx.GraphModule(nn.Module(), graph), [torch.ones(2)])
    assert node.meta["custom"] == {"theirs": 1, "mpopt": "user"}
