"""Steps traced as a whole: scaler, clipping, update and half copies in one graph."""

from __future__ import annotations

from typing import Any

import mpopt
import pytest
import torch
from mpopt import exporter, importer, native
from torch import Tensor
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func

Step = Any


def adam(w: Tensor, b: Tensor, m: Tensor, v: Tensor, g: Tensor, h: Tensor, inverse: Tensor,
         found: Tensor, scale: Tensor, count: Tensor) -> Tensor:  # fmt: skip
    """Adam for `w`, plain descent for `b`, after unscaling and clipping; updates the scale."""
    torch._amp_foreach_non_finite_check_and_unscale_([g, h], found, inverse)
    g, h = g.float(), h.float()
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm([g, h])))
    torch._foreach_mul_([g, h], torch.clamp(1.0 / (norm + 1e-6), max=1.0))
    torch._foreach_lerp_([m], [g], 0.1)
    torch._foreach_mul_([v], 0.999)
    torch._foreach_addcmul_([v], [g], [g], value=0.001)
    denominators = torch._foreach_sqrt([v])
    torch._foreach_add_(denominators, 1e-8)
    torch._foreach_addcdiv_([w], [m], denominators, value=-1e-3)
    b.add_(h, alpha=-0.1)
    torch._amp_update_scale_(scale, count, found, 2.0, 0.5, 2000)
    return w.to(torch.bfloat16)


def lion(w: Tensor, m: Tensor, g: Tensor, inverse: Tensor, found: Tensor) -> Tensor:
    """Lion, with a skipped step as a choice."""
    torch._amp_foreach_non_finite_check_and_unscale_([g], found, inverse)
    wide = g.float()
    direction = torch.sign(m * 0.9 + wide * 0.1)
    kept = found > 0
    w.copy_(torch.where(kept, w, w * 0.999 - direction * 1e-3))
    m.copy_(torch.where(kept, m, torch.lerp(m, wide, 0.01)))
    return w.to(torch.float16)


def adam_inputs(dtype: torch.dtype, bad: float | None) -> list[Tensor]:
    torch.manual_seed(0)
    g, h = (torch.randn(8, 4) * 1024).to(dtype), (torch.randn(4) * 1024).to(dtype)
    if bad is not None:
        h[1] = bad
    states = [torch.randn(8, 4), torch.randn(4), torch.zeros(8, 4), torch.rand(8, 4)]
    scales = [torch.tensor(1 / 1000.0), torch.zeros(()), torch.tensor(1000.0)]
    return [*states, g, h, *scales, torch.zeros((), dtype=torch.int32)]


def lion_inputs(dtype: torch.dtype, bad: float | None) -> list[Tensor]:
    w, _, m, _, g, _, inverse, found, _, _ = adam_inputs(dtype, None)
    if bad is not None:
        g[0, 0] = bad
    return [w, m, g, inverse, found]


def rewritten(step: Step, pipeline: str, seen: list[str]) -> Step:
    """`step`, compiled to its graph after `pipeline`, which is run as it is."""

    def compile_graph(gm: torch.fx.GraphModule, examples: Any) -> Any:
        imported = importer.import_graph(gm.graph)
        module = native.module_type().from_graph(
            imported.inputs, imported.nodes, imported.outputs, sources=imported.sources
        )
        module.run(pipeline)
        seen.append(str(module))
        exporter.apply_edits(gm.graph, imported, module.edits())
        gm.graph.lint()
        gm.recompile()
        return make_boxed_func(gm.forward)

    return torch.compile(step, backend=aot_autograd(fw_compiler=compile_graph), fullgraph=True)


@pytest.mark.parametrize("bad", [None, float("inf"), float("nan")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("step", "inputs"), [(adam, adam_inputs), (lion, lion_inputs)])
def test_fused_step_keeps_every_bit(
    step: Step, inputs: Any, dtype: torch.dtype, bad: float | None
) -> None:
    torch._dynamo.reset()
    expected, given, seen = inputs(dtype, bad), inputs(dtype, bad), []
    passes = "mp-normalize,mp-expand-foreach,mp-check-loss-scale,mp-fuse-scaled-update"
    with torch.no_grad():
        half = step(*expected)
        raised: list[str] = []
        with pytest.raises(Exception, match=r"mp.scaled_update .*mp-lower"):
            rewritten(step, f"func.func({passes})", raised)(*inputs(dtype, bad))
        assert raised[0].count("mp.scaled_update") == (2 if step is adam else 1)
        torch._dynamo.reset()
        half_given = rewritten(step, f"func.func({passes},mp-lower)", seen)(*given)
    assert "_foreach_" not in seen[0]
    for a, b in zip([half, *expected], [half_given, *given], strict=True):
        assert torch.equal(a.nan_to_num(7.0), b.nan_to_num(7.0))
        assert torch.equal(a.isnan(), b.isnan())


def wrong_step(w: Tensor, g: Tensor, scale: Tensor, count: Tensor, found: Tensor) -> Tensor:
    """Clips before it unscales."""
    scaled = torch.exp(g) * scale
    limit = torch.clamp(scaled, -1.0, 1.0)
    torch._amp_update_scale_(scale, count, found, 2.0, 0.5, 2000)
    return (w - limit / scale).to(torch.bfloat16)


def wrong_inputs() -> list[Tensor]:
    state = [torch.randn(8), torch.randn(8), torch.tensor(1024.0)]
    return [*state, torch.zeros((), dtype=torch.int32), torch.zeros(())]


def test_backend_names_a_wrong_use() -> None:
    torch._dynamo.reset()
    with torch.no_grad(), pytest.raises(Exception, match="used wrongly") as caught:
        torch.compile(wrong_step, backend="mpopt", options={"strict": True})(*wrong_inputs())
    assert "still multiplied by the loss scale" in str(caught.value)
    assert "unscale before clipping" in str(caught.value)
    assert "test_loss_scale.py" in str(caught.value)


def test_backend_warns_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("MPOPT_STRICT", "0")
    torch._dynamo.reset()
    mpopt.counters.clear()
    expected, given = wrong_inputs(), wrong_inputs()
    torch.manual_seed(0)
    for a, b in zip(expected, given, strict=True):
        b.copy_(a)
    with torch.no_grad():
        made = torch.compile(wrong_step, backend="mpopt")(*given)
    assert "the loss scale of this step is used wrongly" in caplog.text
    assert mpopt.counters["loss_scale_faults"] == 1
    assert torch.equal(made, wrong_step(*expected))


def test_backend_compiles_a_right_step() -> None:
    torch._dynamo.reset()
    mpopt.counters.clear()
    expected, given = adam_inputs(torch.float32, None), adam_inputs(torch.float32, None)
    with torch.no_grad():
        half = adam(*expected)
        made = torch.compile(adam, backend="mpopt", fullgraph=True)(*given)
    assert mpopt.counters["loss_scale_faults"] == 0 and mpopt.counters["fallbacks"] == 0
    for a, b in zip([half, *expected], [made, *given], strict=True):
        torch.testing.assert_close(a, b, rtol=2e-6, atol=1e-7)
