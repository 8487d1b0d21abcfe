"""The program `mpopt` on files that people save: real archives of torch.export.save.

Set MPOPT_TOOL to the program; by default the first one on PATH or in a build folder.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

ROOT = Path(__file__).resolve().parents[2]


def find_tool(name: str = "mpopt", variable: str = "MPOPT_TOOL") -> str:
    """The program under test; skips the tests only where nothing is built."""
    named = os.environ.get(variable)
    if named:
        return named
    built = sorted(ROOT.glob(f"build/*/bin/{name}"), key=lambda path: path.stat().st_mtime)
    found = str(built[-1]) if built else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not built")
    return found


def run(*words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Runs the program and asserts its exit code."""
    done = subprocess.run(
        [find_tool(), *map(str, words)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == code, done.stderr
    return done


def explain(path: Path, *options: str) -> dict[str, Any]:
    """The JSON report of a file."""
    report: dict[str, Any] = json.loads(run("explain", path, "--format=json", *options).stdout)
    return report


class Autocast(nn.Module):
    """Tied weights, nested autocast, no_grad, list results, dict and tuple outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.norm = nn.LayerNorm(8)
        self.up = nn.Linear(8, 16)
        self.down = nn.Linear(16, 8)
        self.head = nn.Linear(8, 11, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("scale", torch.ones(1))

    def forward(self, tokens: torch.Tensor) -> dict[str, Any]:
        x = self.embed(tokens) * self.scale
        with torch.autocast("cpu", dtype=torch.bfloat16):
            h = self.down(nn.functional.gelu(self.up(self.norm(x))))
            with torch.autocast("cpu", enabled=False):
                p = h.float().softmax(-1)
        with torch.no_grad():
            mean = x.mean()
        y = self.head(x + h)
        a, b = torch.split(y, [5, 6], -1)
        return {
            "y": y.masked_fill(y > 3, float("-inf")),
            "p": (p, mean),
            "n": x.shape[1],
            "c": torch.cat([a, b.flip(-1)], -1),
        }


Saver = Callable[[torch.export.ExportedProgram, str], Path]


@pytest.fixture(scope="session")
def save(tmp_path_factory: pytest.TempPathFactory) -> Saver:
    """Saves a program and returns its file."""
    folder = tmp_path_factory.mktemp("archives")

    def saved(program: torch.export.ExportedProgram, name: str) -> Path:
        path = folder / f"{name}.pt2"
        torch.export.save(program, path)
        return path

    return saved


def export_autocast(dynamic: bool) -> torch.export.ExportedProgram:
    """`Autocast` as training IR; batch and length are symbolic if `dynamic`."""
    auto = torch.export.Dim.AUTO
    shapes = {"tokens": {0: auto, 1: auto}} if dynamic else None
    tokens = torch.randint(0, 11, (2, 5))
    return torch.export.export(Autocast().eval(), (tokens,), dynamic_shapes=shapes)


@pytest.fixture(scope="session", params=[False, True], ids=["static", "dynamic"])
def programs(request: pytest.FixtureRequest, save: Saver) -> dict[str, Path]:
    """One model as training IR, functional and core ATen."""
    program = export_autocast(request.param)
    kind = "dynamic" if request.param else "static"
    return {
        "training": save(program, f"{kind}_training"),
        "functional": save(program.run_decompositions({}), f"{kind}_functional"),
        "core": save(program.run_decompositions(), f"{kind}_core"),
    }


def count_casts(path: Path) -> int:
    """Conversions that torch itself sees in the program: a second opinion."""
    graph = torch.export.load(path).graph
    spellings = {torch.ops.aten._to_copy.default, torch.ops.aten.to.dtype}
    return sum(node.target in spellings for node in graph.nodes)


@pytest.mark.parametrize("stage", ["functional", "core"])
def test_explain_counts_what_torch_has(programs: dict[str, Path], stage: str) -> None:
    report = explain(programs[stage])
    before = {name: change["before"]["casts"] for name, change in report["origins"].items()}
    written = sum(count for name, count in before.items() if name != "promotion")
    assert written == count_casts(programs[stage]) == 6
    # Two linears with weight, bias and input; gelu's output is bf16 already.
    assert before["autocast"] == 5
    assert before["user"] == 1
    # Weights 8x16 and 16x8, biases 16 and 8; f32 to bf16 is 6 bytes an element.
    weights = report["roles"]["weight"]["before"]
    assert weights == {"casts": 4, "bytes": (128 + 128 + 16 + 8) * 6, "dynamic": 0}
    assert report["unknown_operators"] == {}


def test_training_ir_reports_implicit_conversions(programs: dict[str, Path]) -> None:
    report = explain(programs["training"])
    assert report["implicit"]["casts"] == 5
    assert report["origins"]["user"]["before"]["casts"] == 1
    text = run("explain", programs["training"]).stdout
    assert "ep.run_decompositions({})" in text
    assert max(map(len, text.splitlines())) <= 100


def test_signature_and_symbols(programs: dict[str, Path]) -> None:
    text = run(programs["training"]).stdout
    dynamic = "dynamic" in programs["training"].name
    assert ("tensor<?x?xi64>" if dynamic else "tensor<2x5xi64>") in text
    assert 'mp.name = "head.weight", mp.role = "parameter"' in text
    assert 'mp.name = "scale", mp.role = "buffer"' in text
    assert 'mp.autocast = "bf16"' in text and 'mp.autocast = "off"' in text
    assert "wrap_with" not in text
    assert "value = 0xFFF0000000000000 : f64" in text  # -inf


def test_rewrites_are_proved(programs: dict[str, Path], tmp_path: Path) -> None:
    before, after = tmp_path / "before.mlirbc", tmp_path / "after.mlir"
    run(programs["core"], "--emit-bytecode", "-o", before)
    run(programs["core"], "--mp-default", "-o", after)
    run("check", before, after)
    run("diff", programs["core"], before)
    run("diff", programs["training"], programs["core"], code=1)


def test_html_is_one_page(programs: dict[str, Path], tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    run("explain", programs["core"], "--format=html", "-o", page)
    text = page.read_text()
    assert text.startswith("<!doctype html>") and text.rstrip().endswith("</html>")
    assert "<script" not in text and "src=" not in text and "href=" not in text


def test_in_place_programs_are_refused(save: Saver) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True))
    program = torch.export.export(model.train(), (torch.randn(2, 3, 8, 8),))
    error = run("explain", save(program, "in_place"), code=2).stderr
    assert "in place" in error and "ep = ep.run_decompositions({})" in error
    fixed = run(save(program.run_decompositions({}), "fixed")).stdout
    assert fixed.count('mp.output = "buffer_mutation"') == 3  # mean, var, count


def test_several_programs(tmp_path: Path) -> None:
    from torch.export.pt2_archive._package import package_pt2

    one = torch.export.export(nn.Linear(2, 3), (torch.randn(1, 2),))
    two = torch.export.export(nn.Linear(2, 4), (torch.randn(1, 2),))
    path = tmp_path / "two.pt2"
    package_pt2(path, exported_programs={"one": one, "two": two})
    assert "name one with --model" in run("explain", path, code=2).stderr
    assert "func.func @two" in run(path, "--model=two").stdout


def test_damaged_archives(programs: dict[str, Path], tmp_path: Path) -> None:
    data = programs["core"].read_bytes()
    for size in [0, 1, 100, len(data) // 2, len(data) - 1]:
        path = tmp_path / f"cut{size}.pt2"
        path.write_bytes(data[:size])
        error = run("explain", path, code=2).stderr
        assert error.count("\n") == 1 and path.name in error
    packed = tmp_path / "packed.pt2"
    with (
        zipfile.ZipFile(programs["core"]) as source,
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as target,
    ):
        for name in source.namelist():
            target.writestr(name, source.read(name))
    assert "is compressed" in run("explain", packed, code=2).stderr


def make_resnet() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    torchvision = pytest.importorskip("torchvision")
    return torchvision.models.resnet18(num_classes=4), (torch.randn(1, 3, 32, 32),)


def make_gpt2() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(
        n_layer=3, n_embd=16, n_head=2, vocab_size=32, n_positions=16, use_cache=False
    )
    return transformers.GPT2LMHeadModel(config), (torch.randint(0, 32, (1, 8)),)


# Operators of these models without a row in the table; shorten it when one gets a row.
WITHOUT_ROW = {"aten.max_pool2d.default", "aten.__and__.Tensor", "aten.diff.default"}


class UnderAutocast(nn.Module):
    """A model that runs under autocast whoever calls it."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = self.model(x)
        return out.logits if hasattr(out, "logits") else out


@pytest.mark.parametrize("make", [make_resnet, make_gpt2], ids=["resnet18", "gpt2"])
def test_models_of_others(make: Callable[[], Any], save: Saver) -> None:
    model, args = make()
    program = torch.export.export(UnderAutocast(model.eval()), args)
    path = save(program.run_decompositions({}), make.__name__)
    report = explain(path)
    assert set(report["unknown_operators"]) <= WITHOUT_ROW
    total = report["total"]
    assert total["before"]["casts"] > 0
    assert total["after"]["casts"] <= total["before"]["casts"]
    assert all(cast["reason"] for region in report["regions"] for cast in region["left"])
    written = sum(
        change["before"]["casts"]
        for name, change in report["origins"].items()
        if name != "promotion"
    )
    assert written == count_casts(path)
