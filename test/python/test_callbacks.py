"""What callbacks of TrainStep hear, and what they write."""

from __future__ import annotations

import importlib.util
import io
import json
import math

import mpopt
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from mpopt import TrainStep, bad_op, callbacks, optim
from mpopt.callbacks import Callback, GradientHistogram, JSONLines, Progress, TensorBoard
from mpopt.callbacks._histogram import Counter
from mpopt.callbacks._metrics import FIGURES
from mpopt.errors import MpoptError
from mpopt.grad_scaler import LossScaleError
from mpopt.half_share import HalfShare
from torch import nn
from torch.utils.checkpoint import checkpoint


class MLP(nn.Module):
    """Two layers with a mask of -inf, a dropout and statistics on the way."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 4)

    def forward(self, x):
        y = nn.functional.dropout(self.norm(self.first(x)), 0.2)
        masked = y.masked_fill(torch.arange(16) > 7, float("-inf"))
        return self.second(y + masked.softmax(-1))


def make():
    torch.manual_seed(0)
    return MLP()


def batch(seed=0, factor=1.0):
    return torch.randn(4, 8, generator=torch.Generator().manual_seed(seed)) * factor


def loss_of(model, x):
    return model(x).float().square().mean()


def step_of(model, *heard, optimizer=None, loss_fn=loss_of, **kwargs):
    optimizer = optimizer or optim.AdamW(model.parameters(), lr=0.01)
    kwargs = {"dtype": torch.float16, "compile": False, **kwargs}
    if kwargs["dtype"] is torch.float16:
        kwargs.setdefault("scaler", mpopt.GradScaler("cpu", init_scale=1024.0))
    return TrainStep(model, loss_fn, optimizer, callbacks=heard, **kwargs)


class Recorder(Callback):
    """Keeps all that it hears, read."""

    def __init__(self):
        self.metrics, self.events, self.ends = [], [], 0

    def on_nonfinite(self, event):
        self.events.append(event)

    def on_step(self, metrics):
        self.metrics.append(metrics.as_dict())

    def on_end(self):
        self.ends += 1


OVERFLOW = {"factor": 1e6}


# ---- figures


def test_figures_are_those_of_the_step():
    model, other = make(), make()
    heard = Recorder()
    scaler = mpopt.GradScaler("cpu", init_scale=256.0, growth_interval=2)
    step = step_of(model, heard, scaler=scaler, clip=0.01, accumulate=2)
    losses = [step([batch(0), batch(1)]) for _ in range(3)]
    torch.manual_seed(0)
    MLP()
    with torch.autocast("cpu", torch.float16):
        first = [loss_of(other, batch(i)) / 2 for i in range(2)]
    for part in first:
        (part * 256.0).backward()
    grads = [p.grad.double() / 256.0 for p in other.parameters()]
    norm = math.sqrt(sum(float(g.square().sum()) for g in grads))
    figures = heard.metrics
    assert [f["step"] for f in figures] == [1, 2, 3]
    assert [f["loss"] for f in figures] == [loss.item() for loss in losses]
    assert [f["loss_scale"] for f in figures] == [256.0, 256.0, 512.0]
    assert [f["skipped"] for f in figures] == [False] * 3
    assert figures[0]["grad_norm"] == pytest.approx(norm, rel=1e-6) and norm > 0.01
    for f in figures:
        assert tuple(f) == FIGURES
        assert f["lr"] == 0.01
        assert f["throughput"] == pytest.approx(8 / f["seconds"]) and f["seconds"] > 0
        assert f["memory"].fragmentation is None
        assert f["half_share"] is None
        assert 10 * 2**20 < f["memory"].resident <= f["memory"].peak


@pytest.mark.parametrize("clip", [0.0, 0.01])
def test_norm_without_a_scaler_is_that_of_torch(clip):
    model, other = make(), make()
    heard = Recorder()
    torch.manual_seed(1)
    step_of(model, heard, dtype=torch.bfloat16, clip=clip)(batch())
    torch.manual_seed(1)
    with torch.autocast("cpu", torch.bfloat16):
        loss_of(other, batch()).backward()
    norm = torch.nn.utils.get_total_norm([p.grad for p in other.parameters()])
    assert heard.metrics[0]["grad_norm"] == pytest.approx(norm.item(), rel=1e-6)
    assert heard.metrics[0]["loss_scale"] == 1.0


def test_nothing_is_read_that_nobody_asks_for(monkeypatch):
    kept, counted = [], []

    class Keeps(Callback):
        def on_step(self, metrics):
            kept.append(metrics)

    read = []
    monkeypatch.setattr(optim._fused.Fused, "measure", lambda *args: read.append(args))
    monkeypatch.setattr(optim._fused.Fused, "measure_for_step", lambda *args: read.append(args))
    step = step_of(make(), Keeps(), dtype=torch.bfloat16, count=counted.append)
    step(batch())
    assert not read and not counted
    assert not {"loss", "loss_scale", "memory", "samples", "grad_norm"} & vars(kept[0]).keys()
    with pytest.raises(MpoptError, match="grad_norm can be read in the callbacks only"):
        _ = kept[0].grad_norm
    assert kept[0].loss > 0


def test_gradients_are_those_of_backward_without_the_scale():
    model, other = make(), make()
    seen = {}

    class Looks(Callback):
        def on_gradients(self, metrics):
            seen.update(metrics.gradients.unscaled())

        def on_step(self, metrics):
            with pytest.raises(MpoptError, match="in on_gradients only"):
                list(metrics.gradients.unscaled())

    torch.manual_seed(1)
    step_of(model, Looks(), scaler=mpopt.GradScaler("cpu", init_scale=3.0))(batch())
    torch.manual_seed(1)
    with torch.autocast("cpu", torch.float16):
        (loss_of(other, batch()) * 3.0).backward()
    third = torch.tensor(3.0).reciprocal()
    assert seen.keys() == dict(other.named_parameters()).keys()
    for name, p in other.named_parameters():
        assert torch.equal(seen[name], p.grad * third), name


def test_count_is_the_users():
    heard = Recorder()
    step_of(make(), heard, count=torch.numel)(batch())
    assert heard.metrics[0]["throughput"] == pytest.approx(32 / heard.metrics[0]["seconds"])


@pytest.mark.parametrize(
    ("given", "samples"),
    [
        (torch.ones(5, 2), 5),
        ([torch.ones(3), torch.ones(7)], 3),
        ({"text": "abc", "ids": torch.ones(6, 2)}, 6),
        (("a", 1), 0),
        (torch.tensor(1.0), 1),
    ],
)
def test_samples_are_the_first_dimension_of_the_first_tensor(given, samples):
    from mpopt.train_step import _samples

    assert _samples(given) == samples


def test_hooks_come_in_order_and_end_comes_once_for_each():
    calls = []

    class Named(Callback):
        def __init__(self, name):
            self.name = name

        def on_gradients(self, metrics):
            calls.append(f"gradients {self.name}")

        def on_step(self, metrics):
            calls.append(f"step {self.name}")

        def on_end(self):
            calls.append(f"end {self.name}")
            raise OSError(f"disk of {self.name} is full")

    with pytest.raises(OSError, match="disk of b"), step_of(make(), Named("a"), Named("b")) as step:
        step(batch())
    assert calls == ["gradients a", "gradients b", "step a", "step b", "end a", "end b"]
    step.close()
    assert len(calls) == 6


# ---- gradients that are not finite


def test_overflow_names_parameter_operator_module_and_line():
    model, heard = make(), Recorder()
    step = step_of(model, heard, find_bad_op=True, accumulate=2)
    step([batch(0), batch(1)])
    before = [p.detach().clone() for p in model.parameters()]
    step([batch(0), batch(1, **OVERFLOW)])
    assert all(map(torch.equal, model.parameters(), before))
    (event,) = heard.events
    assert (event.step, event.parameter, event.kind) == (2, "first.weight", "nan")
    assert event.skipped and heard.metrics[1]["skipped"]
    bad = event.bad_op
    assert (bad.module, bad.phase, bad.kind) == ("first", "forward", "inf")
    assert bad.op == "aten._to_copy.default", "1e6 does not fit into fp16"
    assert bad.line.startswith(__file__) and bad.line.endswith(" in forward")


def test_overflow_of_the_backward_names_the_forwards_module_and_line():
    model, heard = nn.Sequential(nn.Linear(8, 8), MLP()), Recorder()
    with torch.no_grad():
        model[1].second.weight.fill_(2.0**10)

    def loss_fn(model, x):
        return model(x).float().mean()

    # The gradient of the result is 2 ** 8, and that of what `second` reads 2 ** 20.
    scaler = mpopt.GradScaler("cpu", init_scale=2.0**12)
    step_of(model, heard, loss_fn=loss_fn, find_bad_op=True, scaler=scaler)(batch())
    assert heard.metrics[0]["loss"] < 65504
    bad = heard.events[0].bad_op
    assert (bad.module, bad.phase, bad.kind) == ("1.second", "backward", "inf")
    assert bad.op == "aten.mm.default"
    assert bad.line.startswith(__file__) and bad.line.endswith(" in forward")


def test_overflow_outside_of_the_model_names_the_losss_line():
    heard = Recorder()
    scaler = mpopt.GradScaler("cpu", init_scale=2.0**40)
    step_of(make(), heard, find_bad_op=True, scaler=scaler)(batch())
    bad = heard.events[0].bad_op
    assert (bad.module, bad.phase, bad.kind) == ("", "backward", "inf")
    assert bad.op == "aten._to_copy.default", "the gradient of a widening is narrowed"
    assert bad.line.startswith(__file__) and bad.line.endswith(" in loss_of")


def test_operator_is_not_looked_for_unless_asked():
    heard = Recorder()
    step_of(make(), heard)(batch(**OVERFLOW))
    assert heard.events[0].bad_op is None


@pytest.mark.parametrize("where", ["parameter", "batch"])
def test_what_was_bad_before_is_named(where):
    model, heard = make(), Recorder()
    x = batch()
    if where == "parameter":
        with torch.no_grad():
            model.second.bias[1] = float("nan")
    else:
        x[0, 0] = float("inf")
    step_of(model, heard, find_bad_op=True)(x)
    bad = heard.events[0].bad_op
    expected = ("parameter", "second.bias", "nan") if where == "parameter" else ("batch", "", "inf")
    assert (bad.op, bad.module, bad.kind) == expected


class Masked(nn.Module):
    """A softmax over rows of which one may be masked altogether."""

    def __init__(self, masked):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))
        self.masked = masked

    def forward(self, x):
        scores = (x * self.weight).masked_fill(self.masked, float("-inf"))
        return (scores + torch.zeros(4)).softmax(-1)


def test_mask_of_infinities_is_nobodys_fault_but_an_empty_row_is():
    x = torch.ones(2, 4)
    mask = torch.zeros(2, 4, dtype=torch.bool)
    mask[1, 1:] = True
    model = Masked(mask)
    assert bad_op.find(model, x, lambda: model(x).sum()) is None
    mask[1] = True
    bad = bad_op.find(model, x, lambda: model(x).sum())
    assert (bad.op, bad.kind, bad.module) == ("aten._softmax.default", "nan", "")
    assert bad.line.endswith(" in forward")


def test_search_leaves_everything_as_it_was():
    results = []
    for find in (False, True):
        model = make()
        torch.manual_seed(1)
        step = step_of(model, Recorder(), find_bad_op=find)
        losses = [step(batch(i, 1e6 if i == 1 else 1.0)) for i in range(4)]
        # The statistics of the bad batch are in the buffers, once.
        assert model.norm.num_batches_tracked == 4
        results.append((losses, list(model.state_dict().values()), torch.get_rng_state()))
    (losses, state, random), (others, again, later) = results
    assert losses[2:] == others[2:]
    for a, b in zip(state, again):
        assert torch.equal(a, b) or (a.isnan().any() and torch.equal(a.isnan(), b.isnan()))
    assert torch.equal(random, later)


class Remembers(nn.Module):
    """Two buffers: one that forward writes into and one that it replaces."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 4)
        self.register_buffer("calls", torch.zeros(()))
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, x):
        y = self.linear(x)
        self.calls += 1
        self.mean = 0.5 * self.mean + y.detach().float().clamp(-1, 1).mean(0)
        return y


