"""PyTorch's own operator samples through the backend: the same results as Inductor alone.

Where both generate the same code, nothing more needs to be compared. Else both run, and
agree bit for bit in outputs and gradients. The one legitimate difference: where an operator's
decomposition narrows and widens again within a kernel, Inductor by default drops the
rounding and we keep it, as eager does. Such operators are named in `opinfo_sample.ROUNDED`
and must then equal Inductor under `emulate_precision_casts`, bit for bit.

The full sweep is marked slow; MPOPT_OPINFO_SHARD=i/n takes part i of n (from 0). What
Inductor alone cannot compile, or does not repeat bit for bit, is skipped with the reason.
"""

from __future__ import annotations

import operator
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from acceptance import BF16, F16, F32
from generated import code_before_execution
from mpopt import counters
from mpopt.backend import mpopt
from mpopt.native import op_kind
from opinfo_sample import MAX_WITHOUT_RULE, ROUNDED, SAMPLE, XFAILS
from torch._inductor import config as inductor_config
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import OpInfo
from torch.utils import _pytree as pytree

DTYPES = {"float32": F32, "bfloat16": BF16, "float16": F16}
SAMPLES = 2
SAME = ("same code", "same", "rounded")
CONVERSIONS = ("aten._to_copy.default", "prims.convert_element_type.default")
REPORT = Path(__file__).parents[2] / "build" / "operators-without-rule.txt"
outcomes: Counter[str] = Counter()


def _name(op: OpInfo) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else str(op.name)


def _shard() -> tuple[int, int]:
    # Taken out of the environment: the backend refuses a variable that it does not know.
    index, _, count = os.environ.pop("MPOPT_OPINFO_SHARD", "0/1").partition("/")
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
        self.name, self.op = _name(op), op.op
        everything = (sample.input, sample.args, sample.kwargs)
        self.leaves, self.spec = pytree.tree_flatten(everything)
        self.places = [i for i, x in enumerate(self.leaves) if isinstance(x, torch.Tensor)]

    def tensors(self) -> list[torch.Tensor]:
        """Fresh copies that keep requires_grad."""
        found = [self.leaves[i] for i in self.places]
        return [t.detach().clone().requires_grad_(t.requires_grad) for t in found]

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


Results = list[torch.Tensor | None]


def _evaluate(function: Any, tensors: list[torch.Tensor], backward: bool) -> Results:
    """Outputs, then with `backward` a gradient (None if unused) per tensor that asks for one."""
    torch.manual_seed(0)
    with torch.set_grad_enabled(backward):
        outputs = function(*tensors)
        results: Results = [x.detach() for x in outputs]
        wanted = [x for x in outputs if x.requires_grad]
        if backward and wanted:
            sources = [t for t in tensors if t.requires_grad]
            tangents = [torch.ones_like(x) for x in wanted]
            results += torch.autograd.grad(wanted, sources, tangents, allow_unused=True)
    return results


