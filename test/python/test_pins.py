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


def test_t12_the_gradient_chain_of_a_projection_is_not_pinned(pinned):
    assert not any("mp.backward" in line and "aten.mm" in line for line in pinned)