def test_search_does_not_count_a_batch_twice():
    means = []
    for find in (False, True):
        torch.manual_seed(0)
        model, heard = Remembers(), Recorder()
        step = step_of(model, heard, find_bad_op=find)
        for i in range(3):
            step(batch(i, 1e6 if i == 1 else 1.0))
        assert model.calls == 3
        assert (heard.events[0].bad_op is not None) == find
        means.append(model.mean)
    assert torch.equal(means[0].nan_to_num(7.0), means[1].nan_to_num(7.0))


def fails_eagerly(model, x):
    fails_eagerly.calls += 1
    if fails_eagerly.calls == 2:
        raise RuntimeError("no memory")
    return loss_of(model, x)


def test_search_that_fails_is_an_error_under_strict_and_counted_else(monkeypatch):
    before = mpopt.counters["fallbacks.bad_op"]
    fails_eagerly.calls = 0
    model = make()
    with pytest.raises(RuntimeError, match="no memory"):
        step_of(model, Recorder(), loss_fn=fails_eagerly, find_bad_op=True)(batch(**OVERFLOW))
    assert all(p.grad is None for p in model.parameters())
    monkeypatch.setenv("MPOPT_STRICT", "0")
    fails_eagerly.calls, heard = 0, Recorder()
    step = step_of(make(), heard, loss_fn=fails_eagerly, find_bad_op=True)
    step(batch(**OVERFLOW))
    assert heard.events[0].bad_op is None and heard.events[0].parameter == "first.weight"
    assert mpopt.counters["fallbacks.bad_op"] == before + 2
    assert step.scaler.get_scale() == 512.0


