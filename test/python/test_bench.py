"""The benchmark: its families, rows, errors, and counts that can be derived by hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from mpopt.bench import __main__ as cli
from mpopt.bench import instrument, scale, update
from mpopt.bench._errors import BenchError, UsageError, require
from mpopt.bench.casts import kernel_metrics, measure_casts, saved_bytes
from mpopt.bench.child import run_child
from mpopt.bench.families import FAMILIES, build, build_inference
from mpopt.bench.reference import Reference, reference
from mpopt.bench.rows import Row, to_json, write_json
from mpopt.bench.runner import Runner, StepTimes, every_variant_compiled
from mpopt.bench.step import interleave, speedups, spread
from mpopt.bench.variants import VARIANTS, parse_variants
from torch import nn

FIELDS = ["command", "family", "variant", "phase", "metric", "value", "unit", "n"]
PACKAGES = {
    "gpt2": "transformers",
    "llama": "transformers",
    "bert": "transformers",
    "vit": "timm",
    "resnet50": "torchvision",
}


def need(family: str) -> None:
    if family in PACKAGES:
        pytest.importorskip(PACKAGES[family])


class TwoLayers(nn.Module):
    """Linear, tanh, linear: [4, 64] -> scalar. No bias, so that each cast is of a matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(64, 128, bias=False)
        self.second = nn.Linear(128, 32, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x).tanh()).float().square().sum()


@pytest.fixture
def two_layers() -> tuple[TwoLayers, torch.Tensor]:
    torch.manual_seed(0)
    return TwoLayers(), torch.randn(4, 64)


def recorded(model: nn.Module, x: torch.Tensor, dtype: torch.dtype | None):
    instrument.reset()
    with instrument.record_kernels() as kernels:
        with torch.autocast("cpu", dtype or torch.bfloat16, enabled=dtype is not None):
            loss = torch.compile(model)(x)
        loss.backward()
    return kernels


# ---- families


@pytest.mark.parametrize("family", FAMILIES)
def test_family_gives_scalar_loss_and_gradients(family):
    need(family)
    module, batch = build(family, "tiny")
    loss = module(*batch)
    assert loss.shape == ()
    assert loss.dtype is torch.float32
    loss.backward()
    missing = [n for n, p in module.named_parameters() if p.grad is None]
    assert missing == []


@pytest.mark.parametrize("family", FAMILIES)
def test_family_is_reproducible_and_leaves_random_state_alone(family):
    need(family)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    one, batch = build(family, "tiny", seed=3)
    assert torch.equal(torch.rand(3), expected)
    two, again = build(family, "tiny", seed=3)
    other, _ = build(family, "tiny", seed=4)
    assert all(torch.equal(a, b) for a, b in zip(batch, again, strict=True))
    assert torch.equal(one(*batch), two(*batch))
    assert not torch.equal(one(*batch), other(*batch))


@pytest.mark.parametrize("family", FAMILIES)
def test_inference_has_the_same_weights_and_gives_logits(family):
    need(family)
    trained, _ = build(family, "tiny")
    module, inputs = build_inference(family, "tiny")
    assert not module.training
    weights = dict(module.named_parameters())
    for name, weight in trained.named_parameters():
        assert torch.equal(weight, weights[name])
    logits = module(*inputs)
    assert logits.is_floating_point()
    assert logits.shape[0] == inputs[0].shape[0]
    assert logits.dim() >= 2


def test_lstm_layer_computes_what_torch_does():
    from mpopt.bench.families._lstm import LSTMLayer

    layer, stock = LSTMLayer(16), nn.LSTM(16, 16, batch_first=True)
    names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    stock.load_state_dict({f"{name}_l0": getattr(layer, name).detach() for name in names})
    x = torch.randn(3, 5, 16)
    torch.testing.assert_close(layer(x), stock(x)[0], rtol=1e-5, atol=1e-6)


def test_missing_package_is_named():
    with pytest.raises(BenchError, match="pip install no_such_package"):
        require("no_such_package", "family 'x'")


