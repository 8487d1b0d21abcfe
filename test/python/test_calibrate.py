"""What `mpopt.calibrate` measures is what fp32 or fp64 gives, and it leaves no trace."""

from __future__ import annotations

import io
import json
import math
import re
from unittest import mock

import mpopt
import pytest
import tomllib
import torch
import torch.nn.functional as F
from eager_code import eager_code
from hypothesis import given, settings
from hypothesis import strategies as st
from mpopt import Calibration, _torch_watch, joint_pass, range_keys
from mpopt.backend import mpopt as backend
from mpopt.errors import MpoptError, OptionError
from mpopt.options import resolve
from mpopt.range_keys import Key
from mpopt.ranges import FORMATS, Range, logits_of_attention
from torch import nn
from torch.utils.checkpoint import checkpoint

LINEAR, SOFTMAX = "aten.addmm.default", "aten._softmax.default"


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()


class Attention(nn.Module):
    def __init__(self, eager, width=16, heads=4):
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.eager, self.heads = eager, heads

    def heads_of(self, x):
        batch, length, _ = x.shape
        return self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)

    def forward(self, x):
        q, k, v = self.heads_of(x)
        if self.eager:
            y = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).softmax(-1) @ v
        else:
            y = F.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).reshape(x.shape))


class Net(nn.Module):
    """A bit of everything that a trace has to follow."""

    def __init__(self, breaks=False, checkpoints=False):
        super().__init__()
        self.norm, self.drop = nn.LayerNorm(16), nn.Dropout(0.1)
        self.first, self.second = Attention(eager=False), Attention(eager=True)
        self.stats, self.last = nn.BatchNorm1d(16), nn.Linear(16, 5)
        self.breaks, self.checkpoints = breaks, checkpoints

    def forward(self, x, y):
        if self.checkpoints:
            x = checkpoint(self.first, self.norm(x), use_reentrant=False)
        else:
            x = self.drop(x + self.first(self.norm(x)))
        if self.breaks:
            torch._dynamo.graph_break()
        x = self.stats(self.second(x)[:, 0])
        return F.cross_entropy(self.last(x), y)


def batches(*lengths):
    return [(torch.randn(3, n, 16), torch.randint(0, 5, (3,))) for n in lengths]


