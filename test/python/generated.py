"""Comparison of the code that Inductor generates.

Kernels are not compiled by default: generating the text is all that is compared, and
the C++ compiler would take most of the time.
"""

from __future__ import annotations

import contextlib
import re
from unittest import mock

import torch
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.graph import GraphLowering
from torch._inductor.utils import run_and_get_code

_HASH = re.compile(r"\bc[a-z0-9]{51}\b|\b[0-9a-f]{40,}\b")
# Names that Inductor numbers. No other name is touched: renaming `sin` and `cos`, or two
# dtypes, would make different code equal.
_NUMBERED = r"\w+_\d+|(?:arg|buf|ks|s|tmp|u)\d\w*|cpp_fused\w*"
_ARGUMENTS = re.compile(r"(?m)^\s*([\w, ]+?),? = args$")


def normalized(code: str) -> str:
    """`code` without comments and hashes, and with Inductor's own names numbered by first use."""
    code = re.sub(r"(?m)(#(?!include|pragma).*|//.*)$", "", _HASH.sub("H", code))
    # Arguments are called like the operators that made them: those names only where they
    # are no function.
    given = {name for line in _ARGUMENTS.findall(code) for name in re.findall(r"\w+", line)}
    invented = "|".join([*sorted(given, key=len, reverse=True), _NUMBERED])
    names: dict[str, str] = {}

    def numbered(match: re.Match) -> str:
        return names.setdefault(match.group(), f"v{len(names)}")

    code = re.sub(rf"(?<![\w.:])(?:{invented})\b(?!\()", numbered, code)
    code = re.sub(r"\bcpp_fused\w*", numbered, code)
    return "\n".join(line.rstrip() for line in code.splitlines() if line.strip())


def run_step(model, inputs, *, train=True, autocast=torch.bfloat16):
    """One step; returns outputs as a list of tensors, and gradients by name."""
    ctx = torch.autocast("cpu", dtype=autocast) if autocast else contextlib.nullcontext()
    with torch.set_grad_enabled(train):
        with ctx:
            result = model(*inputs)
        leaves = torch.utils._pytree.tree_leaves(result)
        tensors = [t for t in leaves if isinstance(t, torch.Tensor)]
        if train:
            loss = sum(t.float().square().mean() for t in tensors if t.requires_grad)
            loss.backward()
    grads = {}
    if isinstance(model, torch.nn.Module):
        grads = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
    return [t.detach() if isinstance(t, torch.Tensor) else t for t in leaves], grads


def uncompiled_kernels(kernel=lambda *tensors: None):
    """Inductor's C++ kernels become `kernel`, which does nothing unless one is given."""
    return mock.patch.object(AsyncCompile, "cpp_pybinding", return_value=kernel)


class _ReachedError(Exception):
    """Execution came to a kernel that was not compiled."""


def _refuse(*tensors):
    raise _ReachedError


def code_before_execution(run):
    """Modules that Inductor generates while `run()` compiles, backward included, normalized.

    Nothing is compiled by the C++ compiler, and nothing that would read the result of a
    kernel runs. Whatever `run` raises otherwise is raised.
    """
    codes = []
    with (
        torch._inductor.config.patch(force_disable_caches=True),
        torch._functorch.config.patch(force_non_lazy_backward_lowering=True),
        uncompiled_kernels(_refuse),
        mock.patch.object(GraphLowering, "save_output_code", codes.append),
        contextlib.suppress(_ReachedError),
    ):
        run()
    return [normalized(code) for code in codes]


def code_of(
    make, inputs, backend, *, dynamic=None, options=None, train=True, autocast=torch.bfloat16
):
    """Generated modules of a fresh model, normalized. The step's values mean nothing."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = make()
    if isinstance(model, torch.nn.Module):
        model.train(train)
    compiled = torch.compile(model, backend=backend, dynamic=dynamic, options=options)
    with torch._inductor.config.patch(force_disable_caches=True), uncompiled_kernels():
        _, codes = run_and_get_code(run_step, compiled, inputs, train=train, autocast=autocast)
    return [normalized(code) for code in codes]
