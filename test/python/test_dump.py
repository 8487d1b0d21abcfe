"""Dumps, bisection and the switches for single passes."""

from __future__ import annotations

import json

import mpopt
import pytest
import torch
from eager_code import step
from models import Transformer, words
from mpopt import native
from mpopt.joint_pass import JointPass
from mpopt.options import Options
from mpopt.origins import Capture
from test_tool import explain, run
from torch import nn


class Redundant(nn.Module):
    """Several pairs of conversions that cancel."""

    def forward(self, x):
        for _ in range(3):
            x = x.float().bfloat16() * 2
        return x


X = torch.randn(4, 8, generator=torch.Generator().manual_seed(0)).bfloat16()


def compile_redundant(**options):
    mpopt.counters.clear()
    step(Redundant, (X,), train=False, autocast=None, **options)
    return mpopt.counters["rewrites"]


@pytest.mark.parametrize("numerics", ["strict", "precise"])
def test_the_report_names_the_contract_of_the_passes(tmp_path, numerics):
    step(Redundant, (X,), train=False, autocast=None, dump=str(tmp_path), numerics=numerics)
    assert explain(tmp_path / "000_inference")["numerics"] == numerics


def test_bundle(tmp_path):
    step(Transformer, words(), dump=str(tmp_path))
    step(Redundant, (X,), train=False, autocast=None, dump=str(tmp_path))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["000_joint", "001_inference", "index.md"]
    joint = tmp_path / "000_joint"
    stages = sorted(p.name for p in joint.glob("[0-9]*.mlir"))
    assert stages[0] == "00_import.mlir"
    assert "mp-eliminate-casts" in "".join(stages)
    before, after = (joint / "00_import.mlir").read_text(), (joint / "after.mlir").read_text()
    assert 'mp.role = "parameter"' in before
    assert "origin(autocast)" in before
    assert "aten.native_layer_norm.default" in before
    assert '"blocks.0' in before
    for text in (before, after):
        native.module_type().parse(text.encode())
    assert isinstance(json.loads((joint / "rewrites.json").read_text()), list)
    meta = json.loads((joint / "meta.json").read_text())
    assert meta["torch"] == torch.__version__
    assert meta["autocast"] == {"cpu": "bfloat16"}
    assert meta["status"] == "ok"
    assert meta["options"]["numerics"] == "precise"
    assert meta["uuid"].startswith("mpopt-")
    assert meta["stages"] == stages
    index = (tmp_path / "index.md").read_text()
    assert "[000_joint](000_joint/)" in index
    assert "[001_inference](001_inference/)" in index


def test_rewrites_are_recorded(tmp_path):
    applied = compile_redundant(dump=str(tmp_path))
    record = json.loads((tmp_path / "000_inference" / "rewrites.json").read_text())
    assert applied == sum(entry["status"] == "applied" for entry in record) >= 3


def test_unwritable_dump(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("MPOPT_STRICT", "0")
    file = tmp_path / "file"
    file.write_text("")
    assert compile_redundant(dump=str(file)) >= 3
    assert mpopt.counters["fallbacks.dump"] == 1
    assert "cannot write the dump" in caplog.text


def test_a_budget_of_a_dump(tmp_path):
    step(Transformer, words(), dump=str(tmp_path / "dump"))
    kept = tmp_path / "kept.toml"
    run("budget", "write", kept, tmp_path / "dump")
    assert run("budget", "check", kept, tmp_path / "dump").stdout == "within the budget\n"
    figures = pytest.importorskip("tomllib").loads(kept.read_text())
    graph = figures["graph"]["000_joint"]
    total = explain(tmp_path / "dump" / "000_joint")["total"]["after"]
    assert (graph["casts"], graph["cast_bytes"]) == (total["casts"], total["bytes"])
    regions = graph["region"].values()
    for figure in ("casts", "cast_bytes", "rewrites", "saved_bytes"):
        assert graph[figure] == sum(region.get(figure, 0) for region in regions) > 0
    assert any(name.startswith("blocks.*") for name in graph["region"])
    assert figures["torch"] == torch.__version__
    tight = kept.read_text().replace(f"casts = {graph['casts']}\n", "casts = 1\n")
    kept.write_text(tight)
    worse = run("budget", "check", kept, tmp_path / "dump", code=1).stdout
    assert f"1 -> {graph['casts']}  worse" in worse


def test_a_rewrite_log_turns_caches_off(tmp_path):
    options = Options(rewrite_log=str(tmp_path / "log"))
    for given, is_cached in [(options, False), (Options(), True)]:
        key = JointPass(given, Capture((), (), True, {}), {}, relax=False).uuid()
        assert (key is not None) == is_cached


def test_bisect():
    everything = compile_redundant()
    assert everything >= 3
    for limit in (0, 1, 2):
        assert compile_redundant(bisect_limit=limit) == limit


@pytest.mark.parametrize("switch", ["options", "environment"])
def test_a_pass_off_by_name(switch, monkeypatch):
    if switch == "environment":
        monkeypatch.setenv("MPOPT_DISABLE_PASSES", "mp-eliminate-casts")
        assert compile_redundant() == 0
    else:
        assert compile_redundant(disable_passes=["mp-eliminate-casts"]) == 0
