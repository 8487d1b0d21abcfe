"""Passes on the pair of graphs that the partitioner gives."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from generated import code_before_execution, run_step
from models import ConvNet, Transformer, images, words
from mpopt import _torch, log, partition
from mpopt.bench.families import build
from mpopt.errors import MpoptError, UnsupportedError
from mpopt.partition import Partitioner, StoragePass
from mpopt.stitch import Stitched
from stitching import (
    BF16,
    CONVERT,
    F32,
    assert_same,
    copied,
    edited,
    facts,
    forward_convert,
    is_f32,
    narrow_saved,
    relaxed,
    same,
    saved_of,
)
from torch import fx, nn
from torch._dynamo.utils import counters
from torch.utils.checkpoint import checkpoint

CASTS = "func.func(mp-normalize,mp-eliminate-casts{numerics=precise})"
FAMILIES = ("llama", "lstm")
MORE_FAMILIES = ("gpt2", "bert", "vit", "resnet50", "moe", "unet")


def step(model, batch, backend=relaxed, **kwargs):
    """One training step of a compiled model under autocast: outputs and gradients."""
    torch._dynamo.reset()
    compiled = torch.compile(model, backend=backend, **kwargs)
    torch.manual_seed(1)
    return run_step(compiled, batch)


def pair_of(model, batch, edit=None, **kwargs):
    """The partitioned pair of a model, without what comes after it."""
    with edited(edit, stop=True) as pairs:
        step(model, batch, **kwargs)
    (pair,) = pairs
    return pair


def transformer(**kwargs):
    torch.manual_seed(0)
    return Transformer(**kwargs)


# Without a change ------------------------------------------------------------


def assert_comes_back(stitched):
    """An edit that splits once more, and compares with what was stitched."""
    modules = stitched.forward, stitched.backward
    texts = [m.print_readable(print_output=False) for m in modules]
    before = [facts(m.graph) for m in modules]
    again = Stitched(*modules, stitched.result_count)
    again.graph.lint()
    again.split()
    for module, text, old in zip(modules, texts, before, strict=True):
        assert module.print_readable(print_output=False) == text
        assert_same(old, facts(module.graph))
        module.graph.lint()


@pytest.mark.parametrize(
    "family", [*FAMILIES, *(pytest.param(f, marks=pytest.mark.slow) for f in MORE_FAMILIES)]
)
def test_families_come_back_as_they_were(family):
    model, batch = build(family, "tiny")
    forward, backward, count = pair_of(model, batch, dynamic=False)
    stitched = Stitched(forward, backward, count)
    assert len(stitched.saved) > 3
    assert_comes_back(stitched)


@pytest.mark.parametrize(
    ("make", "batch", "dynamic"),
    [
        (lambda: transformer(dropout=0.1), words(), False),
        (lambda: transformer(dropout=0.1, checkpointed=True), words(), False),
        (lambda: transformer(tied=True), words(), True),
        (lambda: transformer(checkpointed=True), words(), True),
        (ConvNet, images(), True),
    ],
    ids=["dropout", "checkpoint-dropout", "tied-dynamic", "checkpoint-dynamic", "conv-dynamic"],
)
def test_training_comes_back_as_it_was(make, batch, dynamic):
    forward, backward, count = pair_of(make(), batch, dynamic=dynamic)
    assert_comes_back(Stitched(forward, backward, count))


def test_recomputed_nodes_appear_twice_and_saved_ones_once():
    forward, backward, count = pair_of(transformer(checkpointed=True), words(), dynamic=False)
    graph = Stitched(forward, backward, count).graph
    names = {n.name for n in forward.graph.nodes if n.op == "call_function"}
    twice = names & {n.name for n in backward.graph.nodes if n.op == "call_function"}
    assert twice, "checkpointing recomputes"
    inner = [n for m in (forward, backward) for n in m.graph.nodes if n.op == "call_function"]
    assert sum(n.op == "call_function" for n in graph.nodes) == len(inner)
    inputs = [p.name for p in graph.find_nodes(op="placeholder")]
    assert [name for name in inputs if name.startswith("tangents")]
    assert len(inputs) == len(set(inputs))


def test_generated_code_is_that_of_the_partition():
    model, batch = transformer(dropout=0.1, checkpointed=True), words()
    with edited(same):
        ours = code_before_execution(lambda: step(model, batch))
    theirs = code_before_execution(lambda: step(model, batch, backend="mpopt"))
    assert len(ours) == 2, "forward and backward"
    assert ours == theirs


# With a change ----------------------------------------------------------------


class Small(nn.Module):
    """Few kernels: a checkpointed part with dropout, and a norm."""

    def __init__(self):
        super().__init__()
        self.first, self.last, self.norm = nn.Linear(16, 16), nn.Linear(16, 16), nn.LayerNorm(16)

    def inner(self, x):
        return F.dropout(F.gelu(self.first(x)), 0.2)

    def forward(self, x):
        y = self.norm(x + checkpoint(self.inner, x, use_reentrant=False))
        return self.last(y).float() + y


def small():
    torch.manual_seed(0)
    return Small()


def batch_of(rows):
    return (torch.randn(rows, 16, generator=torch.Generator().manual_seed(1)),)


def test_exact_passes_leave_results_and_gradients_as_they_are():
    before = log.counters["partitions"]
    with edited(text=CASTS) as pairs:
        (result,), gradients = step(small(), batch_of(8))
    assert log.counters["partitions"] == before + 1
    assert any("'mpopt': 'mpopt'" in str(n.meta.get("custom")) for n in pairs[0][0].graph.nodes)
    (expected,), wanted = step(small(), batch_of(8), backend="mpopt")
    assert torch.equal(result, expected)
    assert gradients.keys() == wanted.keys()
    assert all(torch.equal(gradients[name], wanted[name]) for name in wanted)


def tensors(graph_module, seed=0):
    """Values for the inputs of a graph."""
    generator = torch.Generator().manual_seed(seed)
    found = []
    for node in graph_module.graph.find_nodes(op="placeholder"):
        value = node.meta["val"]
        if value.is_floating_point():
            found.append((torch.randn(value.shape, generator=generator) / 4).to(value.dtype))
        else:
            found.append(torch.randint(0, 8, value.shape, generator=generator))
    return found


@pytest.mark.parametrize("make", [transformer, lambda: transformer(llama=True, checkpointed=True)])
def test_narrowed_values_are_what_backward_reads(make):
    """Both graphs run as they are; stock's backward gets stock's saved values, rounded."""
    forward, backward, count = pair_of(make(), words(), dynamic=False)
    stock = copied(forward), copied(backward)
    stitched = Stitched(forward, backward, count)
    narrow_saved(stitched)
    stitched.graph.lint()
    stitched.split()
    forward.graph.lint()
    backward.graph.lint()

    inputs = tensors(stock[0])
    theirs, mine = stock[0](*inputs), forward(*inputs)
    assert all(torch.equal(a, b) for a, b in zip(theirs[:count], mine[:count], strict=True))
    saved = saved_of(stock[0], count)
    rounded = [
        v.to(BF16).float() if n.op != "placeholder" and is_f32(n.meta["val"]) else v
        for n, v in zip(saved, theirs[count:], strict=True)
    ]
    narrowed = sum(not torch.equal(a, b) for a, b in zip(rounded, theirs[count:], strict=True))
    assert narrowed >= 2
    assert sum(map(nbytes, mine[count:])) < sum(map(nbytes, theirs[count:]))
    tangents = tensors(stock[1], seed=1)[len(saved) :]
    expected = stock[1](*rounded, *tangents)
    got = backward(*mine[count:], *tangents)
    for one, other in zip(expected, got, strict=True):
        assert one is other is None or torch.equal(one, other)


def nbytes(tensor):
    return tensor.numel() * tensor.element_size()


class Wide(nn.Module):
    """One activation is an f32 matrix product, which backward reads."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x):
        with torch.autocast("cpu", enabled=False):
            y = self.first(x)
        return self.last(F.gelu(y))


