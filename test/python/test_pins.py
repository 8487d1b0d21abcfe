"""The numbers that rules of pins rest on, and the pins of a traced step."""

from __future__ import annotations

import pytest
import torch

F16, BF16, F32 = torch.float16, torch.bfloat16, torch.float32


# --- what the rules say -------------------------------------------------------


@pytest.mark.parametrize(("dtype", "count"), [(BF16, 256), (F16, 2048)])
def test_a_half_sum_of_ones_stops_where_reduction_depth_says(dtype, count):
    total, one = torch.zeros((), dtype=dtype), torch.ones((), dtype=dtype)
    for _ in range(count + 100):
        total = total + one
    assert total.item() == count


@pytest.mark.parametrize(("dtype", "largest"), [(BF16, 256), (F16, 2048)])
def test_integers_are_exact_as_far_as_integer_values_says(dtype, largest):
    numbers = torch.arange(largest + 2)
    assert (numbers.to(dtype).long() == numbers)[:-1].all()
    assert numbers.to(dtype)[-1].item() == largest


def test_t21_positions_collapse_as_positions_says():
    positions = torch.arange(65536, 66048)
    assert positions.to(BF16).unique().numel() == 2
    assert positions.to(F16).isinf().all()
    assert positions.float().unique().numel() == 512


def test_b24_an_outlier_makes_the_row_zero_and_nothing_infinite():
    """By value: no element of the result is infinite or NaN, it is just wrong."""
    row = torch.zeros(1, 768)
    row[0, 7] = 800.0

    def normalized(x):
        centred = x - x.mean(-1, keepdim=True)
        variance = centred.pow(2).mean(-1, keepdim=True)
        return centred / (variance + 1e-5).sqrt()

    assert normalized(row)[0, 7] == pytest.approx(27.7, abs=0.05)
    assert (normalized(row.to(F16)) == 0).all()
    # The squares in f32 are what the rule pins.
    centred = row.to(F16) - row.to(F16).mean(-1, keepdim=True)
    pinned = centred / (centred.float().pow(2).mean(-1, keepdim=True) + 1e-5).sqrt()
    assert pinned[0, 7] == pytest.approx(27.7, abs=0.05)


@pytest.mark.parametrize("dtype", [BF16, F16])
def test_an_epsilon_vanishes_beside_one(dtype):
    assert torch.tensor(1.0, dtype=dtype) + 1e-5 == 1
    assert torch.tensor(1.0, dtype=dtype) + 0.01 > 1


def test_b27_a_bf16_loss_sits_on_a_grid():
    losses = torch.linspace(36, 36.5, 100).to(BF16).unique()
    assert losses.tolist() == [36.0, 36.25, 36.5]


def test_t10_fillers_become_infinite_where_mask_constant_says():
    smallest = torch.finfo(F32).min
    assert torch.tensor(smallest).to(BF16).isinf()
    assert torch.tensor(-1e9).to(F16).isinf()
    assert torch.tensor(-1e9).to(BF16).isfinite()
    assert torch.tensor(-65504.0).to(F16).isfinite()
    row = torch.full((1, 4), smallest).to(BF16)
    assert row.softmax(-1).isnan().all()
    assert torch.full((1, 4), smallest).softmax(-1).tolist() == [[0.25] * 4]


def test_b21_scores_overflow_f16_although_they_are_scaled():
    q, k = torch.full((1, 128), 576.0), torch.full((1, 128), 383.0)
    assert ((q @ k.T) / 128**0.5).to(F16).isinf().all()
    assert ((q @ k.T) / 128**0.5).to(BF16).isfinite().all()


# --- the pins of a step -------------------------------------------------------


class Block(torch.nn.Module):
    """A router between norms, in front of a loss."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.RMSNorm(32)
        self.gate = torch.nn.Linear(32, 8, bias=False)
        self.head = torch.nn.Linear(32, 64)

    def forward(self, x, target):
        hidden = self.norm(x)
        scores = self.gate(hidden).float().softmax(-1)
        weights, chosen = scores.topk(2)
        mixed = hidden * weights.sum(-1, keepdim=True) + chosen.sum(-1, keepdim=True)
        return torch.nn.functional.cross_entropy(self.head(mixed), target)


@pytest.fixture
def pinned(tmp_path):
    """The text of the joint graph of a step with a router, after the passes."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    model = torch.compile(Block(), backend="mpopt", options={"dump": str(tmp_path)})
    with torch.autocast("cpu", BF16):
        loss = model(torch.randn(16, 32), torch.randint(64, (16,)))
    loss.backward()
    (graph,) = tmp_path.glob("*joint*/after.mlir")
    return [line for line in graph.read_text().splitlines() if "mp.pin" in line]