def test_last_event_is_heard_before_the_scaler_gives_up():
    heard = Recorder()
    scaler = mpopt.GradScaler("cpu", rule="deepspeed", init_scale=1.0)
    step = step_of(make(), heard, scaler=scaler)
    step(batch(**OVERFLOW))
    with pytest.raises(LossScaleError, match=r"at its least, 1.0"):
        step(batch(**OVERFLOW))
    assert [event.step for event in heard.events] == [1, 2]
    assert step.optimizer.skipped_steps == 2


class Stops(Callback):
    def on_nonfinite(self, event):
        raise FloatingPointError(f"{event.kind} in {event.parameter}, skipped: {event.skipped}")


@pytest.mark.parametrize(
    ("kwargs", "skipped"),
    [
        ({"dtype": torch.bfloat16}, False),
        ({"dtype": None}, False),
        ({"dtype": torch.bfloat16, "clip": 1.0}, True),
        ({"dtype": torch.float16}, True),
    ],
)
def test_raising_keeps_the_weights(kwargs, skipped):
    model = make()
    step = step_of(model, Stops(), **kwargs)
    step(batch())
    before = [p.detach().clone() for p in model.parameters()]
    bad = batch()
    bad[0, 0] = float("nan")
    with pytest.raises(FloatingPointError, match=f"nan in first.weight, skipped: {skipped}"):
        step(bad)
    assert all(map(torch.equal, model.parameters(), before))
    assert all(p.grad is None for p in model.parameters())
    step(batch(1))
    assert not torch.equal(model.second.weight, before[4])


