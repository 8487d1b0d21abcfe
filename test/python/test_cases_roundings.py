"""Roundings that must stay: public bug reports B14–B17, B19, B25 and their exact values.

A case stands for its kind; the numbers are those of exact arithmetic.
"""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from acceptance import BF16, F16, F32, assert_same_bits, call, casts_in, compiled
from mpopt.native import load
from releases import traced_product_checks_types
from torch import nn


def _randn(*shape: int, seed: int = 3) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


# B14: narrow then widen is a rounding ---------------------------------------------------------


def _b14_silu(x, w):
    y = (x @ w).to(BF16).to(F32)
    return y, y * torch.sigmoid(y), (y * torch.sigmoid(y)).sum(1)


@pytest.mark.parametrize("numerics", ["precise", "strict"])
def test_b14_round_trip_is_kept(numerics: str) -> None:
    inputs = _randn(64, 64, seed=1), _randn(64, 64, seed=2)
    run, eager = compiled(_b14_silu, inputs, numerics=numerics), call(_b14_silu, inputs)
    casts = casts_in(run.graph.after)
    assert [(c.source, c.target) for c in casts] == [("f32", "bf16"), ("bf16", "f32")]
    if numerics == "strict":
        # Inductor's own default elides the pair; strict needs Inductor's exact casts too.
        run = compiled(
            _b14_silu, inputs, numerics="strict", inductor={"emulate_precision_casts": True}
        )
    assert torch.equal(run.outputs[0], eager.outputs[0])
    # Sigmoid and the sum's order are the kernel's own: 4 roundings of f32 for one element,
    # and 64 for a sum of 64.
    torch.testing.assert_close(run.outputs[1], eager.outputs[1], rtol=2.0**-22, atol=0)
    bound = 64 * 2.0**-24 * eager.outputs[1].abs().sum(1)
    assert ((run.outputs[2] - eager.outputs[2]).abs() <= bound).all()


def _b14_sevenths(x):
    y = x.to(F16).to(F32)
    return y, y.sum(1)


def test_b14_sevenths_through_fp16_are_rounded() -> None:
    x = (torch.arange(20) / 7).view(4, 5)
    run = compiled(_b14_sevenths, (x,))
    expected = torch.tensor([0.142822265625, 0.28564453125, 0.428466796875, 0.5712890625])
    assert torch.equal(run.outputs[0].flatten()[1:5], expected)
    assert torch.equal(run.outputs[0], x.half().float())
    # Five fp16 values of like size: every partial sum is exact in f32.
    assert torch.equal(run.outputs[1], x.half().float().sum(1))
    assert len(casts_in(run.graph.after)) == 2


# B15: a rounding between accumulator and bias ------------------------------------------------


def _b15(x, w, bias):
    y = (x @ w).to(BF16) + bias
    return y, y.mean(-1)


def test_b15_product_is_rounded_before_the_bias() -> None:
    # One product per element, so that the dot product has one value: 1.2345678.
    x = torch.zeros(2, 15, 32)
    x[..., 0] = 1.0
    w = torch.full((32, 17), 1.2345678)
    bias = torch.full((17,), 0.001)
    run = compiled(_b15, (x, w, bias))
    assert run.outputs[0].dtype == F32
    assert torch.equal(run.outputs[0], torch.full((2, 15, 17), 1.2353750467300415))
    assert run.outputs[1].sub(1.2353750467300415).abs().max() <= 17 * 2.0**-24 * 1.25


def test_b15_equals_eager_on_random_values() -> None:
    inputs = _randn(2, 15, 32), _randn(32, 17), _randn(17)
    run, eager = compiled(_b15, inputs), call(_b15, inputs)
    assert torch.equal(run.outputs[0], eager.outputs[0])


# B16: who compares, counts or indexes sees the rounded value -----------------------------------


def _b16(x, c):
    scores = x / c
    top = scores.amax(-1, keepdim=True)
    ties = (scores == top).sum(-1)
    return ties, (scores / ties.unsqueeze(-1)).sum(-1)