# ---- names and rows


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["cats", "--family", "gpt2"], "unknown command 'cats'; did you mean 'casts'?"),
        (["casts", "--family", "gtp2"], "unknown family 'gtp2'; did you mean 'gpt2'?"),
        (["casts", "--family", "gpt2,lama"], "unknown family 'lama'; did you mean 'llama'?"),
        (
            ["casts", "--family", "gpt2", "--variant", "compile-autocast-bf15"],
            "did you mean 'compile-autocast-bf16'?",
        ),
        (["casts", "--family", "gpt2", "--numerics", "strict"], "concern mpopt variants"),
        (["casts", "--family", "gpt2", "--variant", "mpopt-fp32", "--option", "x"], "KEY=VALUE"),
        (["casts"], "--family"),
        (["step", "--family", "gpt2", "--rounds", "0"], "--rounds must be positive"),
        (
            ["casts", "--family", "gpt2", "--rounds", "0"],
            "--rounds concerns step and update and gemm, not casts",
        ),
        (["step", "--family", "gpt2", "--nodes", "9"], "--nodes concerns scale, not step"),
        (["scale", "--family", "gpt2", "--malloc", "stock"], "--malloc concerns step"),
        (["compile", "--family", "gpt2", "--variant", "eager-fp32"], "compiles nothing"),
    ],
)
def test_bad_argument_is_one_line_and_exit_code_2(capsys, arguments, text):
    assert cli.main(arguments) == 2
    message = capsys.readouterr().err
    assert message.startswith("error: ")
    assert text in message
    assert message.count("\n") == 1


def test_variants_are_the_twelve_documented():
    precisions = ("fp32", "autocast-bf16", "autocast-fp16", "pure-bf16")
    expected = {f"{mode}-{p}" for mode in ("eager", "compile", "mpopt") for p in precisions}
    assert set(VARIANTS) == expected
    variant = VARIANTS["mpopt-autocast-fp16"]
    assert (variant.backend, variant.autocast) == ("mpopt", torch.float16)
    assert VARIANTS["compile-pure-bf16"].weights is torch.bfloat16
    with pytest.raises(UsageError, match="twice"):
        parse_variants("eager-fp32,eager-fp32")


def test_rows_are_tidy_json(tmp_path, capsys):
    rows = [
        Row("casts", "vit", "eager-fp32", "forward", "saved_bytes", 12.0, "bytes"),
        Row("casts", "vit", "eager-fp32", "backward", "grad_error", float("nan"), "ratio"),
    ]
    records = json.loads(to_json(rows))
    assert [list(r) for r in records] == [FIELDS, FIELDS]
    assert records[0]["value"] == 12.0
    assert records[1]["value"] is None
    write_json(rows, str(tmp_path / "rows.json"))
    write_json(rows, "-")
    assert (tmp_path / "rows.json").read_text() == capsys.readouterr().out
    assert json.loads(to_json([])) == []


# ---- counts that can be derived by hand


def test_kernels_of_two_layers(two_layers):
    """Autocast casts x and both weights forward, and widens both weight gradients backward."""
    model, x = two_layers
    kernels = recorded(model, x, torch.bfloat16)
    casts = sorted((k.phase, k.role, k.bytes) for k in kernels if k.role is not None)
    x_size, first, second = 4 * 64, 128 * 64, 32 * 128
    assert casts == sorted(
        [
            ("forward", "activation", x_size * (4 + 2)),
            ("forward", "weight", first * (4 + 2)),
            ("forward", "weight", second * (4 + 2)),
            ("backward", "gradient", first * (2 + 4)),
            ("backward", "gradient", second * (2 + 4)),
        ]
    )
    forward = kernel_metrics(kernels, "forward")
    assert forward["cast_only_kernels"] == (3, "kernels")
    assert forward["cast_only_bytes"] == ((x_size + first + second) * 6, "bytes")
    assert forward["cast_only_kernels.weight"] == (2, "kernels")
    backward = kernel_metrics(kernels, "backward")
    assert backward["cast_only_kernels.gradient"] == (2, "kernels")
    # Forward loops besides the casts: tanh in bf16, and the sum of 4×32 bf16 values' squares.
    tanh, total = 4 * 128 * (2 + 2), 4 * 32 * 2 + 4
    assert forward["pointwise_bytes"][0] == (x_size + first + second) * 6 + tanh + total


def test_fp32_has_no_cast(two_layers):
    model, x = two_layers
    kernels = recorded(model, x, None)
    assert kernels
    assert [k for k in kernels if k.role is not None] == []


def test_recording_sees_code_that_the_caches_hold(two_layers):
    model, x = two_layers
    first = recorded(model, x, torch.bfloat16)
    assert [k.bytes for k in recorded(model, x, torch.bfloat16)] == [k.bytes for k in first]


def test_copy_to_another_place_is_no_cast():
    def transposed_round_trip(x):
        return x.float().t().contiguous().to(torch.bfloat16)

    instrument.reset()
    with instrument.record_kernels() as kernels:
        torch.compile(transposed_round_trip)(torch.randn(8, 32).bfloat16())
    assert [k.role for k in kernels if not k.extern] == [None]


