"""mpopt.TrainStep beside the loop that a user would write."""

from __future__ import annotations

import copy
import io
import warnings

import mpopt
import pytest
import torch
from models import Transformer, words
from mpopt import TrainStep, _torch, optim
from mpopt.callbacks import Callback
from mpopt.errors import MpoptError, OptionError
from stepping import assert_equal, batch, lm_loss, loss_of, make, step_of
from torch import nn

FIGURES = {"init_scale": 1024.0, "growth_interval": 3}
DTYPES = [torch.bfloat16, torch.float16, None]


def by_hand(model, optimizer, run, groups, dtype, scaler, clip=None):
    """The loop that TrainStep is to be equal to."""
    losses = []
    for micro in groups:
        parts = []
        for each in micro:
            with torch.autocast("cpu", dtype or torch.bfloat16, enabled=dtype is not None):
                loss = loss_of(run, each) / len(micro)
            scaler.scale(loss).backward()
            parts.append(loss.detach())
        scaler.step(optimizer, **({} if clip is None else {"clip": clip}))
        scaler.update()
        optimizer.zero_grad()
        losses.append(sum(parts))
    return losses


def groups_of(accumulate, steps=4):
    return [[batch(10 * s + i) for i in range(accumulate)] for s in range(steps)]


def train(step, groups):
    return [step(micro if step.accumulate > 1 else micro[0]) for micro in groups]


# ---- equal to the loop


@pytest.mark.parametrize("accumulate", [1, 4])
@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_are_those_of_torchs_loop(dtype, accumulate):
    groups = groups_of(accumulate)
    model, other = make(), make()
    scaler = mpopt.GradScaler("cpu", **FIGURES) if dtype is torch.float16 else None
    torch.manual_seed(1)
    step = step_of(model, dtype=dtype, accumulate=accumulate, scaler=scaler)
    losses = train(step, groups)
    torch.manual_seed(1)
    stock = torch.optim.AdamW(other.parameters(), lr=0.01, fused=True)
    scale = torch.amp.GradScaler("cpu", **FIGURES, enabled=scaler is not None)
    expected = by_hand(other, stock, other, groups, dtype, scale)
    assert all(map(torch.equal, losses, expected))
    assert losses[0] != losses[1]
    assert_equal(model, other)
    if scaler is not None:
        assert scaler.get_scale() == scale.get_scale() == 2048.0


@pytest.mark.parametrize("accumulate", [1, 4])
@pytest.mark.parametrize("dtype", DTYPES)
def test_bits_with_clipping_are_those_of_the_loop(dtype, accumulate):
    groups = groups_of(accumulate)
    model, other, free = make(), make(), make()
    kwargs = {"dtype": dtype, "accumulate": accumulate}
    for trained, clip in ((model, 0.25), (free, 0.0)):
        torch.manual_seed(1)
        scaler = mpopt.GradScaler("cpu", **FIGURES) if dtype is torch.float16 else None
        train(step_of(trained, **kwargs, clip=clip, scaler=scaler), groups)
    torch.manual_seed(1)
    scale = mpopt.GradScaler("cpu", **FIGURES, enabled=dtype is torch.float16)
    optimizer = optim.AdamW(other.parameters(), lr=0.01)
    by_hand(other, optimizer, other, groups, dtype, scale, clip=0.25)
    assert_equal(model, other)
    assert not torch.equal(model.first.weight, free.first.weight), "the limit is met"


def test_language_model_of_tied_weights():
    losses, models = [], []
    for by_loop in (False, True):
        torch.manual_seed(0)
        model = Transformer(layers=2, dropout=0.1, tied=True)
        if by_loop:
            optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, fused=True)
            losses.append([])
            for _ in range(3):
                with torch.autocast("cpu", torch.bfloat16):
                    loss = model(*words())
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                losses[-1].append(loss.detach())
        else:
            step = step_of(model, loss_fn=lm_loss, dtype=torch.bfloat16)
            losses.append([step(words()) for _ in range(3)])
        models.append(model)
    assert all(map(torch.equal, *losses)) and losses[0][2] < losses[0][0]
    assert_equal(*models)


