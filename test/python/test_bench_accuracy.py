"""`accuracy` and `placement --measured`: what their rows and tables say."""

from __future__ import annotations

import math

import pytest
from mpopt.bench import __main__ as command
from mpopt.bench import accuracy, measured
from mpopt.bench._markdown import marks
from mpopt.bench.rows import Row, read_json, write_json
from mpopt.bench.runner import Runner
from mpopt.bench.variants import VARIANTS


def _row(variant, metric, value, family="llama", n=1):
    return Row("accuracy", family, variant, "training", metric, value, "ratio", n)


def test_a_curve_is_the_mean_of_each_tenth():
    curve = accuracy.curve_of([float(i) for i in range(100)])
    assert curve == [4.5 + 10 * i for i in range(10)]
    assert accuracy.curve_of([3.0, 5.0]) == [3.0, 5.0]


def test_ranges_of_curves_overlap_where_they_share_a_point():
    stock = [[5.0, 4.0, 3.0], [6.0, 5.0, 4.0]]
    assert accuracy.overlap(stock, stock) == 1
    assert accuracy.overlap([[6.0, 5.1, 3.5], [7.0, 6.0, 3.6]], stock) == pytest.approx(2 / 3)
    assert accuracy.overlap([[9.0] * 3, [8.0] * 3], stock) == 0


def test_distances_are_of_the_same_seed_and_between_seeds():
    stock = [[2.0, 1.0], [4.0, 2.0]]
    assert accuracy.distance(stock, stock) == 0
    assert accuracy.distance([[2.2, 1.0], [4.0, 2.0]], stock) == pytest.approx(0.1 / 4)
    assert accuracy.seed_distance(stock) == pytest.approx((0.5 + 0.5 + 1 + 1) / 4)
    assert accuracy.seed_distance(stock[:1]) == 0


def _all_rows():
    errors = {"stock": 2e-3, "strict": 1.9e-3, "precise": 1e-3, "relaxed": 2.1e-3}
    rows = [_row(level, "grad_error", value) for level, value in errors.items()]
    stock = [[2.0, 1.0], [2.2, 1.1]]
    for level in errors:
        rows += accuracy.curve_rows("llama", level, stock, stock, 500)
    return rows


def test_page_is_written_from_rows_in_a_file(tmp_path, capsys):
    page, file = tmp_path / "page.md", tmp_path / "rows.json"
    begin, end = marks("accuracy")
    page.write_text(f"above\n{begin}\nold\n{end}\nbelow\n")
    write_json(_all_rows(), str(file))
    assert command.main(["accuracy", "--rows", str(file), "--markdown", str(page)]) == 0
    text = page.read_text()
    assert text.startswith("above\n") and text.endswith("below\n") and "old" not in text
    wanted = "| llama | 2.00e-03 | 1.90e-03 (x 0.950) | 1.00e-03 (x 0.500) | 2.10e-03 (x 1.050) |"
    assert wanted in text
    assert "Loss curves of 500 steps over 2 seeds" in text
    assert "| llama | 9.55% / 1.05 | 0.00% / 10 / 1.05 |" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rows", "x.json"], "--rows wants --markdown"),
        (["--family", "llama", "--steps", "-1"], "--steps must be 0 or more"),
        (["--family", "llama", "--seeds", "0"], "--seeds must be 1 or more"),
        (["--family", "llama", "--measured"], "--measured concerns placement, not accuracy"),
    ],
)
def test_bad_arguments_are_named(arguments, message, capsys):
    assert command.main(["accuracy", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_rows_of_another_command_are_refused(tmp_path, capsys):
    page, file = tmp_path / "page.md", tmp_path / "rows.json"
    page.write_text("\n".join(marks("accuracy")))
    write_json([Row("casts", "llama", "x", "forward", "m", math.nan, "bytes")], str(file))
    assert math.isnan(read_json(str(file))[0].value)
    assert command.main(["accuracy", "--rows", str(file), "--markdown", str(page)]) == 2
    assert "has no rows of accuracy" in capsys.readouterr().err
    file.write_text('[{"no": "row"}]')
    assert command.main(["accuracy", "--rows", str(file), "--markdown", str(page)]) == 2
    assert "no row of a benchmark" in capsys.readouterr().err


def test_a_restart_trains_as_a_new_runner_does():
    """Weights, batch and optimizer of the seed; gradients of before do not count."""
    variant = VARIANTS["eager-autocast-bf16"]
    runner = Runner("lstm", "tiny", variant, rate=1e-3)
    for _ in range(3):
        runner.step()
    runner.backward(runner.forward())
    runner.restart(1)
    fresh = Runner("lstm", "tiny", variant, seed=1, rate=1e-3)
    for _ in range(3):
        runner.step()
        fresh.step()
        assert runner.last_loss == fresh.last_loss


@pytest.mark.slow
def test_levels_of_a_family_are_as_good_as_stock():
    rows = accuracy.measure_accuracy(
        "llama", "tiny", steps=20, seeds=2, options={}, say=lambda text: None
    )
    values = {(r.variant, r.metric): r.value for r in rows}
    stock = values["stock", "grad_error"]
    assert values["precise", "grad_error"] <= stock
    assert values["relaxed", "grad_error"] <= 1.10 * stock
    for level in ("precise", "relaxed"):
        assert values[level, "distance"] < values["stock", "seed_distance"]
        assert values[level, "overlap"] == 1


@pytest.mark.slow
def test_model_and_compiler_agree_on_what_is_saved():
    rows = measured.measure_model("llama", "tiny", lambda text: None)
    values = {(r.variant, r.metric): r.value for r in rows}
    for level in measured.LEVELS:
        assert values[level, "saved_bytes.ratio"] == 1
        assert 0.9 <= values[level, "pointwise_bytes.ratio"] <= 1.1
