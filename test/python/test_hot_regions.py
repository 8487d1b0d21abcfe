"""Regions on their way back to FX, and what becomes of those that do not compile."""

import operator

import pytest
import stub_kernels
import torch
from mpopt import exporter, hot_regions, importer, kernels, log, region_op
from mpopt.errors import MpoptError, OptionError
from mpopt.options import resolve
from stub_kernels import SCALED, SUMMED
from torch.fx.experimental.proxy_tensor import make_fx

aten = torch.ops.aten


@pytest.fixture(autouse=True)
def _stubs(monkeypatch):
    monkeypatch.setitem(kernels.compilers, "cpu", stub_kernels.compile_cpu)


def _edits(**changes):
    return {"erased": [], "retyped": [], "rewired": [], "added": [], "outputs": [], **changes}


def _region(**parts):
    item = {"before": 1, "like": 0, "op": "mp.region", "dtype": None, "args": "", "backward": False}
    return {**item, **parts}


def _with_region(rows, mode):
    """x * w + 1 as a graph whose product is a region. Only the rows of x may be symbolic."""
    x, w = torch.randn(rows * 5), torch.randn(5)
    gm = make_fx(lambda x, w: (x.view(-1, 5) * w[:5]) + 1, tracing_mode=mode)(x, w)
    imported = importer.import_graph(gm.graph)
    first = len(imported.values)
    number = next(i for i, n in enumerate(imported.fx_nodes) if n.target is aten.mul.Tensor)
    operands = list(imported.nodes[number][2])
    types = ["tensor<?x5xf32>"]
    added = _region(kernel=SCALED, operands=operands, types=types, first_result=first)
    added.update(before=number + 1, like=number)
    outputs = [number for number, _ in imported.outputs]
    rewired = [(number + 1, 0, first)]
    edits = _edits(erased=[number], added=[added], rewired=rewired, outputs=outputs)
    return gm, imported, edits, (x, w)


@pytest.mark.parametrize("mode", ["fake", "symbolic"])
def test_a_region_becomes_a_call_of_the_operator(mode):
    gm, imported, edits, inputs = _with_region(4, mode)
    before = log.counters["regions"]
    exporter.apply_edits(gm.graph, imported, edits)
    gm.recompile()
    (node,) = gm.graph.find_nodes(op="call_function", target=region_op.load())
    (pick,) = node.users
    assert pick.target is operator.getitem and pick.meta["val"].shape[1] == 5
    assert node.meta["val"][0].dtype == torch.float32
    assert node.meta["original_aten"] is region_op.load()
    sizes = node.args[2]
    assert sizes == [4] if mode == "fake" else sizes[0].target is aten.sym_size.int
    assert not gm.graph.find_nodes(op="call_function", target=aten.mul.Tensor)
    assert torch.equal(gm(*inputs), inputs[0].view(4, 5) * inputs[1] + 1)
    assert log.counters["regions"] == before + 1


def test_a_region_without_a_kernel_is_an_error_and_no_change():
    gm, imported, edits, _ = _with_region(4, "fake")
    edits["added"][0]["kernel"] = None
    text = str(gm.graph)
    with pytest.raises(MpoptError, match="run mp-inline-regions before"):
        exporter.apply_edits(gm.graph, imported, edits)
    assert str(gm.graph) == text


class _Module:
    """What `settle` asks of a module."""

    def __init__(self, *texts):
        self.texts, self.pipelines = list(texts), []

    def kernels(self):
        return self.texts

    def drop_kernels(self, texts):
        self.texts = [text for text in self.texts if text not in texts]

    def run(self, pipeline):
        self.pipelines.append(pipeline)


BROKEN = SCALED.replace("scaled", "there_is_none")


def _graph():
    graph = torch.fx.Graph()
    graph.placeholder("x").meta["val"] = torch.ones(2)
    return graph


def test_kernels_that_compile_stay():
    module = _Module(SCALED, SUMMED)
    hot_regions.settle(module, _graph(), strict=True)
    assert module.texts == [SCALED, SUMMED] and not module.pipelines


def test_a_kernel_that_does_not_compile_is_the_graph_again(caplog):
    module, before = _Module(SCALED, BROKEN), log.counters["fallbacks.kernels"]
    with caplog.at_level("WARNING", logger="mpopt.fallback"):
        hot_regions.settle(module, _graph(), strict=False)
        hot_regions.settle(_Module(BROKEN), _graph(), strict=False)
    assert module.texts == [SCALED]
    assert module.pipelines == [hot_regions.INLINE]
    assert log.counters["fallbacks.kernels"] == before + 2
    assert len([r for r in caplog.records if "a region stays with Inductor" in r.message]) == 1


def test_a_kernel_that_does_not_compile_is_an_error_under_strict():
    with pytest.raises(MpoptError, match="cannot compile a kernel"):
        hot_regions.settle(_Module(BROKEN), _graph(), strict=True)


@pytest.mark.parametrize(
    ("regions", "device", "wanted"),
    [("off", "cpu", False), ("cpu", "cpu", True), ("cpu", "cuda", False), ("auto", "cuda", True)],
)
def test_option_says_where(regions, device, wanted):
    graph = torch.fx.Graph()
    with torch._subclasses.FakeTensorMode():
        graph.placeholder("x").meta["val"] = torch.empty(2, device=device)
    options = resolve(regions=regions)
    assert bool(hot_regions.passes(options, graph)) is wanted
    assert (options.digest() == resolve().digest()) is (regions == "off")


def test_option_is_checked():
    with pytest.raises(OptionError, match="regions must be one of off, cpu, auto, all, not 'gpu'"):
        resolve(regions="gpu")
    assert not hot_regions.passes(
        resolve(regions="cpu", disable_passes=["mp-outline-hot-regions"]), _graph()
    )