@pytest.mark.parametrize("compiled", [False, True])
def test_saved_bytes_leave_out_parameters_and_inputs(two_layers, compiled):
    """In fp32 backward needs tanh's output, the squared output and nothing else of its own."""
    model, x = two_layers

    class Fixed:
        def __init__(self):
            self.model, self.batch = model, (x,)
            self.run = torch.compile(model) if compiled else model

        def forward(self):
            return self.run(x)

        def half_weights(self):
            return []

    runner = Fixed()
    runner.forward().backward()
    assert saved_bytes(runner) == (4 * 128 + 4 * 32) * 4


def test_gpt2_weight_casts_are_those_of_its_linear_layers():
    hf = pytest.importorskip("transformers.pytorch_utils")
    model, _ = build("gpt2", "tiny")
    linears = [m for m in model.modules() if isinstance(m, nn.Linear | hf.Conv1D)]
    biases = [m for m in linears if m.bias is not None]
    report = measure_casts("gpt2", "tiny", VARIANTS["compile-autocast-bf16"])
    weights = [k for k in report.kernels if k.phase == "forward" and k.role == "weight"]
    assert len([k for k in weights if len(k.shape) == 2]) == len(linears)
    assert len([k for k in weights if len(k.shape) == 1]) == len(biases)
    value = {(r.phase, r.metric): r.value for r in report.rows}
    assert value["forward", "cast_only_kernels.weight"] == len(linears) + len(biases)
    assert value["forward", "graphs"] == 1
    # bf16 has 8 bits: a relative error beyond 2^-5 would be no rounding error.
    assert 0 < value["forward", "loss_error"] < 2**-8
    assert 2**-12 < value["backward", "grad_error"] < 2**-5


# ---- errors against fp64


def test_reference_is_fp64_throughout():
    """RMSNorm, rotary angles and the loss of Llama ask for fp32; the reference must not obey."""
    pytest.importorskip("transformers")
    exact = reference("llama", "tiny")
    fp32 = Runner("llama", "tiny", VARIANTS["eager-fp32"])
    loss = fp32.forward()
    fp32.backward(loss)
    assert 0 <= exact.loss_error(loss.item()) < 1e-6
    assert 1e-9 < exact.grad_error(fp32.gradients()) < 1e-5
    model, batch = build("llama", "tiny")
    model = model.double()
    half_hearted = model(*batch)  # fp64 weights, but fp32 norms
    assert half_hearted.item() != exact.loss
    assert exact.loss_error(half_hearted.item()) < 1e-6


def test_grad_error_is_the_relative_norm():
    exact = Reference(2.0, {"a": torch.tensor([3.0]).double(), "b": torch.tensor([4.0]).double()})
    assert exact.loss_error(1.0) == 0.5
    assert exact.grad_error({"a": torch.tensor([3.0]), "b": torch.tensor([4.5])}) == 0.1
    with pytest.raises(KeyError):
        exact.grad_error({"a": torch.tensor([3.0])})


def test_fp16_gradients_are_unscaled():
    plain = Runner("lstm", "tiny", VARIANTS["eager-fp32"])
    plain.backward(plain.forward())
    half = Runner("lstm", "tiny", VARIANTS["eager-autocast-fp16"])
    half.backward(half.forward())
    exact = Reference(1.0, plain.gradients())
    assert exact.grad_error(half.gradients()) < 2**-7


# ---- step and compile


class Clocked:
    """A runner whose steps take what the test says, and that notes who ran when."""

    def __init__(self, name, log, milliseconds):
        self.name, self.log, self.milliseconds = name, log, milliseconds

    def step(self):
        self.log.append(self.name)
        return StepTimes(self.milliseconds, 0.0, 0.0)


def test_half_weights_count_as_inputs_and_are_reported():
    report = measure_casts("gpt2", "tiny", VARIANTS["mpopt-autocast-bf16"])
    stock = measure_casts("gpt2", "tiny", VARIANTS["compile-autocast-bf16"])

    def value(rows, metric):
        return sum(r.value for r in rows if r.metric == metric)

    assert value(report.rows, "half_weight_bytes") > 0
    assert value(stock.rows, "half_weight_bytes") == 0
    assert value(report.rows, "cast_only_kernels.weight") == 0
    assert value(report.rows, "cast_only_kernels.gradient") == 0
    assert value(report.rows, "grad_error") == pytest.approx(value(stock.rows, "grad_error"), 1e-6)