def test_listening_does_not_change_what_bf16_does():
    heard, model, other = Recorder(), make(), make()
    for trained, hears in ((model, [heard]), (other, [])):
        torch.manual_seed(1)
        step = step_of(trained, *hears, dtype=torch.bfloat16)
        step(batch())
        bad = batch()
        bad[0, 0] = float("nan")
        step(bad)
    assert [event.skipped for event in heard.events] == [False]
    assert not heard.metrics[1]["skipped"]
    for a, b in zip(model.parameters(), other.parameters()):
        assert torch.equal(a.isnan(), b.isnan())
    assert model.second.weight.isnan().all(), "as PyTorch would"


@pytest.mark.parametrize("clip", [0.0, 0.001])
def test_what_pytorch_updates_has_events_and_norms_too(monkeypatch, clip):
    monkeypatch.setenv("MPOPT_STRICT", "0")
    model, heard = make().double(), Recorder()
    step = step_of(model, heard, dtype=None, clip=clip)
    step(batch().double())
    other = make().double()
    torch.manual_seed(0)
    MLP()
    loss_of(other, batch().double()).backward()
    norm = torch.nn.utils.get_total_norm([p.grad for p in other.parameters()])
    # The loss is taken in fp32.
    assert heard.metrics[0]["grad_norm"] == pytest.approx(norm.item(), rel=1e-6)
    step(batch(**OVERFLOW).double() * float("inf"))
    assert [(e.parameter, e.kind, e.skipped) for e in heard.events] == [
        ("first.weight", "nan", False)
    ]