# Numbers ------------------------------------------------------------------------


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.floats(width=32), max_size=40),
    st.lists(st.floats(-(2.0**-10), 2.0**-10, width=32), max_size=40),
)
def test_a_range_is_what_counting_gives(first, second):
    measured = Range()
    for part in (first, second):
        measured.add(torch.tensor(part, dtype=torch.float32))
    values = [*first, *second]
    finite = [v for v in values if math.isfinite(v) and v > -(2.0**127)]
    sizes = [abs(v) for v in finite if v]
    assert measured.elements == len(values)
    assert measured.nans == sum(map(math.isnan, values))
    assert measured.infs == len(values) - len(finite) - measured.nans
    assert measured.absmax == max(sizes, default=0.0)
    assert measured.nonzero == len(sizes)
    exact = math.sqrt(math.fsum(v * v for v in sizes) / len(finite)) if finite else 0.0
    assert measured.rms == pytest.approx(exact, rel=1e-12)
    for form in FORMATS.values():
        for exponent in (form.normal, form.subnormal):
            less = sum(size < 2.0**exponent for size in sizes)
            assert measured.below(exponent) == (less / len(sizes) if sizes else 0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_limits_are_those_of_the_formats(dtype):
    info = torch.finfo(dtype)
    measured = Range()
    measured.add(torch.tensor([info.tiny, info.smallest_normal / 2, info.max], dtype=dtype))
    if dtype in FORMATS:
        form = FORMATS[dtype]
        assert form.largest == info.max and 2.0**form.normal == info.tiny
        assert 2.0**form.subnormal == info.tiny * info.eps == 2.0 ** (form.normal - form.digits + 1)
        assert measured.headroom(form) == 0
        assert measured.below(form.normal) == pytest.approx(1 / 3)
        assert measured.below(form.subnormal) == 0


def test_logits_in_chunks_and_in_groups():
    query, key = torch.randn(2, 6, 50, 8), torch.randn(2, 3, 40, 8)
    exact = query @ key.repeat_interleave(2, dim=1).transpose(-1, -2) * 0.3
    with mock.patch("mpopt.ranges._CHUNK", 64):
        found = logits_of_attention(query, key, 0.3)
    assert found == pytest.approx(exact.amax((0, 2, 3)).tolist(), rel=1e-5)


def test_values_and_gradients_are_those_of_wider_types():
    model = Net().eval()
    data = batches(7, 7)
    found = mpopt.calibrate(model, data, dtype=torch.float16)
    values = {}
    for name in ("first.qkv", "second.out", "last"):
        module = model.get_submodule(name)
        module.register_forward_hook(
            lambda _, __, y, n=name: values.setdefault(n, []).append(y.detach())
        )
    model.double().zero_grad()
    for x, y in data:
        model(x.double(), y).backward()
    for name, results in values.items():
        every = torch.cat([r.flatten() for r in results])
        measured = found[Key(name, LINEAR)]
        assert measured.dtype == "float16" and measured.elements == every.numel()
        assert measured.absmax == pytest.approx(float(every.abs().max()), rel=1e-4)
        assert measured.rms == pytest.approx(float(every.square().mean().sqrt()), rel=1e-4)
    # One batch each, not their sum: no gradient of these is larger than both together.
    model.zero_grad()
    largest = {}
    for x, y in data:
        model.zero_grad()
        model(x.double(), y).backward()
        for name, p in model.named_parameters():
            largest[name] = max(largest.get(name, 0.0), float(p.grad.abs().max()))
    for name in ("first.qkv.weight", "last.weight", "norm.bias"):
        assert found[Key(name, "gradient", 0, "backward")].absmax == pytest.approx(
            largest[name], rel=1e-3
        )


def test_logits_of_each_head_fused_or_not():
    model, data = Net().eval(), batches(6, 6)
    found = mpopt.calibrate(model, data, dtype=torch.bfloat16)
    fused = [r for k, r in found.ranges.items() if k.module == "first" and "attention" in k.op]
    eager = found[Key("second", SOFTMAX)]
    largest = {"first": [], "second": []}
    for name in largest:
        module = model.get_submodule(name)

        def hook(module, args, _, name=name):
            q, k, _ = module.heads_of(args[0])
            largest[name].append((q @ k.transpose(-1, -2) / 2).amax((0, 2, 3)))

        module.register_forward_hook(hook)
    for batch in data:
        model(*batch)
    exact = {name: torch.stack(each).amax(0).tolist() for name, each in largest.items()}
    assert len(exact["first"]) == 4
    (head_logits,) = [r.head_logits for r in fused if r.head_logits]
    assert head_logits == pytest.approx(exact["first"], rel=1e-3)
    assert eager.head_logits == pytest.approx(exact["second"], rel=1e-3)


class Overflowing(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(16, 16), nn.Linear(16, 1)
        with torch.no_grad():
            self.up.weight.mul_(1e6)
            self.down.weight.mul_(1e-6)

    def forward(self, x):
        return self.down(self.up(x).relu()).float().square().mean()


def test_an_overflow_is_seen_with_its_size_and_pinned(tmp_path):
    model, x = Overflowing(), torch.randn(8, 16)
    found = mpopt.calibrate(model, [x], dtype=torch.float16)
    exact = float(model.up(x).detach().abs().max())
    assert exact > 65504
    up = found[Key("up", LINEAR)]
    assert up.absmax == pytest.approx(exact, rel=1e-5) and up.infs == 0
    assert up.headroom(FORMATS[torch.float16]) == pytest.approx(math.log2(65504 / exact), abs=1e-4)
    down = found[Key("down", LINEAR)]
    assert down.absmax < 100 and down.infs == down.nans == 0

    pins = {(pin.module, pin.op): pin.why for pin in found.pins()}
    assert "overflows float16" in pins["up", LINEAR]
    assert ("down", LINEAR) not in pins
    assert ("up", LINEAR) not in {(p.module, p.op) for p in found.pins(torch.bfloat16)}

    found.write_policy(tmp_path / "policy.toml")
    policy = tomllib.loads((tmp_path / "policy.toml").read_text(encoding="utf-8"))
    assert policy["version"] == 1
    rules = {(rule["module"], rule["op"]): rule for rule in policy["rule"] if "op" in rule}
    assert rules.keys() == {place for place in pins if place[0]}
    # Code outside of modules has an empty path, which no glob of a policy stands for.
    (relu,) = [rule["name"] for rule in policy["rule"] if "relu" in rule.get("name", "")]
    assert re.search(relu, "aten.relu.default") and not re.search(relu, "m/aten.relu.default")
    assert rules["up", LINEAR]["precision"] == "fp32"
    assert rules["up", LINEAR]["why"] == pins["up", LINEAR]


def test_heads_whose_logits_are_too_large_are_named():
    ranges = {
        Key("h.0", SOFTMAX): Range(absmax=1.0, head_logits=[3.0, 100.0]),
        Key("h.1", "aten._scaled_dot_product_flash_attention.default"): Range(
            absmax=1.0, head_logits=[100.0, 40000.0, 3.0]
        ),
    }
    found = Calibration(ranges, torch.float16, 1, False)
    (half,) = found.pins(torch.float16)
    assert half.module == "h.1" and "logits of heads 1 reach 4e+04" in half.why
    (brain,) = found.pins(torch.bfloat16)  # 100 ± 0.25 is no probability
    assert brain.module == "h.0" and "logits of heads 1 reach 100" in brain.why


def test_underflow_is_of_typical_values_not_of_some():
    def of(exponents, rms):
        size = sum(exponents.values())
        return Range(
            elements=size,
            absmax=0.9,
            square_sum=rms**2 * size,
            exponents=Range(exponents=exponents).exponents,
        )

    peaky = of({-1: 10, -30: 90}, 0.2)  # a softmax: what it loses is nothing beside the rest
    tiny = of({-20: 50, -26: 50}, 2.0**-20)
    found = Calibration({Key("a", "op"): peaky, Key("b", "op"): tiny}, None, 1, False)
    (pin,) = found.pins()
    assert pin.module == "b" and "50% below the smallest number" in pin.why
    assert found.pins(torch.bfloat16) == []


def test_loss_scale_is_the_largest_that_fits():
    def grads(*pairs):
        ranges = {}
        for number, (exponent, count) in enumerate(pairs):
            range_ = Range(dtype="float16")
            range_.add(torch.full((count,), 2.0**exponent * 1.5))
            ranges[Key("m", "op", number, "backward")] = range_
        return Calibration(ranges, torch.float16, 1, True)

    scale = grads((-10, 4), (-26, 2), (-50, 2)).loss_scale(margin=1.0)
    # 1.5 · 2^-10 · 2^24 = 1.5 · 2^14 is below 65504 / 2, twice that is not.
    assert scale.scale == 2.0**24
    assert scale.lost_before == 0.5 and scale.lost_after == 0.25
    assert scale.below_normal_before == 0.5 and scale.below_normal_after == 0.25
    # One that no scale helps decides nothing, but is pinned.
    outlier = grads((-10, 4), (-26, 2), (-50, 2), (20, 1))
    assert outlier.loss_scale(margin=1.0).scale == 2.0**24
    assert "times the loss scale 1.67772e+07 overflows float16" in outlier.pins()[0].why
    assert grads((20, 1)).loss_scale().scale == 1
    with pytest.raises(MpoptError, match="calibrate with a loss"):
        Calibration({}, None, 1, False).loss_scale()


# Keys ---------------------------------------------------------------------------


def keys_of_backend(model, data):
    """Keys of the graphs that the backend's joint pass gets."""
    found = set()
    run = joint_pass.JointPass.__call__

    def look(self, graph):
        range_keys.mark(graph, self.capture.inputs)
        found.update(filter(None, map(range_keys.key_of, graph.nodes)))
        run(self, graph)

    torch._dynamo.reset()
    with eager_code(), mock.patch.object(joint_pass.JointPass, "__call__", look):
        compiled = torch.compile(model, backend=backend)
        for batch in data:
            with torch.autocast("cpu", torch.bfloat16):
                loss = compiled(*batch)
            loss.backward()
    return {key._replace(result=0) for key in found}


@pytest.mark.parametrize("kind", ["breaks", "checkpoints", "dynamic"])
def test_keys_are_those_of_the_backends_graphs(kind):
    model = Net(breaks=kind == "breaks", checkpoints=kind == "checkpoints")
    data = batches(5, 9) if kind == "dynamic" else batches(5, 5)
    found = mpopt.calibrate(model, data)
    again = mpopt.calibrate(model, data)
    assert again.ranges.keys() == found.ranges.keys()
    measured = {key._replace(result=0) for key in found.ranges if key.op != "gradient"}
    expected = keys_of_backend(model, data)
    values = {key for key in expected if key.op not in ("input", "symint")}
    assert {k for k in measured if k.op != "input"} <= expected
    # Everything is measured but buffers that hold whole numbers.
    assert {k for k in values - measured if k.op != "buffer"} == set()
    assert {k.phase for k in measured} == {"forward", "backward"}
    assert len(measured) > 40


def test_operations_say_their_keys_also_after_partitioning(tmp_path):
    model, data = Net(), batches(5)
    found = mpopt.calibrate(model, data)
    options = {"ranges": found, "dump": tmp_path, "numerics": "relaxed"}
    with eager_code():
        compiled = torch.compile(model, backend=backend, options=options)
        with torch.autocast("cpu", torch.bfloat16):
            compiled(*data[0]).backward()
    stated = re.compile(r'mp.measured = \["(.*?)", "(.*?)", (\d+)(?: : i64)?, "(.*?)"\]')
    graphs = {path.parent.name.partition("_")[2]: path for path in tmp_path.glob("*/00_*")}
    keys = {
        name: [Key(m, op, int(n), phase) for m, op, n, phase in stated.findall(path.read_text())]
        for name, path in graphs.items()
    }
    assert keys.keys() == {"joint", "stitched"}
    measured = {key._replace(result=0) for key in found.ranges}
    assert len(set(keys["joint"])) == len(keys["joint"]) and set(keys["joint"]) <= measured
    # What is computed twice has one key; of what was expanded, the result has it.
    assert set(keys["stitched"]) <= set(keys["joint"])
    assert Key("norm", "aten.native_layer_norm.default") in keys["joint"]
    products = {k for k in keys["joint"] if "mm." in k.op}
    assert products <= set(keys["stitched"]) and len(products) > 10


# No trace -----------------------------------------------------------------------


def test_nothing_is_changed():
    model, data = Net(), batches(5)
    before = {k: v.clone() for k, v in model.state_dict().items()}
    random = torch.get_rng_state()
    mpopt.calibrate(model, data)
    assert torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert all(p.grad is None for p in model.parameters())
    assert model.training and not any(m._forward_hooks for m in model.modules())


def test_loss_fn_and_forward_alone():
    model, x = nn.Sequential(nn.Linear(4, 3)), torch.randn(5, 4)
    forward = mpopt.calibrate(model, [x])
    assert not forward.has_backward and Key("0", LINEAR) in forward.ranges
    both = mpopt.calibrate(torch.compile(model), [x], loss_fn=lambda m, b: m(b).float().sum())
    assert both.has_backward
    assert both[Key("0.bias", "gradient", 0, "backward")].absmax == pytest.approx(5)
    named = mpopt.calibrate(model, [{"input": x}])
    operators = [{k for k in c.ranges if k.op != "input"} for c in (named, forward)]
    assert operators[0] == operators[1]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_parameters_are_measured_as_they_are_computed(dtype):
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1)).to(dtype)
    found = mpopt.calibrate(
        model, [torch.randn(3, 4, dtype=dtype)], dtype=None, loss_fn=lambda m, b: m(b).sum()
    )
    assert found[Key("0", LINEAR)].dtype == str(dtype).removeprefix("torch.")
    assert found[Key("2.bias", "gradient", 0, "backward")].absmax == pytest.approx(3)


