"""`python -m mpopt.bench placement`: joint graphs from files and families, counted by the model."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
import torch
from mpopt.bench.__main__ import main
from mpopt.bench._errors import BenchError, UsageError
from mpopt.bench._graphs import graph_files, load_graph, trace
from mpopt.bench.placement import LEVELS, give_half_weights, traffic_of
from torch import fx

ROWS, WIDTH = 512, 256
WIDE, NARROW = 4 * ROWS * WIDTH, 2 * ROWS * WIDTH  # bytes of one activation


def tensor(dtype, *shape):
    stride = [1]
    for size in reversed(shape[1:]):
        stride.insert(0, stride[0] * size)
    return {"shape": list(shape), "stride": stride[: len(shape)], "dtype": dtype, "dev": "cpu"}


class File:
    """A joint graph in the form of a file, made node by node."""

    def __init__(self):
        self.nodes = []

    def add(self, name, op, target, args, val, *, backward=False):
        tag = "is_backward" if backward else "is_forward"
        self.nodes.append(
            {
                "name": name,
                "op": op,
                "target": target,
                "args": args,
                "kwargs": {},
                "val": val,
                "prov": {"partitioner_tag": tag},
            }
        )

    def call(self, name, target, args, val, *, backward=False):
        self.add(name, "call_function", "op:" + target, {"t": args}, val, backward=backward)

    def cast(self, name, source, dtype, *shape, backward=False):
        args = [{"n": source}, {"dt": dtype}]
        target = "prims.convert_element_type.default"
        self.call(name, target, args, tensor(dtype, *shape), backward=backward)


def linear_with_residual() -> File:
    """s = x + x @ w under autocast, and its gradient by w where the gradient of s is t * s."""
    file = File()
    weight, wide = tensor("float32", WIDTH, WIDTH), tensor("float32", ROWS, WIDTH)
    file.add("primals_1", "placeholder", "primals_1", {"t": []}, weight)
    file.add("primals_2", "placeholder", "primals_2", {"t": []}, wide)
    file.add("tangents_1", "placeholder", "tangents_1", {"t": []}, wide, backward=True)
    file.cast("w16", "primals_1", "bfloat16", WIDTH, WIDTH)
    file.cast("x16", "primals_2", "bfloat16", ROWS, WIDTH)
    narrow = tensor("bfloat16", ROWS, WIDTH)
    file.call("y", "aten.mm.default", [{"n": "x16"}, {"n": "w16"}], narrow)
    file.cast("y32", "y", "float32", ROWS, WIDTH)
    file.call("s", "aten.add.Tensor", [{"n": "primals_2"}, {"n": "y32"}], wide)
    file.call("gs", "aten.mul.Tensor", [{"n": "tangents_1"}, {"n": "s"}], wide, backward=True)
    file.cast("gs16", "gs", "bfloat16", ROWS, WIDTH, backward=True)
    turned = {**tensor("bfloat16", WIDTH, ROWS), "stride": [1, WIDTH]}
    permute = [{"n": "x16"}, {"l": [1, 0]}]
    file.call("xt", "aten.permute.default", permute, turned, backward=True)
    product = [{"n": "xt"}, {"n": "gs16"}]
    half = tensor("bfloat16", WIDTH, WIDTH)
    file.call("gw", "aten.mm.default", product, half, backward=True)
    file.cast("gw32", "gw", "float32", WIDTH, WIDTH, backward=True)
    results = {"t": [{"l": [{"n": "s"}, {"n": "gw32"}, None]}]}
    file.add("output", "output", "output", results, None, backward=True)
    return file


@pytest.fixture
def folder(tmp_path) -> Path:
    data = {
        "info": {"num_fwd_outputs": 1, "static": [0]},
        "nodes": linear_with_residual().nodes,
        "consts": {},
    }
    with gzip.open(tmp_path / "linear.json.gz", "wt") as file:
        json.dump(data, file)
    return tmp_path


def load(folder, name="linear"):
    (path,) = graph_files(str(folder), [name])
    return load_graph(path)


def test_file_gives_the_graph_that_it_says(folder):
    graph = load(folder)
    nodes = {node.name: node for node in graph.module.graph.nodes}
    assert list(nodes)[:3] == ["primals_1", "primals_2", "tangents_1"]
    assert (graph.result_count, graph.static) == (1, (0,))
    assert nodes["y"].args == (nodes["x16"], nodes["w16"])
    assert nodes["xt"].meta["val"].stride() == (1, WIDTH)
    assert nodes["gs"].meta["partitioner_tag"] == "is_backward"
    assert nodes["gw32"].meta["val"].dtype is torch.float32
    assert list(nodes["output"].args[0])[2] is None


def test_half_weights_are_inputs_before_the_tangents(folder):
    graph = load(folder)
    give_half_weights(graph)
    inputs = [node.name for node in graph.module.graph.find_nodes(op="placeholder")]
    assert inputs == ["primals_1", "primals_2", "half_0_primals_1", "tangents_1"]
    casts = [node.name for node in graph.module.graph.nodes if node.name.endswith("16")]
    assert casts == ["x16", "gs16"]


def test_counts_of_a_small_graph(folder):
    counts = {name: traffic_of(load(folder), level) for name, level in LEVELS.items()}
    casts = {name: count["cast_kernels"] for name, count in counts.items()}
    # Of the weight, of its gradient, of x; the last is no weight.
    assert casts == {"stock": 3, "precise": 1, "relaxed": 1, "relaxed-free": 1}
    # Each converts 4 bytes into 2 or back, an element at a time.
    weight = 2 * 6 * WIDTH * WIDTH
    assert counts["stock"]["cast_bytes"] == weight + WIDE + NARROW
    assert counts["precise"]["cast_bytes"] == WIDE + NARROW
    # Also s from x and y, and gs16 from the tangent and s, which is the result of forward.
    others = (WIDE + NARROW + WIDE) + (2 * WIDE + NARROW)
    assert counts["stock"]["fused_bytes"] == weight + WIDE + NARROW + others
    assert counts["precise"]["fused_bytes"] == WIDE + NARROW + others
    for count in counts.values():
        assert count["saved_bytes"] <= counts["stock"]["saved_bytes"]


@pytest.mark.parametrize(
    ("names", "text"),
    [(["liner"], "did you mean 'linear'"), (["x"], "unknown graph 'x'; known: linear")],
)
def test_unknown_graph_is_named(folder, names, text):
    with pytest.raises(UsageError, match=text):
        graph_files(str(folder), names)


def test_folder_without_graphs_is_named(tmp_path):
    with pytest.raises(UsageError, match="no file"):
        graph_files(str(tmp_path))
    with pytest.raises(UsageError, match="no folder"):
        graph_files(str(tmp_path / "missing"))


@pytest.mark.parametrize("text", ["{", "{}", '{"info": {}, "nodes": [{"op": "x"}]}'])
def test_file_that_is_no_graph_is_named(tmp_path, text):
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(BenchError, match=r"bad\.json"):
        load(tmp_path, "bad")


def test_traced_family_follows_cudas_lists():
    fresh = trace("bert", "tiny")
    first, second = fresh(), fresh()
    assert first.module is not second.module
    graph = first.module.graph
    names = [node.target for node in graph.find_nodes(op="placeholder")]
    assert names[0] == "primals_1"
    assert names[-1] == "tangents_1"
    assert any(node.meta.get("partitioner_tag") == "is_backward" for node in graph.nodes)
    # Layer norm in fp32, which autocast on the CPU leaves in bf16.
    assert all(val.dtype is torch.float32 for val in _normalized(graph))


def _normalized(graph: fx.Graph):
    target = torch.ops.aten.var_mean.correction
    found = [node.args[0].meta["val"] for node in graph.nodes if node.target is target]
    assert found
    return found


def test_command_writes_a_row_for_each_count(folder, tmp_path, capsys):
    target = tmp_path / "rows.json"
    assert main(["placement", "--graphs", str(folder), "--json", str(target)]) == 0
    rows = json.loads(target.read_text())
    assert {row["variant"] for row in rows} == set(LEVELS)
    assert {row["family"] for row in rows} == {"linear"}
    value = {(r["variant"], r["metric"]): r["value"] for r in rows}
    assert value["stock", "cast_only_kernels"] == 3
    assert "pointwise_bytes" in capsys.readouterr().out


def test_graphs_concern_only_placement(capsys):
    assert main(["casts", "--family", "gpt2", "--graphs", "."]) == 2
    assert "--graphs concerns placement" in capsys.readouterr().err
