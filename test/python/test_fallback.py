"""A failure in any stage leaves the graph as it was, is counted and explained."""

from __future__ import annotations

import contextlib
import copy
import logging
import re
from pathlib import Path
from unittest import mock

import mpopt
import pytest
import torch
import torch.nn.functional as F
from eager_code import eager_code, structure
from mpopt import barriers, exporter, failing_regions, fakes, importer, joint_pass, origins
from mpopt.backend import mpopt as backend
from mpopt.errors import MpoptError, StageError
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx


class Net(nn.Module):
    """Has casts that the passes remove, and operators that are kept whole."""

    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(8, 8), nn.LayerNorm(8)

    def forward(self, x):
        return F.gelu(self.norm(self.linear(x).float().bfloat16().float()))


def run(**options):
    torch._dynamo.reset()
    torch.manual_seed(0)
    mpopt.counters.clear()
    net = Net()
    with eager_code() as graphs:
        compiled = torch.compile(net, backend=backend, options=options)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            result = compiled(torch.ones(4, 8))
        result.float().sum().backward()
        texts = [structure(g.graph) for g in graphs]
    return texts, [p.grad for p in net.parameters()]


def broken(*_, **__):
    raise RuntimeError("planted")


class BrokenModule:
    """A compiler whose passes fail."""

    def __init__(self, real):
        self.real = real

    def from_graph(self, *args, **kwargs):
        self.module = self.real.from_graph(*args, **kwargs)
        return self

    run = broken

    def __str__(self):
        return str(self.module)


def broken_edits():
    """Edits that name a value that does not exist, after one that is fine."""
    original = exporter.apply_edits

    def apply(graph, imported, edits):
        cast = next(i for i, n in enumerate(imported.nodes) if n[0] == "mp.cast")
        bad = {**edits, "rewired": [*edits["rewired"], (cast, 0, 0), (cast, 0, 10**6)]}
        original(graph, imported, bad)

    return mock.patch.object(exporter, "apply_edits", apply)


def planted(stage):
    real = joint_pass.native.module_type()
    return {
        "capture": lambda: mock.patch.object(origins, "capture", broken),
        "import": lambda: mock.patch.object(importer, "import_graph", broken),
        "build": lambda: mock.patch.object(
            joint_pass.native, "module_type", return_value=mock.Mock(from_graph=broken)
        ),
        "passes": lambda: mock.patch.object(
            joint_pass.native, "module_type", return_value=BrokenModule(real)
        ),
        "export": broken_edits,
        "barriers": lambda: mock.patch.object(barriers, "relax", broken),
    }[stage]()


STAGES = ["capture", "import", "build", "passes", "export", "barriers"]


@pytest.mark.parametrize("stage", STAGES)
def test_planted_error(stage, caplog, monkeypatch):
    monkeypatch.setenv("MPOPT_STRICT", "0")
    stock, expected = run(disable=True)
    rewritten, _ = run()
    assert rewritten != stock
    with planted(stage), caplog.at_level(logging.WARNING, "mpopt"):
        texts, grads = run()
    assert mpopt.counters["fallbacks"] == 1
    assert mpopt.counters[f"fallbacks.{stage}"] == 1
    if stage != "barriers":  # by then the rewritten graph is right, only its rounding is stricter
        assert texts == stock
        assert all(map(torch.equal, grads, expected))
    (message,) = [r.getMessage() for r in caplog.records if r.name == "mpopt.fallback"]
    assert repr(stage) in message
    if stage in ("passes", "export"):
        file = re.search(r"mpopt '--pass-pipeline=builtin\.module\(.*\)' (\S+)", message)
        assert file, message
        assert "mp.cast" in Path(file.group(1)).read_text()


@pytest.mark.parametrize("stage", STAGES)
def test_strict_makes_it_an_error(stage):
    with planted(stage), pytest.raises(Exception, match=stage):
        run()


def test_expansion_failure_leaves_the_operator_whole(monkeypatch, caplog):
    monkeypatch.setenv("MPOPT_STRICT", "0")
    with (
        mock.patch.object(fakes, "evaluate", broken),
        caplog.at_level(logging.WARNING, "mpopt"),
    ):
        texts, _ = run(pipeline="")
    assert mpopt.counters["fallbacks.expand"] == 1
    assert "aten.native_layer_norm.default" in [target for _, target, *_ in texts[0]]
    assert "Inductor gets the operators whole" in caplog.text


def test_disable(monkeypatch):
    monkeypatch.setenv("MPOPT_DISABLE", "1")
    with mock.patch.object(origins, "capture", broken):
        run()
    assert mpopt.counters["graphs"] == 0


def test_an_unsupported_graph_says_why():
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.ones(2).to_sparse()
    graph.output((x,))
    owner = joint_pass.JointPass(
        joint_pass.Options(strict=True), origins.Capture((), (), True, {}), {}, False
    )
    with pytest.raises(StageError, match=r"import: node x .*layout torch.sparse_coo"):
        owner(graph)


def traced():
    def function(x, w):
        return (x.to(torch.bfloat16) @ w).to(torch.float32), x.sum()

    x, w = torch.ones(4, 8), torch.ones(8, 8, dtype=torch.bfloat16)
    return make_fx(function, tracing_mode="fake")(x, w)


def edits(**changes):
    empty = {"erased": [], "retyped": [], "rewired": [], "added": [], "outputs": [4, 5]}
    return {**empty, **changes}