def test_bad_arguments_are_one_clear_error():
    model, x = nn.Linear(2, 2), torch.randn(2, 2)
    with pytest.raises(OptionError, match=r"as in \[batch\]"):
        mpopt.calibrate(model, x)
    with pytest.raises(OptionError, match="needs a module, not function"):
        mpopt.calibrate(lambda x: x, [x])
    with pytest.raises(OptionError, match=r"bfloat16, torch\.float16 or None"):
        mpopt.calibrate(model, [x], dtype=torch.float64)
    with pytest.raises(OptionError, match=r"scalar tensor, not one of shape \(2, 2\)"):
        mpopt.calibrate(model, [x], loss_fn=lambda m, b: m(b))
    with pytest.raises(MpoptError, match="no batch"):
        mpopt.calibrate(model, [])


# The file -----------------------------------------------------------------------


def some_calibration():
    return mpopt.calibrate(Overflowing(), [torch.randn(8, 16)], dtype=torch.float16)


def test_a_file_holds_everything(tmp_path):
    found = some_calibration()
    found.save(tmp_path / "ranges.json")
    loaded = Calibration.load(tmp_path / "ranges.json")
    assert loaded == found
    assert loaded.as_dict() == found.as_dict() and loaded.digest() == found.digest()
    json.loads((tmp_path / "ranges.json").read_text(), parse_constant=pytest.fail)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(schema="x"), "'schema' is not \"mpopt-ranges\""),
        (lambda d: d.update(version=2), "version 2, but this release reads version 1"),
        (lambda d: d.pop("values"), "KeyError 'values' at file"),
        (lambda d: d["values"][1].pop("rms"), None),
        (lambda d: d["values"][1].pop("absmax"), r"KeyError 'absmax' at values\[1\]"),
        (lambda d: d["values"][1].update(phase="x"), r"phase 'x' at values\[1\]"),
        (lambda d: d["values"].append(d["values"][0]), "a second row of the same key"),
    ],
)
def test_a_bad_file_is_one_clear_error(tmp_path, change, message):
    path = tmp_path / "ranges.json"
    data = some_calibration().as_dict()
    change(data)
    path.write_text(json.dumps(data))
    if message is None:
        Calibration.load(path)
        return
    with pytest.raises(MpoptError, match=message) as error:
        Calibration.load(path)
    assert f"ranges file '{path}'" in str(error.value)