def test_narrowed_values_in_a_compiled_step():
    """Half of the bytes of the f32 activation are saved; the gradients move by about one
    rounding to bf16."""

    def run(edit):
        torch.manual_seed(0)
        kept, model = [], Wide()
        own = {p.data_ptr() for p in model.parameters()}
        with (
            edited(edit),
            torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t) or t, lambda t: t),
        ):
            result = step(model, batch_of(24), dynamic=True)
        return *result, [t for t in kept if t.data_ptr() not in own]

    (result,), gradients, kept_now = run(narrow_saved)
    (expected,), wanted, kept = run(same)
    saved = sum(map(nbytes, kept)) - sum(map(nbytes, kept_now))
    assert saved == 24 * 16 * 2
    assert torch.equal(result, expected), "forward reads the wide values"
    difference = sum((gradients[n] - wanted[n]).double().square().sum() for n in wanted)
    norm = sum(wanted[n].double().square().sum() for n in wanted)
    assert 0 < math.sqrt(difference / norm) < 2.0**-7


def test_saved_bytes_are_counted():
    log.counters.clear()
    with edited() as pairs:
        code_before_execution(lambda: step(transformer(), words()))
    forward, _, count = pairs[0]
    kept = [n.meta["val"] for n in saved_of(forward, count) if n.op != "placeholder"]
    assert log.counters["saved_bytes"] == sum(map(nbytes, kept)) > 0
    assert log.counters["saved_bytes_before"] == log.counters["saved_bytes"]