class _All:
    """Several calls as one function, so that they compile once."""

    def __init__(self, calls: list[_Call]) -> None:
        self.calls = calls

    def tensors(self) -> list[torch.Tensor]:
        return [t for call in self.calls for t in call.tensors()]

    def owners(self, backward: bool) -> list[str]:
        """The operator that each result of `_evaluate` belongs to."""
        names = [c.name for c in self.calls for _ in c(*c.tensors())]
        if backward:
            names += [c.name for c in self.calls for t in c.tensors() if t.requires_grad]
        return names

    def __call__(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        results, start = [], 0
        for call in self.calls:
            stop = start + len(call.places)
            results += call(*tensors[start:stop])
            start = stop
        return results


def _compiled(calls: _All, backend: Any, backward: bool, **settings: Any) -> tuple[Results, bool]:
    """The results, and whether a second run gives the same bits."""
    torch._dynamo.reset()

    def function(*tensors: torch.Tensor) -> list[torch.Tensor]:
        return calls(*tensors)

    with inductor_config.patch(settings):
        run = torch.compile(function, backend=backend, dynamic=False)
        first, second = (_evaluate(run, calls.tensors(), backward) for _ in range(2))
    return first, all(map(_same, first, second))


def _code(calls: _All, backend: Any, backward: bool) -> list[str]:
    torch._dynamo.reset()
    run = torch.compile(lambda *tensors: calls(*tensors), backend=backend, dynamic=False)
    return code_before_execution(lambda: _evaluate(run, calls.tensors(), backward))


def _generates_the_same(calls: _All, backward: bool) -> bool:
    """True if both backends generate the same code, which gives the same results."""
    stock = _code(calls, "inductor", backward)
    differentiable = any(t.requires_grad for t in calls.tensors())
    if len(stock) < (2 if backward and differentiable else 1):
        return False  # not all of it was seen
    return _code(calls, mpopt, backward) == stock


def _same(a: torch.Tensor | None, b: torch.Tensor | None) -> bool:
    if a is None or b is None:
        return a is b
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return torch.equal(a, b) or bool(((a == b) | ((a != a) & (b != b))).all())


def _compare(calls: _All, backward: bool) -> str:
    """ "same", "rounded", or why this says nothing. Raises AssertionError when we differ."""
    try:
        if _generates_the_same(calls, backward):
            return "same code"
    except Exception:
        pass  # it is stock that must fail: see below
    try:
        wanted, repeats = _compiled(calls, "inductor", backward)
    except Exception as error:
        return f"stock fails too: {type(error).__name__}"
    if not repeats:
        return "stock does not repeat its own bits"
    got, _ = _compiled(calls, mpopt, backward)
    owners = calls.owners(backward)
    assert len(got) == len(wanted) == len(owners)
    different = [i for i, (a, b) in enumerate(zip(got, wanted, strict=True)) if not _same(a, b)]
    if not different:
        return "same"
    exact, _ = _compiled(calls, "inductor", backward, emulate_precision_casts=True)
    for i in different:
        assert owners[i] in ROUNDED, f"{owners[i]}: {_difference(got[i], wanted[i])}"
        assert _same(got[i], exact[i]), f"{owners[i]}: neither Inductor's bits nor the exact ones"
    return "rounded"


def _difference(a: torch.Tensor | None, b: torch.Tensor | None) -> str:
    if a is None or b is None or a.dtype != b.dtype or a.shape != b.shape:
        return f"{a} instead of {b}"
    return f"differs by at most {(a.double() - b.double()).abs().max().item():.3g}"


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
                results.append(_compare(_All(calls), with_backward))
    except Exception as error:
        outcomes["expected failure" if reason else "failure"] += 1
        if reason:
            pytest.xfail(f"{reason}: {error}")
        raise
    assert reason is None, f"listed as failing ({reason}) but passes: take it out of XFAILS"
    outcome = next((r for r in results if r not in SAME), "same")
    outcomes[outcome.partition(":")[0]] += 1
    print(f"opinfo so far: {dict(outcomes)}")
    if outcome != "same":
        pytest.skip(outcome)


def _sampled() -> Iterator[OpInfo]:
    for name in SAMPLE:
        found = [op for op in op_db if op.name == name]
        assert found, f"{name} is not in op_db"
        yield found[0]


DEFAULT = [("bfloat16", False), ("bfloat16", True), ("float16", True), ("float32", True)]


@pytest.mark.parametrize(("dtype", "backward"), DEFAULT)
def test_sample_of_operators_gives_what_inductor_gives(dtype: str, backward: bool) -> None:
    """All in one graph: they compile once. fp32 has nothing to decide and must be untouched."""
    calls: list[_Call] = []
    names = []
    for op in _sampled():
        supported = op.supported_backward_dtypes if backward else op.supported_dtypes
        if DTYPES[dtype] in supported("cpu") and (op.supports_autograd or not backward):
            calls += _calls(op, DTYPES[dtype], backward)[:1]
            names.append(op.name)
    assert len(names) >= 18
    before = counters["stock_graphs"]
    outcome = _compare(_All(calls), backward)
    if dtype == "float32":
        assert outcome == "same code"
        assert counters["stock_graphs"] > before
    else:
        assert outcome in SAME


def _operators_of(call: _Call) -> set[str]:
    """The functional operators that a sample becomes, forward, in aten: what writes in place
    is made functional before the backend sees it, and `getitem` only names a result."""
    graph = make_fx(lambda *tensors: call(*tensors), tracing_mode="fake")(*call.tensors()).graph
    targets = {n.target for n in graph.nodes if n.op == "call_function"}
    return {str(t) for t in targets if t is not operator.getitem and not _writes(t)}


def _writes(target: Any) -> bool:
    return isinstance(target, torch._ops.OpOverload) and target._schema.is_mutable


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
                    if target not in CONVERSIONS and op_kind(target) == "unknown":
                        unknown.setdefault(target, set()).add(_name(op))
        except Exception as error:
            untraced.append(f"{_name(op)}: {type(error).__name__}")
    lines = [f"{target}  # {', '.join(sorted(names))}" for target, names in sorted(unknown.items())]
    lines += ["", *(f"# not traced: {text}" for text in sorted(untraced))]
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text("\n".join(lines) + "\n")
    print(f"{len(unknown)} operators have no rule, {len(untraced)} samples were not traced")
    assert len(unknown) <= MAX_WITHOUT_RULE, f"more than before: see {REPORT}"
