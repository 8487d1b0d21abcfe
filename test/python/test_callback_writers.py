"""What callbacks write: JSON lines, TensorBoard, a progress bar, histograms."""

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
from listening import OVERFLOW, Recorder, Stops, batch, make, step_of
from mpopt import callbacks
from mpopt.callbacks import GradientHistogram, JSONLines, Progress, TensorBoard
from mpopt.callbacks._histogram import Counter
from mpopt.errors import MpoptError

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
