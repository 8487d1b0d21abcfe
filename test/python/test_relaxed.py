"""Graphs whose stored types `relaxed` chooses: what the passes did is proved from the dump."""

from __future__ import annotations

import json
import re

import pytest
import torch
import torch.nn.functional as F
from generated import code_before_execution, run_step
from stitching import relaxed
from test_tool import explain, run
from torch import nn

ROWS = 512
"""Times 64 columns, more elements than the passes leave alone."""


class Mlp(nn.Module):
    """A norm, a gate and two sums that backward reads."""

    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(64), nn.Linear(64, 64), nn.Linear(64, 64)

    def forward(self, x):
        y = self.norm(x.float() * 1.5)
        return y + self.down(F.gelu(self.up(y)).float() * y)


class Tokens(nn.Module):
    """Rows in front of others, all of them halves that are read as f32."""

    def __init__(self):
        super().__init__()
        self.first = nn.Parameter(torch.zeros(1, 64))
        self.embed, self.norm, self.down = nn.Linear(64, 64), nn.LayerNorm(64), nn.Linear(64, 64)
        self.positions = nn.Parameter(torch.zeros(ROWS + 1, 64))

    def forward(self, x):
        rows = torch.cat([self.first, self.embed(x)])
        y = F.dropout(rows, 0.1) + self.positions
        return y + self.down(self.norm(y))


def dump(model, folder, train=True, **options):
    """The bundle of the graph whose stored types were chosen."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    compiled = torch.compile(model, backend=relaxed, options={"dump": str(folder), **options})
    batch = (torch.randn(ROWS, 64),)
    code_before_execution(lambda: run_step(compiled, batch, train=train))
    (bundle,) = folder.glob("*_stitched" if train else "*_storage")
    return bundle


@pytest.mark.parametrize(
    ("make", "train"),
    [(Mlp, True), (Tokens, True), (Mlp, False)],
    ids=["stitched", "stitched-tokens", "storage"],
)
def test_a_dump_is_proved(make, train, tmp_path):
    model = make() if train else make().eval()
    bundle = dump(model, tmp_path, train, epsilon=0.5)
    assert json.loads((bundle / "meta.json").read_text())["status"] == "ok"
    last = max(bundle.glob("[0-9]*.mlir"))
    text = run("check", bundle / "00_import.mlir", last).stdout
    assert text.startswith("every rewrite keeps its contract")
    found = re.search(r"(\d+) reads are rounded; .* grows by (.*)% of 50.00%", text)
    records = json.loads((bundle / "rewrites.json").read_text())
    rounded = [r for r in records if r["rule"] == "round-store" and r["status"] == "applied"]
    assert int(found[1]) == len(rounded) > 0
    assert {r["half"] for r in rounded} == {"bf16"}
    assert all(r["operand"] >= 0 and r["node"] >= 0 for r in rounded)
    assert 0 < float(found[2]) <= 50


def test_a_report_names_the_contract_and_the_budget(tmp_path):
    bundle = dump(Mlp(), tmp_path, epsilon=0.5)
    report = explain(bundle)
    assert report["numerics"] == "relaxed"
    growth = report["error_growth"]
    assert 0 < growth["expected"] <= growth["epsilon"] == 0.5
    assert "within the error budget" in run("explain", bundle).stdout


def test_an_edited_dump_is_refused(tmp_path):
    bundle = dump(Mlp(), tmp_path, epsilon=0.5)
    text = max(bundle.glob("[0-9]*.mlir")).read_text()
    edited = tmp_path / "edited.mlir"
    edited.write_text(text.replace('"round-store"', '"place-store"').replace("relaxed", "strict"))
    errors = run("check", bundle / "00_import.mlir", edited, code=1).stderr
    assert "rounded to bf16, which no record says" in errors
