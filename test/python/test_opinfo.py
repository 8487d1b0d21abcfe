"""PyTorch's own operator samples through the backend: the same results as Inductor alone.

Bit for bit in outputs and gradients. The one legitimate difference: where an operator's
decomposition narrows and widens again, Inductor by default drops the rounding and we keep
it, as eager does; such operators are named in `opinfo_sample.ROUNDED` and must not be
farther from fp64. The full sweep is marked slow; MPOPT_OPINFO_SHARD=i/n takes part i of n
(from 0). What Inductor alone cannot compile, or does not repeat bit for bit, is skipped
with the reason.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from acceptance import BF16, F16, F32
from mpopt.backend import mpopt
from mpopt.native import op_kind
from opinfo_sample import MAX_WITHOUT_RULE, ROUNDED, SAMPLE, XFAILS
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo
from torch.utils import _pytree as pytree

DTYPES = {"float32": F32, "bfloat16": BF16, "float16": F16}
SAMPLES = 2
REPORT = Path(__file__).parents[2] / "build" / "operators-without-rule.txt"
outcomes: Counter[str] = Counter()


def _name(op: OpInfo) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else str(op.name)


def _shard() -> tuple[int, int]:
    index, _, count = os.environ.get("MPOPT_OPINFO_SHARD", "0/1").partition("/")
    assert 0 <= int(index) < int(count), "MPOPT_OPINFO_SHARD is i/n with 0 <= i < n"
    return int(index), int(count)


def _sweep() -> list[Any]:
    index, count = _shard()
    cases = [
        (op, text)
        for op in op_db
        for text, dtype in DTYPES.items()
        if dtype in op.supported_dtypes("cpu")
    ]
    return [
        pytest.param(op, text, id=f"{_name(op)}-{text}", marks=pytest.mark.slow)
        for i, (op, text) in enumerate(cases)
        if i % count == index
    ]


class _Call:
    """One sample as a function of its tensors."""

    def __init__(self, op: OpInfo, sample: Any) -> None:
        self.op = op.op
        everything = (sample.input, sample.args, sample.kwargs)
        self.leaves, self.spec = pytree.tree_flatten(everything)
        self.places = [i for i, x in enumerate(self.leaves) if isinstance(x, torch.Tensor)]

    def tensors(self, convert: torch.dtype | None = None) -> list[torch.Tensor]:
        """Fresh copies that keep requires_grad; floating ones in `convert` if given."""
        result = []
        for i in self.places:
            tensor = self.leaves[i].detach().clone()
            if convert is not None and tensor.is_floating_point():
                tensor = tensor.to(convert)
            result.append(tensor.requires_grad_(self.leaves[i].requires_grad))
        return result

    def __call__(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        leaves = list(self.leaves)
        for i, tensor in zip(self.places, tensors, strict=True):
            leaves[i] = tensor
        first, args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        result = self.op(first, *args, **kwargs)
        return [x for x in pytree.tree_leaves(result) if isinstance(x, torch.Tensor)]


def _calls(op: OpInfo, dtype: torch.dtype, backward: bool) -> list[_Call]:
    torch.manual_seed(0)
    samples = op.sample_inputs("cpu", dtype, requires_grad=backward)
    return [_Call(op, sample) for sample, _ in zip(samples, range(SAMPLES), strict=False)]


def _evaluate(function: Any, tensors: list[torch.Tensor], backward: bool) -> list[torch.Tensor]:
    torch.manual_seed(0)
    with torch.set_grad_enabled(backward):
        outputs = function(*tensors)
        results = [x.detach() for x in outputs]
        wanted = [x for x in outputs if x.requires_grad]
        if backward and wanted:
            sources = [t for t in tensors if t.requires_grad]
            tangents = [torch.ones_like(x) for x in wanted]
            gradients = torch.autograd.grad(wanted, sources, tangents, allow_unused=True)
            results += [g for g in gradients if g is not None]
    return results


class _All:
    """Several calls as one function, so that they compile once."""

    def __init__(self, calls: list[_Call]) -> None:
        self.calls = calls

    def tensors(self, convert: torch.dtype | None = None) -> list[torch.Tensor]:
        return [t for call in self.calls for t in call.tensors(convert)]

    def __call__(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        results, start = [], 0
        for call in self.calls:
            stop = start + len(call.places)
            results += call(*tensors[start:stop])
            start = stop
        return results


def _compiled(calls: _All, backend: Any, backward: bool) -> list[torch.Tensor]:
    torch._dynamo.reset()

    def function(*tensors: torch.Tensor) -> list[torch.Tensor]:
        return calls(*tensors)

    run = torch.compile(function, backend=backend, dynamic=False)
    return _evaluate(run, calls.tensors(), backward)


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return torch.equal(a, b) or bool(((a == b) | ((a != a) & (b != b))).all())


def _compare(calls: _All, backward: bool, rounded: bool) -> str:
    """ "same", or why this says nothing. Raises AssertionError when we differ."""
    try:
        wanted = _compiled(calls, "inductor", backward)
        again = _compiled(calls, "inductor", backward)
    except Exception as error:
        return f"stock fails too: {type(error).__name__}"
    if not all(map(_same, wanted, again)):
        return "stock does not repeat its own bits"
    got = _compiled(calls, mpopt, backward)
    assert len(got) == len(wanted)
    for number, (a, b) in enumerate(zip(got, wanted, strict=True)):
        assert a.dtype == b.dtype and a.shape == b.shape, number
        if _same(a, b):
            continue
        difference = (a.double() - b.double()).abs().max().item()
        assert rounded, f"result {number} differs by at most {difference:.3g}"
        exact = _evaluate(calls, calls.tensors(torch.float64), backward)[number]
        ours, theirs = ((x.double() - exact).abs().max() for x in (a, b))
        assert ours <= 1.05 * theirs, f"result {number}: error {ours:.3g}, stock's {theirs:.3g}"
    return "same"


@pytest.mark.parametrize(("op", "dtype"), _sweep())
def test_operator_gives_what_inductor_gives(op: OpInfo, dtype: str) -> None:
    name = _name(op)
    reason = XFAILS.get((name, dtype)) or XFAILS.get((name, "any"))
    backward = DTYPES[dtype] in op.supported_backward_dtypes("cpu") and op.supports_autograd
    results = []
    try:
        for with_backward in (False, True) if backward else (False,):
            calls = _calls(op, DTYPES[dtype], with_backward)
            if calls:
                results.append(_compare(_All(calls), with_backward, name in ROUNDED))
    except Exception as error:
        outcomes["expected failure" if reason else "failure"] += 1
        if reason:
            pytest.xfail(f"{reason}: {error}")
        raise
    assert reason is None, f"listed as failing ({reason}) but passes: take it out of XFAILS"
    outcome = next((r for r in results if r != "same"), "same")
    outcomes[outcome.partition(":")[0]] += 1
    print(f"opinfo so far: {dict(outcomes)}")
    if outcome != "same":
        pytest.skip(outcome)


def _sampled() -> Iterator[OpInfo]:
    for name in SAMPLE:
        found = [op for op in op_db if op.name == name]
        assert found, f"{name} is not in op_db"
        yield found[0]


@pytest.mark.parametrize("backward", [False, True], ids=["inference", "backward"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_sample_of_operators_gives_what_inductor_gives(dtype: str, backward: bool) -> None:
    """All in one graph: they compile once. fp32 has nothing to decide and must be untouched."""
    calls, names = [], []
    for op in _sampled():
        supported = op.supported_backward_dtypes if backward else op.supported_dtypes
        if DTYPES[dtype] in supported("cpu") and (op.supports_autograd or not backward):
            calls += _calls(op, DTYPES[dtype], backward)[:1]
            names.append(op.name)
    assert len(names) >= 18
    assert _compare(_All(calls), backward, rounded=False) == "same"


def _operators_of(call: _Call) -> set[str]:
    """The operators that a sample becomes, forward, in aten."""
    graph = make_fx(lambda *tensors: call(*tensors), tracing_mode="fake")(*call.tensors()).graph
    return {str(n.target) for n in graph.nodes if n.op == "call_function"}


@pytest.mark.slow
def test_operators_without_a_rule_are_listed_and_get_no_more() -> None:
    unknown: dict[str, set[str]] = {}
    untraced: list[str] = []
    for op in op_db:
        if F32 not in op.supported_dtypes("cpu"):
            continue
        try:
            for call in _calls(op, F32, False)[:1]:
                for target in _operators_of(call):
                    if target.startswith(("aten.", "prims.")) and op_kind(target) == "unknown":
                        unknown.setdefault(target, set()).add(_name(op))
        except Exception as error:
            untraced.append(f"{_name(op)}: {type(error).__name__}")
    lines = [f"{target}  # {', '.join(sorted(names))}" for target, names in sorted(unknown.items())]
    lines += ["", *(f"# not traced: {text}" for text in sorted(untraced))]
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text("\n".join(lines) + "\n")
    print(f"{len(unknown)} operators have no rule, {len(untraced)} samples were not traced")
    assert len(unknown) <= MAX_WITHOUT_RULE, f"more than before: see {REPORT}"
