"""Conversions that cost: public bug reports B01, B02 and B12, with the counts they ask for.

B01 and B02 run under CUDA's autocast policy (see cuda_policy), which the reports are about.
"""

from __future__ import annotations

import operator

import pytest
import torch
import torch.nn.functional as F
from acceptance import BF16, F16, F32, Run, assert_same_bits, casts_in, compiled, stock
from mpopt.backend import rewrite
from mpopt.bench.cuda_policy import cuda_policy
from torch import nn
from torch.fx.experimental.proxy_tensor import make_fx

BATCH, TIME, WIDTH = 4, 64, 128
ACTIVATION = (BATCH, TIME, WIDTH)


def _activation(seed: int = 0, dtype: torch.dtype = BF16) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(ACTIVATION, generator=generator).to(dtype).requires_grad_()


# B01: rms_norm on autocast's fp32 list ---------------------------------------------------------


class _Norm(nn.Module):
    """bf16 in, bf16 weights; the linear narrows the norm's f32 result. Optionally an f32
    residual or the norm itself also leaves the graph."""

    def __init__(self, *, linear: bool = True, residual: bool = False, output: bool = False):
        super().__init__()
        self.norm = nn.RMSNorm(WIDTH, eps=1e-6).to(BF16)
        self.linear = nn.Linear(WIDTH, WIDTH, bias=False).to(BF16) if linear else None
        self.residual, self.output = residual, output
        with torch.no_grad():
            self.norm.weight.add_(torch.linspace(-0.5, 0.5, WIDTH))

    def forward(self, x, wide):
        y = self.norm(x)
        results = [self.linear(y) if self.linear is not None else y.to(BF16)]
        if self.residual:
            results.append(y + wide)
        if self.output:
            results.append(y)
        return tuple(results)


def _wide() -> torch.Tensor:
    return _activation(1, F32).detach()


@pytest.fixture(scope="module")
def b01() -> tuple[Run, Run]:
    """The plain case through the backend and through Inductor alone."""
    inputs = _activation(), _wide()
    with cuda_policy():
        torch.manual_seed(0)
        model = _Norm()
        ours = compiled(model, inputs, low=BF16, train=True)
        return ours, stock(model, inputs, low=BF16, train=True)


def test_b01_traced_graph_has_the_promotions(b01: tuple[Run, Run]) -> None:
    """The policy is on: x and w are widened, the result is narrowed for the linear."""
    casts = casts_in(b01[0].graph.before)
    asked = [(c.source, c.target) for c in casts if c.origin == "autocast"]
    assert asked.count(("bf16", "f32")) >= 2
    assert ("f32", "bf16") in asked


def test_b01_a_no_kernel_only_converts_an_activation(b01: tuple[Run, Run]) -> None:
    run = b01[0]
    assert run.cast_kernels() == []
    norm = [k for k in run.kernels if k.phase == "forward" and not k.extern]
    wide = [k for k in norm if k.shape[:3] == ACTIVATION and "float32" in k.target]
    assert wide == [], "the norm stores its result in bf16"


def test_b01_b_backward_keeps_the_half_input_and_the_statistics(b01: tuple[Run, Run]) -> None:
    run = b01[0]
    large = [t for t in run.saved if t.numel() >= BATCH * TIME * WIDTH]
    assert all(t.dtype == BF16 for t in large)
    small = [t for t in run.saved if t.dtype == F32]
    assert all(t.numel() <= BATCH * TIME for t in small), "only one f32 number per row"
    assert run.saved_bytes <= b01[1].saved_bytes


def test_b01_c_narrowed_result_is_bit_identical(b01: tuple[Run, Run]) -> None:
    with cuda_policy():
        torch.manual_seed(0)
        model, inputs = _Norm(linear=False), (_activation(), _wide())
        ours = compiled(model, inputs, low=BF16, train=True)
        assert_same_bits(ours, stock(model, inputs, low=BF16, train=True))
    assert_same_bits(*b01)
    # And it is one rounding of the f32 norm.
    x = inputs[0].detach().float()
    exact = F.rms_norm(x.double(), (WIDTH,), model.norm.weight.detach().double(), 1e-6)
    assert ((ours.outputs[0].double() - exact).abs() <= exact.abs() * (2.0**-8 + 2.0**-20)).all()


def test_b01_d_and_e_f32_readers_get_the_unrounded_value() -> None:
    with cuda_policy():
        torch.manual_seed(0)
        model, inputs = _Norm(residual=True, output=True), (_activation(), _wide())
        run = compiled(model, inputs, low=BF16, train=True)
        want = stock(model, inputs, low=BF16, train=True)
    projected, added, normed = run.outputs
    assert (projected.dtype, added.dtype, normed.dtype) == (BF16, F32, F32)
    assert not torch.equal(normed, normed.to(BF16).to(F32)), "an f32 output stays unrounded"
    assert torch.equal(added, normed + inputs[1])
    assert torch.equal(projected, F.linear(normed.to(BF16), model.linear.weight))
    assert_same_bits(run, want)


def test_b01_f_record_says_what_stays_and_why(b01: tuple[Run, Run]) -> None:
    graph = b01[0].graph
    removed = len(casts_in(graph.before)) - len(casts_in(graph.after))
    applied = [r for r in graph.records if r["status"] == "applied"]
    kept = [r for r in graph.records if r["rule"] == "keep-cast"]
    assert (removed > 0) <= bool(applied)
    for record in [*applied, *kept]:
        assert record["why"] and record["contract"] in ("strict", "precise")
    forward = [r for r in kept if r["module"] == "norm"]
    assert forward and all("kernel of" in r["why"] for r in forward), [r["why"] for r in kept]