def test_option_takes_path_or_calibration_and_hashes_its_content(tmp_path):
    found = some_calibration()
    paths = [tmp_path / name for name in ("a.json", "b.json", "c.json")]
    found.save(paths[0])
    found.save(paths[1])
    found.ranges[Key("up", LINEAR)].absmax *= 2
    found.save(paths[2])
    digests = [resolve({"ranges": path}).digest() for path in paths]
    assert digests[0] == digests[1] != digests[2]
    assert resolve({"ranges": found}).digest() == digests[2]
    assert Calibration.load(resolve({"ranges": found}).ranges) == found
    assert resolve({}).digest() not in digests
    with pytest.raises(OptionError, match="ranges: cannot read '/no/such': No such file"):
        resolve({"ranges": "/no/such"})
    with pytest.raises(OptionError, match="ranges must be a path or what "):
        resolve({"ranges": 3})


def test_the_table_shows_the_worst_first():
    rich = pytest.importorskip("rich.console")
    console = rich.Console(width=140, record=True, file=io.StringIO())
    console.print(some_calibration().table(rows=3))
    lines = [line for line in console.export_text().splitlines() if "addmm" in line]
    assert "up" in lines[0] and "more with more headroom" not in lines[0]
    found = some_calibration()
    without = mock.patch.dict("sys.modules", {"rich.table": None})
    with without, pytest.raises(MpoptError, match="pip install rich"):
        found.table()


def test_calibration_does_not_use_up_recompilations():
    model, x = nn.Linear(4, 4), torch.randn(2, 4)
    apart = "isolate_recompiles" in torch.compile.__kwdefaults__
    with torch._dynamo.config.patch(recompile_limit=1, fail_on_recompile_limit_hit=True):
        mpopt.calibrate(model, [x])
        if apart:
            torch.compile(model, backend="eager", fullgraph=True)(x)
    assert _torch_watch.uncompiled(torch.compile(model)) is model