def test_torchs_optimizer_is_fused_in_place():
    model = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    step = step_of(model, optimizer)
    assert step.optimizer is optimizer
    assert type(optimizer) is optim.SGD
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step(batch(0))
        schedule.step()
    assert optimizer.param_groups[0]["lr"] == 0.05


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(32, 64), nn.Linear(64, 16)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


@pytest.mark.parametrize("accumulate", [1, 2])
def test_compiled_bits_are_those_of_the_compiled_loop(accumulate):
    groups = groups_of(accumulate, steps=3)
    results, losses = [], []
    for by_loop in (False, True):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model = Plain()
        optimizer = optim.AdamW(model.parameters(), lr=0.01)
        if by_loop:
            optimizer.half_gradients = True
            run = torch.compile(model, backend="mpopt")
            scaler = mpopt.GradScaler("cpu", enabled=False)
            losses.append(by_hand(model, optimizer, run, groups, torch.bfloat16, scaler))
        else:
            step = step_of(
                model, optimizer, compile=True, accumulate=accumulate, dtype=torch.bfloat16
            )
            losses.append(train(step, groups))
            assert optimizer.half_gradients == (accumulate == 1)
            # linear, relu, linear: all in bf16
            assert step._share.share() == 1.0 and step._share.all == 3
        assert mpopt.counters["half_weights"] == 4
        assert mpopt.counters["half_weights_cast"] == 0
        results.append(model)
    assert all(map(torch.equal, *losses))
    assert_equal(*results)


def test_options_reach_the_backend():
    step = step_of(make(), compile=True, options={"numeric": "strict"})
    with pytest.raises(Exception, match="unknown option 'numeric'; did you mean 'numerics'"):
        step(batch(0))
    with pytest.raises(OptionError, match="compile=False leaves out"):
        step_of(make(), options={"numerics": "strict"})


# ---- micro-batches


def test_iterators_give_the_next_micro_batches():
    model, other = make(), make()
    x, y = (torch.cat(parts) for parts in zip(*groups_of(4, 1)[0]))
    torch.manual_seed(1)
    step_of(model, accumulate=4)(zip(x.chunk(4), y.chunk(4)))
    torch.manual_seed(1)
    stream = iter([*groups_of(4, 1)[0], batch(99)])
    step_of(other, accumulate=4)(stream)
    assert_equal(model, other)
    assert len(list(stream)) == 1


@pytest.mark.parametrize("given", [[batch(0)], [batch(i) for i in range(3)], iter([batch(0)])])
def test_wrong_number_of_micro_batches_changes_nothing(given):
    model = make()
    step = step_of(model, accumulate=2)
    with pytest.raises(ValueError, match=r"accumulate=2 takes 2 micro-batches, not [13]"):
        step(given)
    assert_equal(model, make())
    assert step.steps == 0


@pytest.mark.parametrize("given", [torch.ones(2, 32), {"x": 1, "y": 2}, 7])
def test_one_batch_is_not_taken_for_micro_batches(given):
    with pytest.raises(
        TypeError, match=rf"takes an iterable of 2 .*not one {type(given).__name__}"
    ):
        step_of(make(), accumulate=2)(given)