# B02: rms_norm of a half input with an f32 weight ---------------------------------------------


class _LinearNorm(nn.Module):
    def __init__(self, weight: torch.dtype) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.norm = nn.RMSNorm(4, eps=1e-6).to(weight)

    def forward(self, x):
        hidden = self.linear(x)
        return hidden, self.norm(hidden)


@pytest.mark.parametrize("policy", ["cpu", "cuda"])
@pytest.mark.parametrize("weight", [BF16, F32])
def test_b02_one_region_and_no_cast_kernel(policy: str, weight: torch.dtype) -> None:
    torch.manual_seed(0)
    model = _LinearNorm(weight)
    # A half input: the linear's own narrowing of an f32 graph input is no part of the case.
    x = torch.randn(64, 4, generator=torch.Generator().manual_seed(2)).to(BF16).requires_grad_()
    if policy == "cuda":
        with cuda_policy():
            run = compiled(model, (x,), low=BF16, train=True)
    else:
        run = compiled(model, (x,), low=BF16, train=True)
    assert run.cast_kernels() == []
    forward = [k for k in run.kernels if k.phase == "forward" and not k.extern and not k.role]
    assert len(forward) <= 1, [k.origins for k in forward]
    hidden, normed = run.outputs
    assert run.gradients["norm.weight"].dtype == weight
    assert run.gradients["linear.weight"].dtype == F32
    assert run.gradients["0"].dtype == BF16
    exact = F.rms_norm(hidden.double(), (4,), model.norm.weight.detach().double(), 1e-6)
    # One bf16 ulp of the f32 composite: twice the unit roundoff.
    assert ((normed.double() - exact).abs() <= exact.abs() * 2.0**-7).all()


# B12: a matrix product of widened halves ------------------------------------------------------

ROWS, DEPTH, WORDS = 32, 96, 257


def _logits(h, w):
    return torch.mm(h.to(F32), w.to(F32).t())


def _halves(dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(4)
    return (
        torch.randn(ROWS, DEPTH, generator=generator).to(dtype),
        torch.randn(WORDS, DEPTH, generator=generator).to(dtype),
    )


class _Exact(torch.fx.Interpreter):
    """Runs a graph with ideal accumulation: products and sums in fp64, one rounding to the
    type that the product names. (The CPU has no half product with an f32 result.)"""

    def call_function(self, target, args, kwargs):
        if target is torch.ops.aten.mm.dtype:
            given = dict(zip(("self", "mat2", "out_dtype"), args, strict=False)) | kwargs
            left, right, dtype = (given[name] for name in ("self", "mat2", "out_dtype"))
            assert left.dtype == right.dtype and left.dtype in (BF16, F16)
            return (left.double() @ right.double()).to(dtype)
        return super().call_function(target, args, kwargs)


@pytest.mark.parametrize("dtype", [BF16, F16])
def test_b12_on_cuda_the_product_reads_halves_and_gives_f32(dtype: torch.dtype) -> None:
    h, w = _halves(dtype)
    traced = make_fx(_logits, tracing_mode="fake")(h, w)
    result = rewrite(traced, (h, w), target="cuda")
    targets = [n.target for n in result.graph.nodes if n.op == "call_function"]
    assert torch.ops.aten.mm.dtype in targets, targets
    assert torch.ops.aten._to_copy.default not in targets, "no copy of the weight is left"
    (output,) = result.graph.output_node().all_input_nodes
    assert output.meta["val"].dtype == F32
    logits = _Exact(result).run(h, w)
    assert logits.dtype == F32
    bound = DEPTH * 2.0**-23 * (h.double().abs() @ w.double().abs().t())
    assert ((logits - _logits(h, w)).abs() <= bound).all()
    assert not torch.equal(logits, logits.to(dtype).to(F32)), "never a half result widened"


def test_b12_on_cuda_one_widened_operand_is_left_alone() -> None:
    h, w = _halves(BF16)
    wide = w.float()
    traced = make_fx(lambda a, b: torch.mm(a.to(F32), b.t()), tracing_mode="fake")(h, wide)
    result = rewrite(traced, (h, wide), target="cuda")
    assert torch.ops.aten.mm.dtype not in [n.target for n in result.graph.nodes]
    assert torch.equal(result(h, wide), torch.mm(h.float(), wide.t()))


def test_b12_on_cuda_operands_of_two_half_types_are_left_alone() -> None:
    h, w = _halves(BF16)[0], _halves(F16)[1]
    traced = make_fx(_logits, tracing_mode="fake")(h, w)
    result = rewrite(traced, (h, w), target="cuda")
    assert torch.ops.aten.mm.dtype not in [n.target for n in result.graph.nodes]
    assert torch.equal(result(h, w), _logits(h, w))


def test_b12_on_the_cpu_the_record_names_the_target() -> None:
    h, w = _halves(BF16)
    run = compiled(_logits, (h, w))
    missed = [r for r in run.graph.records if r["rule"] == "matmul-half-operands"]
    assert missed and missed[0]["status"] == "missed" and "cpu" in missed[0]["why"]
    assert torch.equal(run.outputs[0], _logits(h, w))


def test_b12_product_of_two_halves_is_exact_in_f32() -> None:
    """The fact that the rule rests on, on 200,000 random pairs of each type."""
    generator = torch.Generator().manual_seed(0)
    for dtype in (BF16, F16):
        a, b = (torch.randn(200_000, generator=generator).to(dtype) for _ in range(2))
        assert torch.equal((a.float() * b.float()).double(), operator.mul(a.double(), b.double()))