@pytest.mark.parametrize("dtype", [BF16, F16])
def test_b16_rounded_scores_tie_with_their_maximum(dtype: torch.dtype) -> None:
    inputs = _randn(64, 512).to(dtype), torch.tensor(3.0)
    run, eager = compiled(_b16, inputs), call(_b16, inputs)
    assert run.outputs[0].min() >= 1
    assert torch.equal(run.outputs[0], eager.outputs[0])
    assert torch.isfinite(run.outputs[1]).all()


def test_b16_gradient_through_ties_is_eagers() -> None:
    def divided(x, c):
        return _b16(x, c)[1]

    x = _randn(16, 64).to(BF16).requires_grad_()
    run = compiled(divided, (x, torch.tensor(3.0)), train=True)
    eager = call(divided, (x, torch.tensor(3.0)), train=True)
    gradient, wanted = run.gradients["0"].float(), eager.gradients["0"].float()
    # A chain of halves is rounded once where eager rounds after each of 3 operations.
    torch.testing.assert_close(gradient, wanted, rtol=3 * 2.0**-8, atol=2.0**-8 * wanted.max())


OBSERVERS = {
    "floor": lambda s: torch.floor(s * 64),
    "round": lambda s: torch.round(s * 64),
    "integer": lambda s: (s * 64).to(torch.int32),
    "argmax": lambda s: s.argmax(-1),
    "topk": lambda s: torch.topk(s, 3, -1).indices,
    "sort": lambda s: torch.sort(s, dim=-1, stable=True).indices,
    "less": lambda s: s < 0.25,
    "bucket": lambda s: torch.bucketize(s, torch.linspace(-2, 2, 33)),
}


def _b16_observed(*inputs):
    return [
        observe((x / 3.0).to(BF16).to(F32))
        for x, observe in zip(inputs, OBSERVERS.values(), strict=True)
    ]


def test_b16_observer_of_a_rounding_sees_it() -> None:
    """One value per observer, so that each is free to fuse with its own."""
    inputs = [_randn(8, 512, seed=i) for i in range(len(OBSERVERS))]
    run, eager = compiled(_b16_observed, inputs), call(_b16_observed, inputs)
    for name, got, want in zip(OBSERVERS, run.outputs, eager.outputs, strict=True):
        assert torch.equal(got, want), name
    assert sum(c.target == "bf16" for c in casts_in(run.graph.after)) == len(OBSERVERS)


# B17: through a narrow type and back, from anywhere ------------------------------------------

VALUES = torch.tensor([1e-12, 1.234567e5, 0.33333334, -0.0])
THROUGH_F16 = torch.tensor([0.0, torch.inf, 0.333251953125, -0.0])
THROUGH_BF16 = torch.tensor([1.0018652574217413e-12, 123392.0, 0.333984375, -0.0])