# Pairs made by hand -------------------------------------------------------------


def value(*shape, dtype=F32):
    return torch.empty(shape, dtype=dtype, device="meta")


def small_pair():
    """forward(x) = sin(x), which saves x as a narrow and a wide value; backward(s, t) = s * t."""
    fw, bw = fx.Graph(), fx.Graph()
    x = _node(fw, "placeholder", "primals_1", (), value(4, 4))
    y = _node(fw, "call_function", torch.ops.aten.sin.default, (x,), value(4, 4))
    z = _node(fw, "call_function", torch.ops.aten.cos.default, (x,), value(4, 4))
    fw.output((y, z))
    s = _node(bw, "placeholder", z.name, (), value(4, 4))
    t = _node(bw, "placeholder", "tangents_1", (), value(4, 4))
    g = _node(bw, "call_function", torch.ops.aten.mul.Tensor, (t, s), value(4, 4))
    bw.output((g,))
    return fx.GraphModule(nn.Module(), fw), fx.GraphModule(nn.Module(), bw), 1


def _node(graph, op, target, args, val):
    name = target if op == "placeholder" else str(target).split(".")[1]
    node = graph.create_node(op, target, args, name=name)
    node.meta["val"] = val
    return node


def parts(stitched):
    """Nodes of the stitched small pair by operator."""
    return {str(n.target).split(".")[1]: n for n in stitched.graph.nodes if "aten" in str(n.target)}


def test_a_widening_is_repeated_in_backward():
    """Whatever its tag says, the narrow value is saved; forward keeps its own widening."""
    stitched = Stitched(*small_pair())
    cos, mul = parts(stitched)["cos"], parts(stitched)["mul"]
    narrow = forward_convert(stitched.graph, cos, BF16, "is_forward")
    wide = forward_convert(stitched.graph, narrow, F32, "is_forward")
    mul.replace_input_with(cos, wide)
    front, back = stitched.graph.output_node().args[0]
    stitched.graph.output_node().args = ((front, back),)
    stitched.split()
    (saved,) = saved_of(stitched.forward, 1)
    assert saved.meta["val"].dtype is BF16
    assert [n.target for n in stitched.forward.graph.nodes].count(CONVERT) == 1
    first, *_, product, _ = stitched.backward.graph.nodes
    assert first.meta["val"].dtype is BF16
    assert product.args[1].target is CONVERT
    assert product.args[1].meta["autograd_backward"]


def test_constants_are_made_again_in_backward():
    """The partitioner saves what forward reads as well, if it is of any size."""
    stitched = Stitched(*small_pair())
    cos, mul = parts(stitched)["cos"], parts(stitched)["mul"]
    with stitched.graph.inserting_before(parts(stitched)["sin"]):
        ones = stitched.graph.call_function(torch.ops.aten.full.default, ([4, 4], 1.0))
    ones.meta = {"val": value(4, 4), "partitioner_tag": "is_forward"}
    parts(stitched)["sin"].args = (ones,)
    mul.args = (ones, cos)
    assert stitched.repeat_constants() == 1
    assert stitched.repeat_constants() == 0
    stitched.split()
    assert [n.name for n in saved_of(stitched.forward, 1)] == ["cos"]
    for module in (stitched.forward, stitched.backward):
        targets = [n.target for n in module.graph.nodes]
        assert targets.count(torch.ops.aten.full.default) == 1


