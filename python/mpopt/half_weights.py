"""Half weights as inputs of the compiled step.

Autocast narrows a weight before every use, in every micro-batch. Where an optimizer of
`mpopt.optim` updates the weight, it has written the half copy already: the graph then gets
the copy in place of the weight, and no cast is left. The values are the same bit for bit.

A weight that one operator reads, which autocast runs in a half type, is replaced as an input,
and its gradient is that of the copy. If others read the weight itself as well, as of a tied
embedding, it stays an input beside its copy, which stands for its cast. A weight that several
such operators read is left alone: the gradients of its uses are to be added in fp32.
"""

from __future__ import annotations

import contextlib
import dataclasses
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, fx

from . import _torch, log
from .importer import conversion_target
from .origins import AUTOCAST, Autocast, Capture, checkpointed_body, origin_of, target_name

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


@dataclasses.dataclass
class Plan:
    """Half types by the number of an input."""

    replaced: dict[int, torch.dtype] = dataclasses.field(default_factory=dict)
    added: dict[int, torch.dtype] = dataclasses.field(default_factory=dict)
    """Weights that stay; their copies are further inputs, in this order."""

    def __len__(self) -> int:
        return len(self.replaced) + len(self.added)


def plan(gm: fx.GraphModule, example_inputs: Sequence[Any]) -> Plan:
    """The inputs of Dynamo's graph that have a half copy or can have one."""
    from .optim import _shadow
    from .optim._arrays import is_plain

    found = Plan()
    if not _shadow.any_owner():
        return found
    types = _half_types(gm.graph)
    placeholders = gm.graph.find_nodes(op="placeholder")
    for index, (node, example) in enumerate(zip(placeholders, example_inputs, strict=False)):
        param = _torch.real_input(node, example)
        if not isinstance(param, Tensor) or param.dtype is not torch.float32:
            continue
        readers = _types_of_readers(node, types)
        halves = [dtype for dtype in readers if dtype is not None]
        if len(halves) != 1 or _shadow.owner_of(param) is None:
            continue
        # Such as DTensor, whose pieces have no copies.
        if not is_plain(param) or _torch.is_swapped_by_fsdp(param):
            log.counters["half_weights_unproven"] += 1
            continue
        where = found.replaced if len(readers) == 1 else found.added
        where[index] = halves[0]
    return found


def _half_types(
    graph: fx.Graph, dtypes: Mapping[str, torch.dtype] | None = None
) -> dict[fx.Node, torch.dtype]:
    """What autocast narrows the operands of a node to, where it does; checkpointed
    regions included. `dtypes` is what autocast does where the graph begins."""
    types: dict[fx.Node, torch.dtype] = {}
    state = Autocast(_torch.autocast_dtypes() if dtypes is None else dtypes)
    for node in graph.nodes:
        state.step(node)
        region = _checkpointed(node)
        if region is not None:
            types |= _half_types(region, state.dtypes)
        if target_name(node) in _HALF and node.op in ("call_function", "call_method"):
            dtype = state.dtype_on(_device_of(node))
            if dtype is not None:
                types[node] = dtype
    return types


def _device_of(node: fx.Node) -> str:
    value = node.meta.get("example_value")
    return value.device.type if isinstance(value, Tensor) else ""


def _types_of_readers(node: fx.Node, types: dict[fx.Node, torch.dtype]) -> list[torch.dtype | None]:
    """For each reader of `node`, the half type that it narrows it to, if it does."""
    found: list[torch.dtype | None] = []
    for user in node.users:
        region = _checkpointed(user)
        if region is not None:
            inputs = region.find_nodes(op="placeholder")
            inner = [i for i, arg in zip(inputs, user.args[1:], strict=False) if arg is node]
            found += [dtype for i in inner for dtype in _types_of_readers(i, types)]
        else:
            found += _types_of_readers(user, types) if _is_view(user) else [types.get(user)]
    return found


def _checkpointed(node: fx.Node) -> fx.Graph | None:
    """The region that `node` runs and runs again in backward, if it does that."""
    body = checkpointed_body(node)
    return None if body is None else body.graph