class _RoundTrip(nn.Module):
    """Values from an input, a parameter, a buffer and a constant, through both half types."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(VALUES.clone())
        self.register_buffer("state", VALUES.clone())

    def forward(self, x):
        constant = torch.tensor([1e-12, 1.234567e5, 0.33333334, -0.0])
        values = x, self.weight, self.state, constant
        return [value.to(dtype).to(F32) for dtype in (F16, BF16) for value in values]


@pytest.mark.parametrize("train", [False, True])
def test_b17_round_trip_rounds_wherever_the_value_comes_from(train: bool) -> None:
    run = compiled(_RoundTrip(), (VALUES,), train=train)
    for expected, outputs in ((THROUGH_F16, run.outputs[:4]), (THROUGH_BF16, run.outputs[4:])):
        for source, output in zip(("input", "parameter", "buffer", "constant"), outputs):
            assert torch.equal(output, expected), source
            assert torch.signbit(output[3]), source


# B19: casts are not swallowed by a pattern ---------------------------------------------------


def _attention(q, k, v, dtype):
    scores = (q @ k.transpose(-1, -2)) / 8.0
    weights = torch.softmax(scores.float(), -1).to(dtype)
    return weights @ v


def test_b19_mixed_matmul_is_rejected_like_eager_does() -> None:
    q, k, v = _randn(2, 4, 16, 64), _randn(2, 4, 16, 64), _randn(2, 4, 16, 64)
    with pytest.raises(RuntimeError):
        _attention(q, k, v, F16)

    def attention(a, b, c):
        return _attention(a, b, c, F16)

    if traced_product_checks_types():
        with pytest.raises(Exception, match=r"(?is)half.*float|float16.*float32|same dtype"):
            compiled(attention, (q, k, v))
        return
    # Inductor computes what tracing let through: the rounding is performed, and we add no cast.
    run = compiled(attention, (q, k, v))
    assert casts_in(run.graph.after) == casts_in(run.graph.before)
    weights = torch.softmax((q @ k.mT).float() / 8.0, -1).to(F16)
    assert (run.outputs[0] - weights.double() @ v.double()).abs().max() < 1e-5


def test_b19_attention_keeps_the_casts_that_the_user_wrote() -> None:
    def attention(q, k, v):
        return _attention(q, k, v, F16)

    inputs = [_randn(2, 4, 16, 64, seed=i).half() for i in range(3)]
    run = compiled(attention, inputs)
    casts = [(c.source, c.target) for c in casts_in(run.graph.after) if c.origin == "user"]
    assert casts == [("f16", "f32"), ("f32", "f16")]
    assert run.outputs[0].dtype == F16
    exact = torch.softmax((inputs[0].double() @ inputs[1].double().mT) / 8, -1)
    exact = exact @ inputs[2].double()
    error = (run.outputs[0].double() - exact).abs().max()
    assert error <= 1.05 * (attention(*inputs).double() - exact).abs().max()


def test_b19_mixed_matmul_in_a_module_is_one_error_naming_both_types() -> None:
    """`aten.mm` of mixed types stays opaque (exported programs hold it before their autocast
    is applied); as a product of the dialect it is refused."""
    text = b"""
    func.func @f(%a: tensor<2x3xf16>, %b: tensor<3x4xf32>) -> tensor<2x4xf32> {
      %0 = mp.KIND : (tensor<2x3xf16>, tensor<3x4xf32>) -> tensor<2x4xf32>
      return %0 : tensor<2x4xf32>
    }"""
    module = load().Module.parse(text.replace(b"KIND", b'aten "aten.mm.default"(%a, %b)'))
    module.run("mp-default")
    assert "mp.cast" not in str(module), "never silently fixed"
    with pytest.raises(ValueError, match=r"(?s)f16.*f32"):
        load().Module.parse(text.replace(b"KIND", b"matmul %a, %b"))


# B25: the router ----------------------------------------------------------------------------


class _Router(nn.Module):
    """A gate whose operands are widened halves, as an autocast to float32 leaves them.

    (Autocast on the CPU turns itself off for float32, so the widenings are written out.)
    """

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(64, 16, bias=False).to(BF16)

    def forward(self, x):
        logits = F.linear(x.float(), self.gate.weight.float())
        probabilities = torch.softmax(logits.float(), -1)
        weights, experts = torch.topk(probabilities, 2, -1)
        return experts, weights.to(BF16), logits


def _near_ties(router: _Router) -> torch.Tensor:
    """Inputs on which the second and third best logits differ by less than a bf16 step."""
    x = _randn(4096, 64, seed=5).to(BF16)
    with torch.no_grad():
        logits = F.linear(x.float(), router.gate.weight.float())
        top = logits.topk(3, -1).values
        near = top[:, 1] - top[:, 2] < 2.0**-9 * top[:, 1].abs()
    assert near.sum() >= 16
    return x[near]


def test_b25_router_picks_the_experts_of_the_f32_graph() -> None:
    router = _Router()
    x = _near_ties(router)
    run = compiled(router, (x,))
    reference = F.linear(x.float(), router.gate.weight.float())
    assert run.outputs[2].dtype == F32
    assert torch.equal(run.outputs[0], torch.topk(torch.softmax(reference, -1), 2, -1).indices)
    # The check has teeth: narrowed logits choose other experts.
    narrowed = torch.topk(torch.softmax(reference.to(BF16).float(), -1), 2, -1).indices
    assert not torch.equal(run.outputs[0], narrowed)
    after = casts_in(run.graph.after)
    assert [c.target for c in after if c.source == "f32"] == ["bf16"], "only chosen weights narrow"


# Appendix C: conversions in one chain -------------------------------------------------------

CHAINS = {
    # (first, second, input) -> what both roundings give
    "f32 f16 bf16 overflow": (F32, F16, BF16, 1e5, torch.inf),
    "f32 f16 bf16 underflow": (F32, F16, BF16, 1e-9, 0.0),
    "f32 f16 bf16 twice": (F32, F16, BF16, 1.00390637, 1.0),
    "f16 bf16 loses": (F16, BF16, F32, 1.0009765625, 1.0),
    "bf16 f16 overflow": (BF16, F16, F32, 99840.0, torch.inf),
    "bf16 f16 underflow": (BF16, F16, F32, 2.0**-26, 0.0),
    "f32 f16 tie to even": (F32, F16, F32, 65519.0, 65504.0),
    "f32 f16 border": (F32, F16, F32, 65520.0, torch.inf),
    "f32 bf16 integer": (F32, BF16, F32, 257.0, 256.0),
}


@pytest.mark.parametrize("numerics", ["precise", "strict"])
def test_appendix_c_half_types_are_never_exchanged(numerics: str) -> None:
    """All chains in one graph; strict runs under Inductor's exact casts."""

    def chain(*values):
        return [
            value.to(middle).to(last)
            for value, (_, middle, last, _, _) in zip(values, CHAINS.values(), strict=True)
        ]

    values = [torch.full((8,), v, dtype=first) for first, _, _, v, _ in CHAINS.values()]
    extra = {"inductor": {"emulate_precision_casts": True}} if numerics == "strict" else {}
    run = compiled(chain, values, numerics=numerics, **extra)
    for name, output in zip(CHAINS, run.outputs, strict=True):
        assert output[0].item() == CHAINS[name][4], name
    assert len(casts_in(run.graph.after)) == 2 * len(CHAINS)