def test_a_view_of_a_widening_is_repeated_too():
    stitched = Stitched(*small_pair())
    cos, mul = parts(stitched)["cos"], parts(stitched)["mul"]
    narrow = forward_convert(stitched.graph, cos, BF16, "is_forward")
    wide = forward_convert(stitched.graph, narrow, F32, "is_forward")
    with stitched.graph.inserting_after(wide):
        view = stitched.graph.call_function(torch.ops.aten.t.default, (wide,))
    view.meta = {"val": value(4, 4), "partitioner_tag": "is_forward"}
    mul.replace_input_with(cos, view)
    stitched.split()
    assert [n.meta["val"].dtype for n in saved_of(stitched.forward, 1)] == [BF16]
    targets = [n.target for n in stitched.backward.graph.nodes if n.op == "call_function"]
    assert targets == [CONVERT, torch.ops.aten.t.default, torch.ops.aten.mul.Tensor]


def test_tensors_without_a_version_check_stay_last():
    forward, backward, count = small_pair()
    forward.graph.output_node().meta["desc"] = ["y", "z"]
    for module in (forward, backward):
        next(n for n in module.graph.nodes if n.name == "cos").meta[
            "saved_tensor_with_no_vc_check"
        ] = True
    stitched = Stitched(forward, backward, count)
    cos, mul = parts(stitched)["cos"], parts(stitched)["mul"]
    with stitched.graph.inserting_before(mul):
        extra = stitched.graph.call_function(torch.ops.aten.add.Tensor, (mul.args[0], cos))
    extra.meta = {"val": value(4, 4), "partitioner_tag": "is_backward"}
    mul.args = (extra, parts(stitched)["sin"])
    stitched.split()
    assert [n.name for n in saved_of(forward, 1)] == ["sin", "cos"]
    assert [n.name for n in backward.graph.nodes][:3] == ["sin", "cos", "tangents_1"]
    descriptors = forward.graph.output_node().meta["desc"]
    assert descriptors[0] == "y"
    assert [type(d).__name__ for d in descriptors[1:]] == [
        "SavedForBackwardsAOTOutput",
        "SavedForBackwardsNoVcCheckAOTOutput",
    ]


def test_what_backward_no_longer_reads_is_not_saved():
    stitched = Stitched(*small_pair())
    mul = parts(stitched)["mul"]
    mul.args = (mul.args[0], mul.args[0])
    stitched.split()
    assert saved_of(stitched.forward, 1) == []
    assert [n.name for n in stitched.backward.graph.find_nodes(op="placeholder")] == ["tangents_1"]


def test_forward_cannot_read_backward():
    stitched = Stitched(*small_pair())
    cos, tangent = parts(stitched)["cos"], parts(stitched)["mul"].args[0]
    cos.args = (tangent,)
    before = stitched.forward.graph, stitched.backward.graph
    with pytest.raises(MpoptError, match="forward would read tangents_1"):
        stitched.split()
    assert (stitched.forward.graph, stitched.backward.graph) == before


def swapped(pair):
    """The inputs of backward in another order than forward saves them."""
    forward, backward, _ = pair
    first, second = backward.graph.find_nodes(op="placeholder")
    first.replace_all_uses_with(second)
    first.meta["val"] = value(2)
    return forward, backward


def test_pairs_that_do_not_fit():
    forward, backward = swapped(small_pair())
    with pytest.raises(UnsupportedError, match="does not read cos where forward saves it"):
        Stitched(forward, backward, 1)
    forward, backward, _ = small_pair()
    output = forward.graph.output_node()
    output.args = ((*output.args[0], output.args[0][1]),)
    with pytest.raises(UnsupportedError, match="saves a value twice"):
        Stitched(forward, backward, 1)
    output.args = ((*output.args[0][:2], forward.graph.find_nodes(op="placeholder")[0]),)
    with pytest.raises(UnsupportedError, match="fewer inputs"):
        Stitched(forward, backward, 0)


# Falling back ---------------------------------------------------------------------


class Own(_torch.CustomPartitionerFn):
    """A user's partitioner."""

    def __init__(self, spoil=False):
        self.calls, self.spoil = 0, spoil

    def __call__(self, gm, joint_inputs, **kwargs):
        self.calls += 1
        fw, bw = _torch.partition(gm, joint_inputs, **kwargs)
        if self.spoil:  # right for AOTAutograd, and not what `Stitched` takes
            output = fw.graph.output_node()
            output.args = ([*output.args[0][:-1], fw.graph.find_nodes(op="placeholder")[0]],)
            last = bw.graph.find_nodes(op="placeholder")[len(output.args[0]) - 2]
            last.meta["val"] = value(1)
        return fw, bw

    def uuid(self):
        return "own"


def test_a_partitioner_of_the_user_is_called():
    own = Own()
    with edited(stop=True) as pairs:
        step(transformer(), words(), options={"inductor": {"custom_partitioner_fn": own}})
    assert own.calls == 1
    assert len(pairs) == 1