def _is_view(node: fx.Node) -> bool:
    if node.target is operator.getitem:
        index = node.args[1]
        return all(
            isinstance(i, int | slice) for i in (index if isinstance(index, tuple) else [index])
        )
    return node.op in ("call_function", "call_method") and target_name(node) in _VIEWS


def prepare(
    example_inputs: Sequence[Any], capture: Capture, plan: Plan
) -> tuple[list[Any], Capture]:
    """Inputs and capture for the graph with half weights, under `further_inputs`."""
    examples = list(example_inputs)
    mode = _torch.fake_mode_of(examples)
    for index, dtype in plan.replaced.items():
        half = _torch.half_example(examples[index], dtype, mode)
        examples[index] = half.requires_grad_(examples[index].requires_grad)
    inputs, pairs = list(capture.inputs), []
    for index in plan.replaced:
        inputs[index] = dataclasses.replace(inputs[index], role="half_weight")
    for index, dtype in plan.added.items():
        half = _torch.half_example(example_inputs[index], dtype, mode)
        pairs.append((index, len(examples)))
        inputs.append(dataclasses.replace(capture.inputs[index], role="half_weight"))
        examples.append(half)
    return examples, dataclasses.replace(capture, inputs=tuple(inputs), halves=tuple(pairs))


@contextlib.contextmanager
def further_inputs(gm: fx.GraphModule, examples: Sequence[Any]) -> Iterator[None]:
    """Dynamo's graph with as many inputs as `examples`; nothing reads the further ones.

    Dynamo itself looks at the graph again later, and must find it as it was.
    """
    count = len(gm.graph.find_nodes(op="placeholder"))
    added = [_torch.add_input(gm.graph, "half_weight", half) for half in examples[count:]]
    if added:
        gm.recompile()
    try:
        yield
    finally:
        for node in added:
            gm.graph.erase_node(node)
        if added:
            gm.recompile()


def substitute(graph: fx.Graph, pairs: Sequence[tuple[int, int]]) -> None:
    """In the joint graph, let the added inputs stand for the casts of their weights."""
    if not pairs:
        return
    inputs = {_torch.input_index(p): p for p in graph.find_nodes(op="placeholder")}
    for weight, half in pairs:
        if weight in inputs and half in inputs:
            _substitute(inputs[weight], inputs[half])


def _substitute(weight: fx.Node, half: fx.Node) -> None:
    for user in list(weight.users):
        is_same = conversion_target(user) is half.meta["val"].dtype
        if is_same and origin_of(user) == AUTOCAST:
            user.replace_all_uses_with(half)
            weight.graph.erase_node(user)


def feed(compiled: Callable[..., Any], plan: Plan) -> Callable[..., Any]:
    """`compiled` as a function of the weights themselves."""

    def run(*args: Any) -> Any:
        fed = list(args)
        for index, dtype in plan.replaced.items():
            fed[index] = half_of(args[index], dtype)
        with torch.no_grad():
            fed += [half_of(args[index], dtype) for index, dtype in plan.added.items()]
        return compiled(*fed)

    return run


def half_of(param: Tensor, dtype: torch.dtype) -> Tensor:
    """The current half weight, through which gradients reach `param`."""
    from .optim import _shadow
    from .optim._arrays import is_plain

    if not is_plain(param):  # Dynamo tries a graph that it splits for DDP on fake tensors
        return param.to(dtype)
    optimizer = _shadow.owner_of(param)
    is_unproven = _torch.is_swapped_by_fsdp(param)  # sharded after its graph was compiled
    if optimizer is None or is_unproven or not optimizer.can_copy(param, dtype):
        log.counters["half_weights_cast"] += 1
        return param.to(dtype)
    half = optimizer.half_copy(param, dtype)
    if not (torch.is_grad_enabled() and param.requires_grad):
        return half
    keeps_half = optimizer.half_gradients and _torch.has_grad_dtype()
    if keeps_half and _torch.reduces_in_buckets():
        log.counters["half_gradients_widened"] += 1
        keeps_half = False
        _widen_sum(param)
        if param.grad is None:
            param.grad_dtype = param.dtype
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
