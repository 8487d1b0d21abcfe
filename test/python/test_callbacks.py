"""What callbacks of TrainStep hear, and what they write."""

from __future__ import annotations

import math

import listening
import mpopt
import pytest
import torch
from listening import MLP, OVERFLOW, Recorder, Stops, batch, loss_of, make, step_of
from mpopt import bad_op, optim
from mpopt.callbacks import Callback
from mpopt.callbacks._metrics import FIGURES
from mpopt.errors import MpoptError
from mpopt.grad_scaler import LossScaleError
from mpopt.half_share import HalfShare
from torch import nn
from torch.utils.checkpoint import checkpoint

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
    assert bad.line.startswith(listening.__file__) and bad.line.endswith(" in forward")


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
    assert bad.line.startswith(listening.__file__) and bad.line.endswith(" in forward")


def test_overflow_outside_of_the_model_names_the_losss_line():
    heard = Recorder()
    scaler = mpopt.GradScaler("cpu", init_scale=2.0**40)
    step_of(make(), heard, find_bad_op=True, scaler=scaler)(batch())
    bad = heard.events[0].bad_op
    assert (bad.module, bad.phase, bad.kind) == ("", "backward", "inf")
    assert bad.op == "aten._to_copy.default", "the gradient of a widening is narrowed"
    assert bad.line.startswith(listening.__file__) and bad.line.endswith(" in loss_of")


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