def test_b25_router_norm_and_loss_are_pinned_without_a_policy(pinned):
    def rules_of(callee):
        lines = [line for line in pinned if callee in line]
        assert lines, callee
        return "".join(lines)

    (router,) = [line for line in pinned if '"router"' in line]
    assert "aten.mm.default" in router and "fp32 operands" not in router
    assert '"discrete-choice"' in rules_of("aten.topk")
    assert '"loss"' in rules_of("aten.nll_loss_forward")
    assert '"log-probability"' in rules_of("aten._log_softmax")
    statistics = '"root-mean-square"' in "".join(pinned)
    assert statistics or '"norm-statistics"' in "".join(pinned)


# --- a program without autocast --------------------------------------------------


class Experts(torch.nn.Module):
    """A norm, a router over experts that are matrix products, and a loss; all in fp32."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(64)
        self.gate = torch.nn.Linear(64, 4, bias=False)
        self.up = torch.nn.Linear(64, 256)
        self.down = torch.nn.Linear(256, 64)
        self.head = torch.nn.Linear(64, 96)

    def forward(self, x, target):
        hidden = self.norm(x)
        scores = self.gate(hidden).softmax(-1)
        weights, chosen = scores.topk(2)
        mixed = self.down(torch.relu(self.up(hidden))) * weights.sum(-1, keepdim=True)
        logits = self.head(mixed + chosen.sum(-1, keepdim=True))
        return torch.nn.functional.cross_entropy(logits, target), scores, chosen


@pytest.fixture(scope="module")
def without_autocast(tmp_path_factory):
    """The joint graph after the passes, and results, of a step under precision="bf16" on a
    machine where halves pay."""
    from test_placement import _fast_halves

    folder = tmp_path_factory.mktemp("precision")
    model_file = folder / "halves.json"
    model_file.write_text(_fast_halves())
    torch.manual_seed(0)
    torch._dynamo.reset()
    model = Experts()
    batch = torch.randn(512, 64), torch.randint(96, (512,))
    options = {"precision": "bf16", "cost_model": str(model_file), "dump": str(folder)}
    got = torch.compile(model, backend="mpopt", options=options)(*batch)
    got[0].backward()
    (graph,) = folder.glob("*joint*/after.mlir")
    return graph.read_text().splitlines(), got, model(*batch)


def test_precision_narrows_products_but_what_the_pins_hold(without_autocast):
    """No policy: products of the feed-forward are of halves; router, norm and loss are f32."""
    lines, got, _ = without_autocast

    def of(name):
        return [line for line in lines if f'"aten.{name}' in line or f"mp.{name}" in line]

    halves = [line for line in lines if "xbf16>" in line and ("aten.addmm" in line)]
    assert len(halves) >= 2, "up and down are computed from halves"
    (router,) = [line for line in lines if '"router"' in line and "mp.backward" not in line]
    assert router.rstrip().partition("-> ")[2].startswith("tensor<512x4xf32>")
    for name in ("native_layer_norm", "_softmax", "_log_softmax", "nll_loss_forward", "topk"):
        (line, *_) = [line for line in of(name) if "mp.backward" not in line]
        assert "xbf16>" not in line and "<bf16>" not in line, line
    assert all(result.dtype is F32 for result in got[:2])


def test_precision_leaves_the_router_and_the_loss_as_fp32_has_them(without_autocast):
    """The same experts as in fp32, but where two scores tie to bf16's products; a loss that is no
    value of bf16."""
    _, got, wanted = without_autocast
    same = (got[2].sort(-1).values == wanted[2].sort(-1).values).all(-1)
    assert same.float().mean() >= 0.99
    assert (got[1] - wanted[1]).abs().max() <= 2.0**-7
    assert abs(got[0] - wanted[0]) <= 2.0**-8 * wanted[0]
    assert got[0].to(BF16).float() != got[0]


def test_t12_the_gradient_chain_of_a_projection_is_not_pinned(pinned):
    assert not any("mp.backward" in line and "aten.mm" in line for line in pinned)