def test_torchs_scaler_has_events_too():
    heard = Recorder()
    step = step_of(make(), heard, scaler=torch.amp.GradScaler("cpu", init_scale=4.0))
    step(batch())
    step(batch(**OVERFLOW))
    assert [(e.step, e.parameter, e.skipped) for e in heard.events] == [(2, "first.weight", True)]
    assert [m["loss_scale"] for m in heard.metrics] == [4.0, 4.0]
    assert step.scaler.get_scale() == 2.0


# ---- share of half


def test_share_of_half_counts_what_computes():
    def function(x, weight):
        y = torch.relu(x @ weight)  # two in half
        y = y.view(2, 2, 8).transpose(0, 1).float()
        return y.exp().sum() + torch.arange(3).sum()  # three in fp32, two of integers

    counts, single = HalfShare(), HalfShare()
    assert counts.share() is None
    for each, enabled in ((counts, True), (single, False)):
        torch._dynamo.reset()
        run = torch.compile(function, backend=each.counting(lambda gm, inputs: gm.forward))
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            run(batch(), torch.ones(8, 8))
    assert (counts.half, counts.all, counts.share()) == (2, 5, 0.4)
    assert (single.half, single.all, single.share()) == (0, 5, 0.0)


def test_share_counts_inside_of_checkpointed_blocks():
    counts = HalfShare()
    x, weight = batch().requires_grad_(), torch.ones(8, 8)

    def function(x):
        return checkpoint(lambda x: torch.relu(x @ weight), x, use_reentrant=False).float().exp()

    run = torch.compile(function, backend=counts.counting(lambda gm, inputs: gm.forward))
    with torch.autocast("cpu", torch.bfloat16):
        run(x)
    assert (counts.half, counts.all) == (2, 3)


# ---- writers


def lines_of(path):
    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    return [json.loads(line, parse_constant=refuse) for line in path.read_text().splitlines()]


def test_json_lines(tmp_path):
    path = tmp_path / "log.jsonl"
    heard = Recorder()
    # The histogram comes after the writer, and is in its lines all the same.
    step = step_of(make(), JSONLines(path), GradientHistogram(every=2), heard, find_bad_op=True)
    step(batch(0))
    assert len(lines_of(path)) == 1, "flushed"
    step(batch(1, **OVERFLOW))
    step(batch(2))
    first, second, third = lines_of(path)
    assert [line["step"] for line in (first, second, third)] == [1, 2, 3]
    for line, figures in zip((first, second, third), heard.metrics):
        for name in ("loss", "grad_norm", "loss_scale", "seconds", "throughput", "skipped"):
            expected = figures[name]
            assert line[name] == (expected if math.isfinite(expected) else None), name
    assert second["loss"] is None and second["skipped"] is True
    assert second["nonfinite"]["parameter"] == "first.weight"
    assert second["nonfinite"]["bad_op"]["op"] == "aten._to_copy.default"
    assert "nonfinite" not in first
    assert sum(third["gradient_histogram"]["counts"]) > 0
    assert "gradient_histogram" in first and "gradient_histogram" not in second
    assert first["memory"]["resident"] > 0 and first["half_share"] is None
    step.close()


