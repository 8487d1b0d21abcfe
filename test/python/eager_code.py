"""Runs what the backend makes without a code generator.

The graphs that Inductor would compile are run operator by operator. So a rewrite
that the contract `strict` calls bit-identical can be compared bit for bit, and no C++
compiler takes time.
"""

from __future__ import annotations

import contextlib
from unittest import mock

import torch
from functorch.compile import make_boxed_func
from generated import run_step
from mpopt import _torch, backend
from torch import fx
from torch._inductor.compile_fx import compile_fx

GRAPHS: list[torch.fx.GraphModule] = []
"""Forward and backward graphs of the compilations in `eager_code`, in order."""


def _compile(gm, example_inputs, **_):
    GRAPHS.append(gm)
    return make_boxed_func(gm.forward)


def _entry(gm, example_inputs, patches, decompositions=None):
    return compile_fx(
        gm,
        example_inputs,
        inner_compile=_compile,
        config_patches=dict(patches),
        decompositions=decompositions,
    )


def _all_roundings():
    """Stock Inductor keeps the roundings of a graph, too, within."""
    if not _torch.drops_roundings():
        return contextlib.nullcontext()
    return mock.patch.object(_torch.convert_pattern(), "extra_check", return_value=False)


@contextlib.contextmanager
def eager_code():
    """Within, the backend's graphs run eagerly and are collected in GRAPHS."""
    GRAPHS.clear()
    caches = torch._inductor.config.patch(force_disable_caches=True)
    with mock.patch.object(_torch, "compile_fx", _entry), caches, _all_roundings():
        yield GRAPHS


def step(make, inputs, *, dynamic=None, train=True, autocast=torch.bfloat16, **options):
    """Outputs, gradients, buffers and graphs of one step; `options` are the backend's."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = make()
    if isinstance(model, torch.nn.Module):
        model.train(train)
    with eager_code() as graphs:
        compiled = torch.compile(model, backend=backend.mpopt, dynamic=dynamic, options=options)
        torch.manual_seed(1)
        outputs, grads = run_step(compiled, inputs, train=train, autocast=autocast)
        buffers = dict(model.named_buffers()) if isinstance(model, torch.nn.Module) else {}
        return outputs, grads, buffers, list(graphs)


def structure(graph):
    """Operators, arguments and placeholders of a graph, nodes by their number."""
    number = {node: f"%{i}" for i, node in enumerate(graph.nodes)}
    rows = []
    for node in graph.nodes:
        target = "" if node.op == "placeholder" else str(node.target)
        rows.append(
            (node.op, target, *map(str, fx.map_arg((node.args, node.kwargs), number.__getitem__)))
        )
    return rows