def test_uuid_covers_the_users_partitioner():
    def uuid(inner):
        return Partitioner(stitched_pass(), inner).uuid()

    own = Own()
    assert uuid(None) == uuid(None)
    assert uuid(own) == (uuid(None), "own")
    own.uuid = lambda: None
    assert uuid(own) is None


def stitched_pass(**kwargs):
    from mpopt.options import Options
    from mpopt.origins import Capture

    options = Options(**{"numerics": "relaxed", **kwargs})
    return partition.StitchedPass(options, Capture((), (), True, {}), {}, relax=False)


def test_uuid_covers_epsilon_and_pipeline():
    ids = [stitched_pass(epsilon=e).uuid() for e in (0.1, 0.2)]
    with edited(text=CASTS):
        ids.append(stitched_pass().uuid())
    assert len(set(ids)) == 3
    assert stitched_pass(dump="x").uuid() is None


def fail(stitched):
    raise UnsupportedError("something new")


def test_a_failure_leaves_the_partition_as_it_is(monkeypatch, caplog):
    """Counted and told, and an error under `strict`."""
    monkeypatch.setattr(partition, "Stitched", lambda *_: fail(None))
    with pytest.raises(Exception, match="something new"):
        code_before_execution(lambda: step(transformer(), words()))
    before = log.counters["fallbacks"]
    ours = code_before_execution(lambda: step(transformer(), words(), options={"strict": False}))
    assert log.counters["fallbacks"] == before + 1
    assert "something new" in caplog.text
    assert ours == code_before_execution(lambda: step(transformer(), words(), backend="mpopt"))


def test_a_failure_to_split_leaves_the_partition_as_it_is(monkeypatch):
    def refuse(self):
        raise MpoptError("no way back")

    monkeypatch.setattr(Stitched, "split", refuse)
    before = log.counters["fallbacks.split"]
    with edited(text=CASTS) as pairs:
        code_before_execution(lambda: step(transformer(), words(), options={"strict": False}))
        with pytest.raises(Exception, match="no way back"):
            code_before_execution(lambda: step(transformer(), words()))
    assert log.counters["fallbacks.split"] == before + 2
    assert not pairs


# Caches, inference, cost -------------------------------------------------------------


def test_caches_are_hit(tmp_path, monkeypatch):
    """Nothing is partitioned a second time."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    found, log.counters["partitions"] = [], 0
    for _ in range(2):
        counters.clear()
        with edited():
            torch.manual_seed(0)
            step(nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4)), (torch.ones(2, 4),))
        found.append(counters["aot_autograd"]["autograd_cache_hit"])
    assert found == [0, 1]
    assert log.counters["partitions"] <= 1, "a new graph is counted anew"


def test_inference_gets_the_passes_after_inductors(monkeypatch):
    seen = []
    original = StoragePass.run

    def run(self, graph):
        seen.append([str(n.target) for n in graph.nodes])
        return original(self, graph)

    monkeypatch.setattr(StoragePass, "run", run)

    def infer(backend):
        torch._dynamo.reset()
        compiled = torch.compile(transformer().eval(), backend=backend)
        run_step(compiled, words()[:1], train=False)

    with edited(text=CASTS) as pairs:
        ours = code_before_execution(lambda: infer(relaxed))
    assert len(seen) == len(ours) == 1
    assert not pairs
    assert not any("layer_norm" in target for target in seen[0]), "composites are expanded"
    seen.clear()
    with edited(stop=True):
        step(transformer(), words())
    assert not seen, "a training graph is the partitioner's"


def test_walks_do_not_grow_with_the_graph(monkeypatch):
    """Nodes looked at, for each node of the pair."""
    visits = 0
    iterate = fx.graph._node_list.__iter__

    def counted(self):
        nonlocal visits
        for node in iterate(self):
            visits += 1
            yield node

    def share(layers):
        nonlocal visits
        forward, backward, count = pair_of(transformer(layers=layers), words(), dynamic=False)
        nodes = len(forward.graph.nodes) + len(backward.graph.nodes)
        with monkeypatch.context() as patch:
            patch.setattr(fx.graph._node_list, "__iter__", counted)
            visits = 0
            stitched = Stitched(forward, backward, count)
            narrow_saved(stitched)
            stitched.split()
        return visits / nodes

    small, large = share(1), share(4)
    assert 1 < large < 1.1 * small < 20