def test_json_lines_go_on_where_a_run_resumes(tmp_path):
    path = tmp_path / "log.jsonl"
    with step_of(make(), JSONLines(path)) as step:
        step(batch(0))
        state = step.state_dict()
    with step_of(make(), JSONLines(path)) as resumed:
        resumed.load_state_dict(state)
        resumed(batch(1))
    assert [line["step"] for line in lines_of(path)] == [1, 2]


def test_json_lines_of_every_second_step_and_of_each_event(tmp_path):
    path = tmp_path / "log.jsonl"
    step = step_of(make(), JSONLines(path, every=2))
    for i in range(5):
        step(batch(i, 1e6 if i == 3 else 1.0))
    assert [line["step"] for line in lines_of(path)] == [1, 3, 4, 5]


def test_json_lines_keep_the_event_that_stopped_the_run(tmp_path):
    path = tmp_path / "log.jsonl"
    with pytest.raises(FloatingPointError), step_of(make(), JSONLines(path), Stops()) as step:
        step(batch(**OVERFLOW))
    (line,) = lines_of(path)
    assert (line["step"], line["nonfinite"]["kind"]) == (1, "nan")


HAS_TENSORBOARD = importlib.util.find_spec("tensorboard") is not None


@pytest.mark.skipif(HAS_TENSORBOARD, reason="tensorboard is installed")
def test_missing_tensorboard_is_named(tmp_path):
    with pytest.raises(MpoptError, match=r"the package tensorboard, .* pip install tensorboard"):
        TensorBoard(tmp_path)


@pytest.mark.skipif(not HAS_TENSORBOARD, reason="needs the package tensorboard")
def test_tensorboard_reads_back(tmp_path):
    events = importlib.import_module("tensorboard.backend.event_processing.event_accumulator")
    heard = Recorder()
    with step_of(make(), TensorBoard(tmp_path), GradientHistogram(), heard) as step:
        step(batch(0))
        step(batch(1, **OVERFLOW))
    read = events.EventAccumulator(str(tmp_path)).Reload()
    losses = [scalar.value for scalar in read.Scalars("loss")]
    assert losses[0] == pytest.approx(heard.metrics[0]["loss"]) and math.isnan(losses[1])
    assert [scalar.step for scalar in read.Scalars("loss_scale")] == [1, 2]
    assert read.Scalars("memory/resident")[0].value > 0
    expected = sum(heard.metrics[0]["gradient_histogram"].counts)
    assert read.Histograms("gradients/log2")[0].histogram_value.num == expected
    assert "nonfinite/text_summary" in read.Tags()["tensors"]


class Writer:
    """A SummaryWriter that only remembers."""

    def __init__(self):
        self.scalars, self.texts, self.histograms, self.open = {}, [], [], True

    def add_scalar(self, name, value, step):
        self.scalars[name, step] = value

    def add_text(self, name, text, step):
        self.texts.append((name, text, step))

    def add_histogram_raw(self, name, **kwargs):
        self.histograms.append((name, kwargs))

    def flush(self):
        self.flushed = True

    def close(self):
        self.open = False


def test_tensorboard_takes_a_writer():
    writer, heard = Writer(), Recorder()
    with step_of(make(), TensorBoard(writer, every=2), GradientHistogram(3), heard) as step:
        for i in range(3):
            step(batch(i, 1e6 if i == 1 else 1.0))
    assert writer.open and writer.flushed
    assert {step for _, step in writer.scalars} == {1, 3}
    figures = heard.metrics[2]
    assert writer.scalars["loss", 3] == figures["loss"]
    assert writer.scalars["grad_norm", 3] == figures["grad_norm"]
    assert writer.scalars["skipped", 3] is False
    assert writer.scalars["memory/peak", 3] == figures["memory"].peak
    histogram = heard.metrics[0]["gradient_histogram"]
    assert writer.scalars["gradients/below_1e-7", 1] == histogram.below_1e_7
    ((name, text, number),) = writer.texts
    assert (name, number) == ("nonfinite", 2) and "parameter: first.weight" in text
    ((name, raw),) = writer.histograms
    assert raw["global_step"] == 1 and tuple(raw["bucket_counts"]) == histogram.counts
    assert raw["bucket_limits"][0] == histogram.first_exponent + 1
    assert len(raw["bucket_limits"]) == len(raw["bucket_counts"])
    with pytest.raises(TypeError, match="writer must be a folder or a SummaryWriter, not 3"):
        TensorBoard(3)


