"""The matrix products of a family's training step, each with what comes after it.

A case is a small graph cut from the joint graph as AOTAutograd traces it for the CPU under
autocast: the product, the views of its operands, and the elementwise operators that read it
and nothing that comes later. So shapes, layouts, types and roundings are those of the step.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from .. import _torch
from ..importer import is_backward
from ._errors import BenchError
from ._graphs import joint_backend
from .families import Size, build

aten = torch.ops.aten
PRODUCTS = (aten.mm.default, aten.addmm.default, aten.bmm.default, aten.baddbmm.default)
_MOST_OPERATORS = 24
"""What follows a product beyond this is another kernel's work anywhere."""
_SPECIAL = {
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float32: "f32",
}


@dataclass
class Case:
    """A product with its epilogue, as a module of its own.

    Attributes:
        module: takes the inputs, returns a tuple.
        inputs: shape, strides and type of each, as fake tensors.
        shape: batch, m, n, k.
        phase: forward, dgrad, wgrad or batched.
        count: how many of the family's products are like this one.
    """

    module: fx.GraphModule
    inputs: list[torch.Tensor]
    shape: tuple[int, int, int, int]
    phase: str
    label: str
    count: int = 1

    @property
    def operations(self) -> int:
        """Multiplications and additions of the product."""
        batch, m, n, k = self.shape
        return 2 * batch * m * n * k


def gemm_cases(family: str, size: Size, dtype: torch.dtype = torch.bfloat16) -> list[Case]:
    """The distinct products of a family, the most work first.

    Raises:
        BenchError: no joint graph was traced.
    """
    found: dict[str, Case] = {}
    for graph in _joint_graphs(family, size, dtype):
        for node in graph.nodes:
            if node.target in PRODUCTS and _has_constant_sizes(node):
                case = _Cut(node).case()
                key = _key(case)
                if key in found:
                    found[key].count += 1
                else:
                    found[key] = case
    return sorted(found.values(), key=lambda c: c.count * c.operations, reverse=True)


def _joint_graphs(family: str, size: Size, dtype: torch.dtype) -> list[fx.Graph]:
    caught: list[fx.Graph] = []

    def catch(module: fx.GraphModule, inputs: Any, **kwargs: Any) -> Any:
        caught.append(module.graph)
        raise _CaughtError

    model, batch = build(family, size)
    step = torch.compile(model, backend=joint_backend(catch), dynamic=False)
    with contextlib.suppress(Exception), torch.autocast("cpu", dtype):
        step(*batch)
    torch._dynamo.reset()
    if not caught:
        raise BenchError(f"{family}: no joint graph was traced")
    return caught


class _CaughtError(Exception):
    """The graph is caught; nothing after it is of interest."""


def _has_constant_sizes(node: fx.Node) -> bool:
    values = [n.meta.get("val") for n in (node, *node.all_input_nodes)]
    return all(isinstance(v, torch.Tensor) and all(type(s) is int for s in v.shape) for v in values)


@dataclass
class _Cut:
    """One product and what goes with it."""

    product: fx.Node
    inside: dict[fx.Node, None] = field(default_factory=dict)

    def case(self) -> Case:
        self.inside[self.product] = None
        self._grow()
        views = self._operand_views()
        order = [*views, *self.inside]
        module, inputs = _extract(order, self._results())
        values = [value.meta["val"] for value in inputs]
        shape = _shape_of(self.product)
        return Case(module, values, shape, self._phase(views), self._label(shape))

    def _grow(self) -> None:
        """Take in the elementwise readers that need no later product."""
        numel = self.product.meta["val"].numel()
        beyond: set[fx.Node] = set()  # outside, and not there before the kernel runs
        node: fx.Node = self.product.next
        while node.op != "output" and len(self.inside) <= _MOST_OPERATORS:
            sources = node.all_input_nodes
            if node.target in PRODUCTS or any(s in beyond for s in sources):
                beyond.add(node)
            elif any(s in self.inside for s in sources):
                if self._may_take(node, numel):
                    self.inside[node] = None
                else:
                    beyond.add(node)
            node = node.next

    def _may_take(self, node: fx.Node, numel: int) -> bool:
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or value.numel() != numel:
            return False
        same_phase = is_backward(node) == is_backward(self.product)
        return same_phase and (_is_elementwise(node) or _is_view(node))

    def _operand_views(self) -> list[fx.Node]:
        """The views through which the product reads its operands, in order."""
        found: list[fx.Node] = []
        for operand in self.product.all_input_nodes:
            chain = []
            while _is_view(operand) and operand not in found:
                chain.append(operand)
                operand = operand.all_input_nodes[0]
            found += reversed(chain)
        return found

    def _results(self) -> list[fx.Node]:
        """What is read outside; views of a result count as the result."""
        kept = [n for n in self.inside if any(u not in self.inside for u in n.users)]
        return kept or [list(self.inside)[-1]]

    def _phase(self, views: list[fx.Node]) -> str:
        if self.product.meta["val"].dim() == 3:
            return "batched"
        if not is_backward(self.product):
            return "forward"
        lhs = self.product.args[-2]
        return "wgrad" if _is_transposed(lhs) else "dgrad"

    def _label(self, shape: tuple[int, ...]) -> str:
        batch, *extents = shape
        lhs, rhs = self.product.args[-2:]
        sizes = "x".join(map(str, extents)) if batch == 1 else "x".join(map(str, shape))
        dtype = lhs.meta["val"].dtype  # type: ignore[union-attr]
        layout = "".join("T" if _is_transposed(operand) else "N" for operand in (lhs, rhs))
        name = self.product.target.__name__.partition(".")[0]  # type: ignore[union-attr]
        steps = sum(not _is_view(n) for n in self.inside) - 1
        digest = hashlib.sha256(_text(self.inside).encode()).hexdigest()[:4]
        return f"{name} {sizes} {_SPECIAL.get(dtype, str(dtype))} {layout} +{steps}.{digest}"


