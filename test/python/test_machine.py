"""`mpopt calibrate` and the choice of a cost model. Nothing here asserts a time."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import ClassVar

import pytest
import torch
from mpopt import commands, log, machine, native
from mpopt.errors import MpoptError
from mpopt.machine import measure, probes
from mpopt.machine.probes import Sizes
from mpopt.options import Options, resolve

TINY = Sizes(side=16, large=24, sweep=1 << 16, caches=(1 << 12, 1 << 14))


@pytest.fixture(autouse=True)
def _tiny(monkeypatch):
    """Measurements as small as can be; classes of the built-in model stay."""
    monkeypatch.setattr(Sizes, "of", classmethod(lambda cls, device: TINY))


def figures(model):
    """All numbers in a model, by path."""
    for key, value in model.items():
        if isinstance(value, list) and key == "caches":
            for item in value:
                yield from figures(item)
        elif isinstance(value, dict):
            yield from ((f"{key}.{path}", number) for path, number in figures(value))
        elif isinstance(value, int | float):
            yield key, value


def test_a_file_that_loads(tmp_path, capsys):
    path = tmp_path / "model.json"
    assert commands.main(["calibrate", "--device=cpu", "--seconds=0.1", f"--out={path}"]) == 0
    model = json.loads(path.read_text())
    base = json.loads(native.load().cost_model_text(machine.auto_name("cpu")))
    assert model["name"] == base["name"] + "-measured"
    assert model["classes"] == base["classes"]
    assert set(model["types"]) == {"f32", "bf16", "f16"}
    for name, row in model["types"].items():
        assert set(row["rates"]) == {c["name"] for c in base["classes"]}
        assert row.get("tile") == base["types"][name].get("tile")
    assert all(math.isfinite(number) and number > 0 for _, number in figures(model))
    assert "mpopt calibrate" in model["source"]["figures"]
    loaded = native.load().CostModel.load(str(path))
    assert loaded.bandwidth == model["bandwidth"] and loaded.launch == model["launch"]
    captured = capsys.readouterr()
    assert captured.out == "" and "x f32 at 1x1024x1024" in captured.err


def test_standard_output(capsys):
    assert commands.main(["calibrate", "--device=cpu", "--seconds=0.05"]) == 0
    text = capsys.readouterr().out
    assert native.load().CostModel.parse(text, "out").device == "cpu"
    assert max(map(len, text.splitlines())) < 200


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--seconds=0"], "--seconds must be positive, not 0"),
        (["--seconds=nan"], "--seconds must be positive, not nan"),
        (["--secnds=1"], "unexpected '--secnds=1'; did you mean '--seconds'?"),
        (["--device=gpu"], "invalid choice: 'gpu'"),
        (["--out=nowhere/model.json"], "nowhere/model.json: cannot write: No such file"),
    ],
)
def test_mistakes(capsys, words, message):
    assert commands.main(["calibrate", *words]) == commands.BAD_INPUT
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_no_gpu():
    with pytest.raises(MpoptError, match="PyTorch sees no GPU here"):
        measure.measure("cuda", seconds=1)


def test_rounds_are_shared(monkeypatch):
    """Every figure has a sample of each round, and the bar only moves forward."""
    said: list[tuple[str, float]] = []
    runs = []
    fit = measure._Run.fit
    monkeypatch.setattr(measure._Run, "fit", lambda self: runs.append(self) or fit(self))
    measure.measure("cpu", seconds=0.05, say=lambda text, done: said.append((text, done)))
    counts = {len(probe.samples) for probe in runs[0].probes.values()}
    assert len(counts) == 1 and counts.pop() >= measure.LEAST_ROUNDS
    shares = [done for _, done in said]
    assert shares == sorted(shares)
    assert any("rate bf16 recurrent" in text for text, _ in said)


class Exact:
    """A probe of a machine with exact figures, which every third sample misses by far."""

    RATES: ClassVar = {"f32": 1e9, "bf16": 4e9, "f16": 2e9}
    LAUNCH, BANDWIDTH = 1e-6, 1e11

    def __init__(self, work):
        self.seconds, self.samples = self.LAUNCH + work, []

    def warm_up(self):
        return self.seconds

    def sample(self):
        self.samples.append(self.seconds * (100 if len(self.samples) % 3 == 1 else 1))


def test_a_known_machine_is_found_again(monkeypatch):
    base = json.loads(native.load().cost_model_text(machine.auto_name("cpu")))

    def matmul(device, name, shape):
        tile = base["types"][name].get("tile", [1, 1, 1])
        return Exact(probes.work(shape, {}, tile) / Exact.RATES[name])

    def sweep(device, total):
        return Exact(total / Exact.BANDWIDTH)

    monkeypatch.setattr(probes, "matmul", matmul)
    monkeypatch.setattr(probes, "sweep", sweep)
    monkeypatch.setattr(probes, "read", sweep)
    monkeypatch.setattr(probes, "cast", lambda device, pair, total: sweep(device, total))
    monkeypatch.setattr(measure, "_CALLS", 1e-6)  # no product is too slow
    sizes = Sizes(side=256, large=512, sweep=1 << 24)
    model = measure.measure("cpu", seconds=0.01, sizes=sizes)
    loaded = native.load().CostModel.parse(json.dumps(model), "model")
    assert loaded.bandwidth == pytest.approx(Exact.BANDWIDTH, rel=0.01)
    assert loaded.launch == pytest.approx(Exact.LAUNCH, rel=0.02)
    assert loaded.cast_seconds("f32", "bf16", 10**6) == pytest.approx(6e6 / 1e11 + 1e-6, rel=0.01)
    for name in Exact.RATES:
        for row in model["classes"]:
            shape = probes.shape_for(row, sizes, last=row is model["classes"][-1])
            truth = matmul("cpu", name, shape).seconds
            assert loaded.matmul_seconds(name, *shape) == pytest.approx(truth, rel=0.01)
    assert loaded.half_pays("bf16", "f32", 1, 512, 512, 512)[1] == pytest.approx(4, rel=0.01)
    assert not loaded.half_pays("bf16", "f32", 1, 1, 4, 4)[0]  # nothing but its launch


def test_slow_products_are_measured_smaller(monkeypatch):
    shapes = []

    def matmul(device, name, shape):
        shapes.append((name, shape))
        return Exact(2 * math.prod(shape) / 1e6)

    monkeypatch.setattr(probes, "matmul", matmul)
    sizes = Sizes(side=16, large=64, sweep=1 << 16)
    model = measure.measure("cpu", seconds=0.1, sizes=sizes)
    assert shapes.count(("f32", (1, 128, 128, 128))) == 0
    assert max(max(shape[1:]) for _, shape in shapes) == 64
    assert model["types"]["f32"]["rates"]["large"] == pytest.approx(1e6, rel=0.05)


def test_auto_is_the_machine(monkeypatch):
    names = native.load().cost_models()
    assert machine.auto_name("cpu") in names and machine.auto_name("cpu").startswith("cpu-")
    assert machine.resolve("auto", "cpu") == machine.auto_name("cpu")
    assert machine.resolve("sm_90", "cpu") == "sm_90"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (10, 3))
    assert machine.auto_name("cuda") == "sm_100"


def test_a_guess_is_counted_and_said_once(monkeypatch, caplog):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (7, 5))
    monkeypatch.setattr(log, "counters", Counter())
    with pytest.raises(MpoptError, match=r"no cost model for GPUs of compute capability 7\.5; mea"):
        machine.auto_name("cuda")
    monkeypatch.delenv("MPOPT_STRICT")
    with caplog.at_level("WARNING", logger="mpopt.fallback"):
        assert machine.auto_name("cuda") == machine.auto_name("cuda") == "sm_80"
    assert log.counters["cost_model_guesses"] == 2
    assert [record.getMessage().split(";")[1] for record in caplog.records] == [" taking sm_80"]


def test_digest_follows_the_content(tmp_path):
    path = tmp_path / "model.json"
    text = native.load().cost_model_text("sm_90")
    path.write_text(text)
    before = resolve({"cost_model": path}).digest()
    path.write_text(text.replace('"launch": 2e-06', '"launch": 3e-06'))
    after = resolve({"cost_model": path}).digest()
    assert before != after != Options().digest()
