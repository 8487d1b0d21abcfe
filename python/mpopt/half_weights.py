"""Half weights as inputs of the compiled step.

Autocast narrows a weight before every use, in every micro-batch. Where an optimizer of
`mpopt.optim` updates the weight, it has written the half copy already: the graph then gets
the copy in place of the weight, and no cast is left. The values are the same bit for bit.

A weight qualifies if all its readers are operators that autocast runs in one half type, and
nothing else in the graph reads it. A tied embedding therefore does not.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx

from . import _torch, log
from .origins import Autocast, target_name

# Operators that autocast runs in the half type, whatever the device. (Those that it does so
# for on some devices only are left out.)
_HALF = frozenset(
    {
        "linear",
        "matmul",
        "mm",
        "bmm",
        "addmm",
        "baddbmm",
        "addbmm",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
    }
)
_VIEWS = frozenset({"t", "transpose", "permute", "view", "reshape", "unsqueeze", "squeeze"})

Plan = dict[int, torch.dtype]
"""The type of the half weight by number of the input."""


def plan(gm: fx.GraphModule, example_inputs: Sequence[Any]) -> Plan:
    """The inputs of Dynamo's graph that can be half weights."""
    from .optim import _shadow

    if not _shadow.any_owner():
        return {}
    types = _half_types(gm.graph)
    found: Plan = {}
    placeholders = gm.graph.find_nodes(op="placeholder")
    for index, (node, example) in enumerate(zip(placeholders, example_inputs, strict=False)):
        param = _torch.real_input(node, example)
        if not isinstance(param, Tensor) or param.dtype is not torch.float32:
            continue
        if _shadow.owner_of(param) is None:
            continue
        dtype = _type_of_readers(node, types)
        if dtype is not None:
            found[index] = dtype
    return found


def _half_types(graph: fx.Graph) -> dict[fx.Node, torch.dtype]:
    """What autocast narrows the operands of a node to, where it does."""
    types: dict[fx.Node, torch.dtype] = {}
    state = Autocast(_torch.autocast_dtypes())
    for node in graph.nodes:
        state.step(node)
        if target_name(node) in _HALF and node.op in ("call_function", "call_method"):
            dtype = state.dtype_on(_device_of(node))
            if dtype is not None:
                types[node] = dtype
    return types


def _device_of(node: fx.Node) -> str:
    value = node.meta.get("example_value")
    return value.device.type if isinstance(value, Tensor) else ""


def _type_of_readers(node: fx.Node, types: dict[fx.Node, torch.dtype]) -> torch.dtype | None:
    """The half type that every reader of `node` narrows it to; None if they differ."""
    found: set[torch.dtype | None] = set()
    for user in node.users:
        found.add(_type_of_readers(user, types) if _is_view(user) else types.get(user))
    return found.pop() if len(found) == 1 else None


def _is_view(node: fx.Node) -> bool:
    if node.target is operator.getitem:
        index = node.args[1]
        return all(
            isinstance(i, int | slice) for i in (index if isinstance(index, tuple) else [index])
        )
    return node.op in ("call_function", "call_method") and target_name(node) in _VIEWS


def examples(example_inputs: Sequence[Any], plan: Plan) -> list[Any]:
    """The inputs that the graph is compiled for."""
    result = list(example_inputs)
    for index, dtype in plan.items():
        example = result[index]
        half = torch.empty_like(example, dtype=dtype, requires_grad=False)
        result[index] = half.requires_grad_(example.requires_grad)
    return result


def feed(compiled: Callable[..., Any], plan: Plan) -> Callable[..., Any]:
    """`compiled` as a function of the weights themselves."""

    def run(*args: Any) -> Any:
        fed = list(args)
        for index, dtype in plan.items():
            fed[index] = half_of(args[index], dtype)
        return compiled(*fed)

    return run


def half_of(param: Tensor, dtype: torch.dtype) -> Tensor:
    """The current half weight, through which gradients reach `param`."""
    from .optim import _shadow

    optimizer = _shadow.owner_of(param)
    if optimizer is None or not optimizer.can_copy(param, dtype):
        log.counters["half_weights_cast"] += 1
        return param.to(dtype)
    half = optimizer.half_copy(param, dtype)
    if not (torch.is_grad_enabled() and param.requires_grad):
        return half
    keeps_half = optimizer.half_gradients and _torch.has_grad_dtype()
    if keeps_half and param.grad is None:
        param.grad_dtype = dtype
    return _HalfWeight.apply(param, half, keeps_half)  # type: ignore[no-any-return]


class _HalfWeight(torch.autograd.Function):
    """The half copy of a weight; its gradient is the weight's."""

    @staticmethod
    def forward(ctx: Any, param: Tensor, half: Tensor, keeps_half: bool) -> Tensor:
        ctx.param = param if keeps_half else None
        return half.detach()  # not the copy itself, which outlives this step

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        if ctx.param is not None:
            _widen_sum(ctx.param)
        return grads[0], None, None


def _widen_sum(param: Tensor) -> None:
    """Before something is added to a half gradient."""
    grad = param.grad
    if grad is not None and grad.dtype is not param.dtype:
        param.grad = None
        param.grad_dtype = param.dtype
        param.grad = grad.to(param.dtype)