def test_appendix_c_integers_through_f32_stay_rounded_twice() -> None:
    def chain(x):
        return x.to(F32).to(BF16), x.to(BF16)

    run = compiled(chain, (torch.full((8,), 2**31 + 2**23 + 1),))
    assert run.outputs[0][0].item() == 2147483648.0
    # Direct conversion is the framework's own; eager says what it gives.
    assert torch.equal(run.outputs[1], torch.full((8,), 2**31 + 2**23 + 1).to(BF16))


@pytest.mark.parametrize("half", [F16, BF16])
def test_appendix_c_widening_and_back_is_removed_for_all_encodings(half: torch.dtype) -> None:
    def there_and_back(x):
        return -x.to(F32).to(half)  # the sign: an output must not become the input itself

    bits = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16)
    x = bits.view(half)
    x = x[~x.isnan()]
    run = compiled(there_and_back, (x,))
    assert casts_in(run.graph.before) and casts_in(run.graph.after) == []
    assert torch.equal(run.outputs[0].view(torch.int16), (-x).view(torch.int16))


def test_appendix_c_exact_first_conversion_merges() -> None:
    def chain(x):
        return x.to(F32).to(BF16)

    x = _randn(256).half()
    run = compiled(chain, (x,))
    assert [(c.source, c.target) for c in casts_in(run.graph.after)] == [("f16", "bf16")]
    assert_same_bits(run, call(chain, (x,)))


def test_bad_contract_is_refused() -> None:
    with pytest.raises(Exception, match=r"one of strict, precise, relaxed, not 'loose'"):
        compiled(lambda x: x.to(BF16), (torch.ones(2),), numerics="loose")