def test_many_micro_batches_without_clipping_warn():
    with pytest.warns(UserWarning, match="accumulate=9 without clipping"):
        step_of(make(), accumulate=9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step_of(make(), accumulate=9, clip=1.0)
        step_of(make(), accumulate=8)


# ---- losses and gradients


@pytest.mark.parametrize(
    ("loss_fn", "error", "text"),
    [
        (lambda model, b: model(b[0]), ValueError, r"a scalar, not shape \(8, 16\)"),
        (lambda model, b: (model(b[0]).mean(), 1), TypeError, "the loss alone, not tuple"),
        (lambda model, b: 3.0, TypeError, "the loss alone, not float"),
        (lambda model, b: model(b[0]).detach().mean(), ValueError, "does not depend on"),
    ],
)
def test_bad_losses_are_named(loss_fn, error, text):
    with pytest.raises(error, match=text):
        step_of(make(), loss_fn=loss_fn)(batch(0))


def test_gradients_are_released_also_after_a_failure():
    model = make()

    def fails_late(run, each):
        if each is None:
            raise RuntimeError("late")
        return loss_of(run, each)

    step = step_of(model, loss_fn=fails_late, accumulate=2)
    step([batch(0), batch(1)])
    assert all(p.grad is None for p in model.parameters())
    before = copy.deepcopy(model.state_dict()["first.weight"])
    with pytest.raises(RuntimeError, match="late"):
        step([batch(0), None])
    assert all(p.grad is None for p in model.parameters())
    assert torch.equal(model.first.weight, before)


def test_mean_of_half_losses_is_summed_in_fp32():
    model = make()
    step = step_of(
        model, loss_fn=lambda run, x: run(x[0]).mean().abs(), accumulate=3, dtype=torch.bfloat16
    )
    assert step([batch(i) for i in range(3)]).dtype is torch.float32


# ---- precision


def test_auto_is_bf16_where_the_hardware_has_it(monkeypatch):
    for has, dtype in ((True, torch.bfloat16), (False, torch.float16)):
        monkeypatch.setattr(_torch, "has_bf16", lambda device, has=has: has)
        step = step_of(make())
        assert step.dtype is dtype
        assert (step.scaler is None) == has
    assert isinstance(step.scaler, mpopt.GradScaler)
    assert step_of(make(), dtype=torch.bfloat16, scaler=mpopt.GradScaler("cpu")).scaler
    assert step_of(make(), dtype=torch.float16, scaler=None).scaler is None


def test_probe_answers_for_every_device():
    assert _torch.has_bf16("cpu") == torch.ops.mkldnn._is_mkldnn_bf16_supported()
    assert _torch.has_bf16("meta") is False


def test_half_gradients_are_on_unless_they_are_added_or_the_user_says_no():
    for accumulate, chosen, expected in ((1, None, True), (2, None, False), (1, False, False)):
        model = make()
        optimizer = optim.AdamW(model.parameters())
        if chosen is not None:
            optimizer.half_gradients = chosen
        assert step_of(model, optimizer, accumulate=accumulate).optimizer is optimizer
        assert optimizer.half_gradients is expected


class Overflowing(Callback):
    """Puts a value that is not finite into a gradient of chosen steps."""

    def __init__(self, steps):
        self.steps = steps

    def on_gradients(self, metrics):
        if metrics.step in self.steps:
            metrics.optimizer.param_groups[0]["params"][2].grad.view(-1)[3] = float("inf")


@pytest.mark.parametrize("accumulate", [1, 2])
def test_overflow_skips_the_step(accumulate):
    model = make()
    scaler = mpopt.GradScaler("cpu", **FIGURES)
    step = step_of(
        model,
        dtype=torch.float16,
        scaler=scaler,
        accumulate=accumulate,
        callbacks=[Overflowing({2})],
    )
    groups = groups_of(accumulate, 3)
    train(step, groups[:1])
    before = [p.detach().clone() for p in model.parameters()]
    state = copy.deepcopy(step.optimizer.state_dict()["state"])
    train(step, groups[1:2])
    assert all(map(torch.equal, model.parameters(), before))
    for index, values in step.optimizer.state_dict()["state"].items():
        assert all(torch.equal(value, state[index][key]) for key, value in values.items())
    assert (scaler.get_scale(), step.optimizer.skipped_steps, step.steps) == (512.0, 1, 2)
    train(step, groups[2:])
    assert not torch.equal(model.first.weight, before[0])


# ---- save and resume


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_resumed_run_is_the_uninterrupted_one(dtype):
    groups = groups_of(2, 6)

    def start():
        model = make()
        scaler = mpopt.GradScaler("cpu", **FIGURES) if dtype is torch.float16 else None
        return model, step_of(
            model,
            dtype=dtype,
            scaler=scaler,
            accumulate=2,
            clip=0.5,
            callbacks=[Overflowing({2, 5} if scaler else set())],
        )

    model, step = start()
    losses = train(step, groups[:3])
    saved = io.BytesIO()
    torch.save((model.state_dict(), step.state_dict(), torch.get_rng_state()), saved)
    losses += train(step, groups[3:])

    other, resumed = start()
    saved.seek(0)
    weights, state, random = torch.load(saved, weights_only=True)
    other.load_state_dict(weights)
    resumed.load_state_dict(state)
    torch.set_rng_state(random)
    again = train(resumed, groups[3:])
    assert all(map(torch.equal, again, losses[3:]))
    assert_equal(model, other)
    assert resumed.steps == step.steps == 6
    if dtype is torch.float16:
        assert resumed.scaler.state_dict() == step.scaler.state_dict()


def test_states_that_do_not_fit_are_named():
    plain = step_of(make(), dtype=torch.bfloat16)
    scaled = step_of(make(), dtype=torch.float16)
    with pytest.raises(ValueError, match="has optimizer, scaler, step, not optimizer, step"):
        scaled.load_state_dict(plain.state_dict())
    with pytest.raises(ValueError, match="has optimizer, step, not optimizer, scaler, step"):
        plain.load_state_dict(scaled.state_dict())


# ---- arguments


@pytest.mark.parametrize(
    ("kwargs", "error", "text"),
    [
        ({"clip": -1.0}, ValueError, "clip must not be negative"),
        ({"clip": float("nan")}, ValueError, "clip must not be negative, not nan"),
        ({"accumulate": 0}, ValueError, "accumulate must be a number of micro-batches, not 0"),
        ({"accumulate": True}, ValueError, "accumulate must be"),
        ({"dtype": torch.int8}, ValueError, "dtype must be .* not torch.int8"),
        ({"dtype": "bf16"}, ValueError, "dtype must be .* not 'bf16'"),
        ({"scaler": 1024.0}, TypeError, "scaler must be .* not 1024.0"),
        ({"callbacks": Callback()}, TypeError, r"give callbacks=\[...\]"),
        ({"callbacks": [print]}, TypeError, "derives from mpopt.callbacks.Callback"),
    ],
)
def test_bad_arguments_are_named(kwargs, error, text):
    with pytest.raises(error, match=text):
        step_of(make(), **kwargs)


def test_bad_models_and_optimizers_are_named():
    with pytest.raises(TypeError, match=r"model must be a torch.nn.Module, not function"):
        TrainStep(loss_of, loss_of, optim.SGD(make().parameters()))
    with pytest.raises(ValueError, match="no parameters"):
        TrainStep(nn.ReLU(), loss_of, optim.SGD(make().parameters()))
    with pytest.raises(TypeError, match=r"optimizer must be a torch.optim.Optimizer"):
        step_of(make(), [1])
    with pytest.raises(MpoptError, match=r"cannot fuse .*RMSprop"):
        step_of(make(), torch.optim.RMSprop(make().parameters()))
    with pytest.raises(MpoptError, match="updates no parameter of the model"):
        step_of(make(), optim.SGD(make().parameters()))


def test_offload_is_plain_on_the_cpu_and_refused_elsewhere():
    model, other = make(), make()
    for trained, offload in ((model, True), (other, False)):
        torch.manual_seed(1)
        step = step_of(trained, offload=offload)
        step(batch(0))
        state = step.optimizer.state_dict()["state"]
        assert all(v.device.type == "cpu" for values in state.values() for v in values.values())
    assert_equal(model, other)
    with pytest.raises(MpoptError, match="offload is not supported yet for parameters on meta"):
        step_of(make().to("meta"), offload=True)


def test_closed_step_says_so():
    with step_of(make()) as step:
        step(batch(0))
    with pytest.raises(MpoptError, match="this TrainStep is closed"):
        step(batch(0))
    step.close()


def test_step_and_callbacks_are_exported():
    assert mpopt.TrainStep is TrainStep
    assert mpopt.callbacks.Callback is Callback