def test_progress_shows_figures_and_events():
    rich = pytest.importorskip("rich.console")
    text = io.StringIO()
    console = rich.Console(file=text, width=160, force_terminal=True, color_system=None)
    with step_of(make(), Progress(2, console=console), find_bad_op=True) as step:
        loss = step(batch(0))
        step(batch(1, **OVERFLOW))
        bar = step.callbacks[0]._bar.tasks[0]
        assert bar.completed == bar.total == 2
    shown = text.getvalue()
    assert "step 2 skipped: nan in first.weight; first aten._to_copy.default in first" in shown
    assert "skipped 1" in shown and "scale 1024" in shown
    assert loss.item() > 0


def test_missing_rich_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with pytest.raises(MpoptError, match=r"the package rich, .* pip install rich"):
        Progress()


@pytest.mark.parametrize("every", [0, -1, True, 1.5])
@pytest.mark.parametrize("make_one", [GradientHistogram, lambda every: JSONLines("x", every)])
def test_bad_every_is_named(make_one, every, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="every must be a number of steps"):
        make_one(every=every)
    assert not list(tmp_path.iterdir())


# ---- the histogram


def histogram_of(*arrays):
    counter = Counter()
    for array in arrays:
        counter.add(torch.from_numpy(array))
    return counter.histogram()


FLOATS = st.floats(width=32) | st.sampled_from([0.0, -0.0, 1e-7, 2.0**-149, 1e-45, 2.0**127])


@settings(max_examples=200)
@given(st.lists(FLOATS, max_size=40), st.sampled_from([np.float32, np.float64]))
def test_histogram_is_numpys(values, dtype):
    array = np.array(values, dtype=dtype)
    found = histogram_of(array[: len(array) // 2], array[len(array) // 2 :])
    finite = np.abs(array[np.isfinite(array)])
    exponents = np.frexp(finite[finite != 0])[1] - 1
    expected = dict(zip(*np.unique(exponents, return_counts=True)))
    bins = {found.first_exponent + i: n for i, n in enumerate(found.counts) if n}
    assert bins == expected
    assert found.elements == len(array)
    assert found.nonfinite == len(array) - len(finite)
    share = max(1, len(array))
    assert found.zeros == (finite == 0).sum() / share
    assert found.below_1e_7 == (finite < dtype(1e-7)).sum() / share


def test_histogram_of_known_values():
    found = histogram_of(np.array([1.0, 1.5, -2.0, 0.0, 3e-8, np.inf, np.nan, 0.25], np.float32))
    assert found.first_exponent == -25
    assert (found.counts[0], found.counts[23:]) == (1, (1, 0, 2, 1))
    assert (found.elements, found.nonfinite) == (8, 2)
    assert (found.zeros, found.below_1e_7) == (1 / 8, 2 / 8)


def test_histogram_is_of_all_unscaled_gradients():
    histograms = []
    for scale in (1.0, 2.0**10):
        model, heard = make(), Recorder()
        step_of(
            model,
            GradientHistogram(),
            heard,
            dtype=None,
            scaler=mpopt.GradScaler("cpu", init_scale=scale),
        )(batch())
        histograms.append(heard.metrics[0]["gradient_histogram"])
    assert histograms[0] == histograms[1], "powers of two are taken out exactly"
    assert histograms[0].elements == sum(p.numel() for p in model.parameters())


def test_every_callback_is_exported():
    for name in callbacks.__all__:
        assert getattr(callbacks, name).__doc__, name