def added(**changes):
    base = {
        "before": 1,
        "like": 0,
        "op": "mp.cast",
        "dtype": "bf16",
        "origin": "mpopt",
        "args": "",
        "operands": [0],
        "types": ["tensor<4x8xbf16>"],
        "first_result": 6,
        "backward": False,
    }
    return {**base, **changes}


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (edits(outputs=[3, 5]), "outputs would change"),
        (edits(erased=[0]), "is erased but"),
        (edits(rewired=[(1, 0, 6)]), "read before it is made"),
        (edits(added=[added(dtype="f16")]), "where the passes expect"),
        (edits(added=[added(op="aten.no_such_thing.default")]), "no operator"),
        (edits(added=[added()], rewired=[(1, 0, 6), (2, 0, 0), (1, 1, 99)]), "read before"),
    ],
)
def test_bad_edits_are_undone(bad, message):
    gm = traced()
    before = str(gm.graph)
    metas = [dict(n.meta) for n in gm.graph.nodes]
    imported = importer.import_graph(gm.graph)
    assert len(imported.nodes) == 4
    with pytest.raises(MpoptError, match=message):
        exporter.apply_edits(gm.graph, imported, bad)
    assert str(gm.graph) == before
    assert [dict(n.meta) for n in gm.graph.nodes] == metas


def test_good_edits():
    gm = traced()
    original = copy.deepcopy(gm)
    imported = importer.import_graph(gm.graph)
    good = edits(added=[added()], rewired=[(1, 0, 6)], erased=[0])
    exporter.apply_edits(gm.graph, imported, good)
    gm.recompile()
    x, w = torch.randn(4, 8), torch.randn(8, 8).bfloat16()
    assert all(map(torch.equal, gm(x, w), original(x, w)))
    new = next(n for n in gm.graph.nodes if importer.conversion_target(n) == torch.bfloat16)
    assert new.meta["val"].dtype == torch.bfloat16
    assert new.meta["custom"] == {"mpopt": "mpopt"}


# A rewrite that fails leaves out its region alone ------------------------------------------------


class Two(nn.Module):
    """Two modules with conversions that the passes remove."""

    def __init__(self):
        super().__init__()
        self.good, self.bad = Net(), Net()

    def forward(self, x):
        return self.good(x), self.bad(x)


def failing_for(module):
    """Edits of any rewritten graph that still changes a node of `module` cannot be applied."""
    original = exporter.apply_edits

    def apply(graph, imported, edits):
        touched = {*edits["erased"], *(number for number, *_ in edits["rewired"])}
        paths = (origins.module_path(imported.fx_nodes[number].meta) for number in touched)
        if any(path == module or path.startswith(f"{module}.") for path in paths):
            raise MpoptError(f"planted for {module}")
        original(graph, imported, edits)

    return mock.patch.object(exporter, "apply_edits", apply)


def run_two(planted=None, **options):
    """The rewritten graphs of both modules, and the gradients."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    mpopt.counters.clear()
    net = Two()
    with eager_code() as graphs, planted or contextlib.nullcontext():
        compiled = torch.compile(net, backend=backend, options=options)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            results = compiled(torch.ones(4, 8))
        sum(r.float().sum() for r in results).backward()
        casts = [
            origins.module_path(n.meta).partition(".")[0]
            for g in graphs
            for n in g.graph.nodes
            if n.op == "call_function" and importer.conversion_target(n) is not None
        ]
    return casts, [r.detach() for r in results], [p.grad for p in net.parameters()]


@pytest.mark.parametrize("numerics", ["precise", "relaxed"])
def test_a_rewrite_that_fails_leaves_out_its_region(numerics, caplog, monkeypatch):
    monkeypatch.setenv("MPOPT_STRICT", "0")
    stock, _, _ = run_two(pipeline="")
    whole, _, _ = run_two(numerics=numerics)
    with caplog.at_level(logging.WARNING, "mpopt"):
        casts, results, grads = run_two(failing_for("bad"), numerics=numerics)
    counts = mpopt.counters
    graphs = 2 if numerics == "relaxed" else 1
    assert counts["fallbacks"] == counts["fallbacks.export"] == graphs
    assert 1 <= counts["fallback_regions"] <= 3 * graphs, "bad, bad.linear, bad.norm"
    assert casts.count("good") == whole.count("good") < stock.count("good")
    assert casts.count("bad") > whole.count("bad")
    messages = [r.getMessage() for r in caplog.records if r.name == "mpopt.fallback"]
    assert len(messages) == graphs
    for message in messages:
        assert "'bad" in message and "'good" not in message
        assert "stays as it was traced" in message and "planted for bad" in message
    # Both modules have the same weights' sizes; values are those of a graph without failure.
    _, wanted, gradients = run_two(numerics=numerics)
    for got, want in zip([*results, *grads], [*wanted, *gradients], strict=True):
        assert (got - want).abs().max() <= 2.0**-6 * want.abs().max()


def test_a_region_that_fails_is_an_error_under_strict():
    with failing_for("bad"), pytest.raises(Exception, match="planted for bad"):
        run_two()


@pytest.mark.parametrize(("first", "count"), [(0, 9), (1, 9), (2, 9), (7, 9), (8, 9)])
def test_the_first_failing_rewrite_is_found_by_halving(first, count):
    records = [{"module": f"m{i}"} for i in range(count)]
    tried = []

    def trial(limit):
        tried.append(limit)
        return records[:limit], limit <= first

    assert failing_regions.first_failing(trial) == f"m{first}"
    assert len(tried) <= 12


def test_no_region_is_at_fault_where_the_traced_graph_fails():
    assert failing_regions.first_failing(lambda limit: ([], False)) == ""
    assert failing_regions.first_failing(lambda limit: ([], True)) == "", "none fails"
    assert failing_regions.first_failing(lambda limit: ([], limit < 3)) == "", "no record"