def test_update_ways_agree_and_rows_say_how_near_the_floor_is():
    rows = update.measure_update(0.2, "bf16", rounds=1, compiled=False, say=lambda text: None)
    metrics = {(r.variant, r.metric) for r in rows}
    assert ("mpopt-bf16", "share_of_floor") in metrics
    assert ("fused-bf16", "ratio_to_mpopt") in metrics
    assert update.floor_bytes(torch.bfloat16) == 30
    assert len(update.shapes(50)) == 148


def test_update_that_computes_something_else_is_an_error(monkeypatch):
    monkeypatch.setattr(update.Ours, "step", lambda self: None)
    with pytest.raises(BenchError, match="mpopt computes something else"):
        update.measure_update(0.1, "bf16", rounds=1, compiled=False, say=lambda text: None)


def test_code_that_many_variants_share_is_compiled_for_each():
    compiled = []

    def backend(number):
        def compile_graph(graph, inputs):
            compiled.append(number)
            return graph.forward

        return compile_graph

    def double(x):
        return x + x

    with every_variant_compiled():
        for number in range(12):
            torch.compile(double, backend=backend(number))(torch.ones(3))
    assert compiled == list(range(12))


def test_rounds_interleave_and_rotate():
    log: list[str] = []
    runners = {name: Clocked(name, log, ms) for name, ms in (("a", 2.0), ("b", 1.0))}
    times = interleave(runners, rounds=3, seconds=1e9)
    assert log == ["a", "b", "b", "a", "a", "b", "b", "a"]
    assert {name: len(t) for name, t in times.items()} == {"a": 3, "b": 3}
    assert speedups(times, "a") == {"a": (1.0, 1.0), "b": (2.0, 2.0)}
    assert len(interleave(runners, rounds=100, seconds=0)["a"]) == 3


def test_spread_has_median_minimum_and_quartiles():
    assert spread([1.0, 2.0, 3.0, 4.0, 10.0]) == {"": 3.0, ".min": 1.0, ".q1": 2.0, ".q3": 4.0}


def test_step_trains():
    runner = Runner("moe", "tiny", VARIANTS["eager-autocast-bf16"])
    before = runner.forward().item()
    for _ in range(5):
        times = runner.step()
    assert runner.forward().item() < before
    assert times.step == times.forward + times.backward + times.update
    assert min(times.forward, times.backward, times.update) > 0


def test_step_command_writes_rows_without_terminal_codes(tmp_path):
    target = tmp_path / "rows.json"
    root = Path(cli.__file__).parents[2]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mpopt.bench",
            "step",
            "--family",
            "lstm",
            "--size",
            "tiny",
            "--variant",
            "eager-fp32,eager-pure-bf16",
            "--rounds",
            "3",
            "--json",
            str(target),
        ],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    records = json.loads(target.read_text())
    assert all(list(record) == FIELDS for record in records)
    timed = {r["metric"] for r in records if r["variant"] == "eager-fp32"}
    parts = {
        f"{part}_ms{s}"
        for part in ("forward", "backward", "update", "step")
        for s in ("", ".min", ".q1", ".q3")
    }
    assert timed == parts | {"peak_rss_bytes"}
    assert {r["n"] for r in records if r["unit"] == "ms"} == {3}
    peaks = [r["value"] for r in records if r["metric"] == "peak_rss_bytes"]
    assert len(peaks) == 2
    assert all(50e6 < peak < 20e9 for peak in peaks)


def test_failed_child_is_reported_with_its_output():
    with pytest.raises(BenchError, match=r"exit code 1:(.|\n)*no_such_option"):
        run_child("memory", "lstm", "tiny", "mpopt-fp32", {"no_such_option": 1})


def test_compile_child_measures_the_first_step():
    result = run_child("compile", "lstm", "tiny", "eager-fp32", {})
    assert result["first_s"] > 0
    assert result["second_s"] > 0


def test_scale_repeats_a_joint_graph():
    owner, graph = scale.traced("lstm", "tiny", VARIANTS["mpopt-autocast-bf16"])
    twice = scale.repeated(graph, 2)
    assert len(twice.nodes) == 2 * len(graph.nodes) - 1  # one output node
    twice.lint()
    times = scale._seconds(owner, twice)
    assert set(times) == {*scale.STAGES, "total"}
    assert all(value > 0 for value in times.values())


def test_scale_is_about_mpopt():
    variants = [VARIANTS["compile-autocast-bf16"]]
    with pytest.raises(UsageError, match="does not run mpopt"):
        scale.measure_scale("lstm", "tiny", variants, {}, nodes=10, repeats=1, say=print)