def _text(nodes: Iterable[fx.Node]) -> str:
    """What the operators of a case do, whatever their names in the graph."""
    numbers: dict[fx.Node, int] = {}
    lines = []
    for node in nodes:
        numbers[node] = len(numbers)
        known = fx.map_arg((node.args, node.kwargs), lambda n: numbers.get(n, -1))
        lines.append(f"{node.target} {known} {node.meta['val'].dtype}")
    return "\n".join(lines)


def _key(case: Case) -> str:
    inputs = [(tuple(v.shape), v.stride(), v.dtype) for v in case.inputs]
    steps = [n for n in case.module.graph.nodes if n.op == "call_function"]
    return f"{case.phase} {inputs} {_text(steps)}"


def _shape_of(product: fx.Node) -> tuple[int, int, int, int]:
    lhs, rhs = (operand.meta["val"] for operand in product.args[-2:])  # type: ignore[union-attr]
    batch = lhs.shape[0] if lhs.dim() == 3 else 1
    return batch, lhs.shape[-2], rhs.shape[-1], lhs.shape[-1]


def _is_transposed(operand: Any) -> bool:
    value = operand.meta["val"]
    return bool(value.stride(-1) != 1 and value.stride(-2) == 1)


def _is_elementwise(node: fx.Node) -> bool:
    if not _torch.is_operator(node.target) or _torch.is_impure(node):
        return False
    return node.target is _torch.CONVERT or torch.Tag.pointwise in node.target.tags  # type: ignore[union-attr]


def _is_view(node: fx.Node) -> bool:
    return _torch.is_operator(node.target) and bool(node.target.is_view)  # type: ignore[union-attr]


def _extract(order: list[fx.Node], results: list[fx.Node]) -> tuple[fx.GraphModule, list[fx.Node]]:
    """A module of these nodes, and the nodes that are its inputs."""
    graph = fx.Graph()
    known: dict[fx.Node, fx.Node] = {}
    inputs = [s for n in order for s in n.all_input_nodes if s not in order]
    for source in dict.fromkeys(inputs):
        known[source] = graph.placeholder(source.name)
        known[source].meta["val"] = source.meta["val"]
    for node in order:
        known[node] = graph.node_copy(node, known.__getitem__)
    graph.output(tuple(known[node] for node in results))
    return fx.GraphModule(torch.nn.Module(), graph), list(dict.fromkeys(inputs))


def in_double(module: fx.GraphModule) -> fx.GraphModule:
    """The same computation without roundings, for inputs in fp64."""
    graph = fx.Graph()
    graph.output(graph.graph_copy(module.graph, {}))
    for node in graph.nodes:
        if node.target is _torch.CONVERT and node.args[1].is_floating_point:
            node.args = (node.args[0], torch.float64)
        elif "dtype" in node.kwargs and node.kwargs["dtype"] is not None:
            node.kwargs = {**node.kwargs, "dtype": torch.float64}
    return fx.GraphModule(torch.nn.Module(), graph)
