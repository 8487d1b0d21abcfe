"""From an FX graph to the tuples that `Module.from_graph` takes.

Values are numbered: placeholders first, then every result in node order. A
`getitem` node is not a node of the module; it names one result of a node with
several. The same walk over a node's arguments serves `exporter.py`, so operand
numbers mean the same in both directions.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Collection, Iterator
from typing import Any

import torch
from torch import fx

from . import _torch, origins
from .attributes import attribute_text, dtype_text, quoted, type_text
from .errors import UnsupportedError

EFFECTS, BACKWARD = 1, 2
LEFT_OUT = "left_out"
"""The namespace of operators that are to stay as they are."""
RANGE_KEY = "mpopt_range_key"
"""Where the metadata of a node holds its `range_keys.Key`, if ranges were measured."""

NodeTuple = tuple[str, str, tuple[int, ...], tuple[str, ...], int, int]


class Imported:
    """An FX graph as columns, and the way back from numbers to FX nodes."""

    def __init__(self) -> None:
        self.inputs: list[tuple[str, str]] = []
        self.nodes: list[NodeTuple] = []
        self.outputs: list[tuple[int, str]] = []
        self.sources: list[tuple[str, str, int]] = []
        self.fx_nodes: list[fx.Node] = []
        """FX node of each module node."""
        self.values: list[tuple[fx.Node, tuple[int, ...]]] = []
        """FX node that makes each value, and the way to it in what the node returns."""
        self.output_leaves: list[fx.Node] = []
        """FX node of each output, in order."""


def operands_of(node: fx.Node) -> list[fx.Node]:
    """The FX nodes among the arguments of `node`, in schema order, with repeats."""
    return [leaf for _, arg in arguments_of(node) for leaf in _leaves(arg)]


def arguments_of(node: fx.Node) -> Iterator[tuple[str, Any]]:
    """Arguments given to `node` by schema name, in schema order."""
    if not _torch.is_operator(node.target):
        yield from ((f"arg{i}", arg) for i, arg in enumerate(node.args))
        yield from node.kwargs.items()
        return
    names = _facts(node.target).names
    yield from zip(names, node.args, strict=False)
    for name in names[len(node.args) :]:
        if name in node.kwargs:
            yield name, node.kwargs[name]


def replace_operands(node: fx.Node, operands: list[fx.Node]) -> tuple[Any, Any]:
    """Arguments of `node` with `operands` in the places of its own."""
    supply = iter(operands)

    def fill(arg: Any) -> Any:
        return fx.map_arg(arg, lambda _: next(supply))

    if not _torch.is_operator(node.target):
        return tuple(fill(arg) for arg in node.args), {k: fill(v) for k, v in node.kwargs.items()}
    filled = {name: fill(arg) for name, arg in arguments_of(node)}
    names = _facts(node.target).names[: len(node.args)]
    return tuple(filled[name] for name in names), {k: filled[k] for k in node.kwargs}


def _leaves(arg: Any) -> list[fx.Node]:
    if isinstance(arg, fx.Node):
        return [arg]
    if isinstance(arg, list | tuple | dict | slice):
        found: list[fx.Node] = []
        fx.map_arg(arg, found.append)
        return found
    return []


_SCALARS = (int, bool, str, type(None), torch.dtype)


class _Facts:
    """What is known of an operator, whatever its arguments."""

    __slots__ = ("is_impure", "names", "target", "tensors", "text")

    def __init__(self, target: Any) -> None:
        self.target = target  # alive as long as its id is a key
        self.text = _make_target_text(target)
        is_operator = _torch.is_operator(target)
        self.names = _torch.argument_names(target) if is_operator else ()
        self.tensors = _torch.tensor_arguments(target) if is_operator else ()
        self.is_impure: bool | None = _torch.is_impure_operator(target) if is_operator else None


_facts_of: dict[int, _Facts] = {}  # by id: an overload takes long to hash


def _facts(target: Any) -> _Facts:
    facts = _facts_of.get(id(target))
    if facts is None:
        facts = _facts_of[id(target)] = _Facts(target)
    return facts


def target_text(target: Any) -> str:
    """The name of an operator in the module: "aten.mm.default", "_operator.mul"."""
    return _facts(target).text


def _make_target_text(target: Any) -> str:
    if _torch.is_operator(target):
        return str(target)
    if _torch.is_higher_order(target):
        return f"higher_order.{target.name()}"
    module = getattr(target, "__module__", None) or "python"
    return f"{module}.{getattr(target, '__name__', type(target).__name__)}"


def import_graph(
    graph: fx.Graph, capture: origins.Capture | None = None, left_out: Collection[str] = ()
) -> Imported:
    """Describe `graph`. What modules `left_out` do has names that no pass knows, so that it stays
    as it is. Raises UnsupportedError naming the node and what cannot be described."""
    return _Importer(graph, capture, frozenset(left_out)).run()


class _Importer:
    def __init__(
        self, graph: fx.Graph, capture: origins.Capture | None, left_out: frozenset[str]
    ) -> None:
        self.graph = graph
        self.left_out = left_out
        self.known_inputs = capture.inputs if capture else ()
        self.out = Imported()
        self.number: dict[fx.Node, int] = {}
        self.first_values: dict[fx.Node, list[int]] = {}
        """For a node that returns several: the first value in each of them."""
        self.source_of: dict[tuple[str, str], int] = {}
        self.path_of: dict[int, str] = {}
        self.line_of: dict[str, tuple[str, int]] = {}
        self.attribute_texts: dict[Any, str] = {}
        self.scalar_texts: dict[Any, str] = {}
        self.tensor_values: list[bool] = []
        """For each value: whether it is a tensor."""
        self.regions: dict[Any, int] = {}

    def run(self) -> Imported:
        for node in self.graph.nodes:
            try:
                self._visit(node)
            except UnsupportedError as error:
                raise UnsupportedError(f"node {node.name} ({node.target}): {error}") from error
        return self.out

    def _visit(self, node: fx.Node) -> None:
        if node.op == "call_function":
            if node.target is operator.getitem and node.args[0] in self.first_values:
                self._name_result(node)
            else:
                self._function(node)
        elif node.op == "placeholder":
            self._placeholder(node)
        elif node.op == "output":
            self._output(node)
        elif node.op == "get_attr":
            self._attribute(node)
        else:
            raise UnsupportedError(f"an operation of kind {node.op}")

    def _define(self, node: fx.Node, value: Any) -> None:
        self.number[node] = len(self.out.values)
        self.out.values.append((node, ()))
        self.tensor_values.append(isinstance(value, torch.Tensor))

    def _placeholder(self, node: fx.Node) -> None:
        if self.out.nodes:
            raise UnsupportedError("an input after the first operation")
        role, name = self._role(node)
        attrs = f"{{mp.name = {quoted(name)}, mp.role = {quoted(role)}}}"
        value = _value(node)
        self.out.inputs.append((type_text(value), attrs))
        self._define(node, value)

    def _role(self, node: fx.Node) -> tuple[str, str]:
        index = _torch.input_index(node)
        if index is not None and index < len(self.known_inputs):
            known = self.known_inputs[index]
            return known.role, known.name
        if _torch.is_tangent(node):
            return "tangent", node.name
        if not isinstance(node.meta.get("val"), torch.Tensor):
            return "symint", node.name
        return "input", node.name

    def _attribute(self, node: fx.Node) -> None:
        """A constant tensor; a graph module is only a name in its reader's arguments."""
        value = node.meta.get("val")
        if value is None:
            value = _attribute_of(self.graph, node)
        if isinstance(value, torch.nn.Module):
            return
        attrs = f"{{args = {{name = {quoted(str(node.target))}}}}}"
        self._add(node, "prim.get_attr", attrs, (), (type_text(value),))
        self._define(node, value)

    def _function(self, node: fx.Node) -> None:
        value = _value(node)
        is_known = not self.left_out or self._module_path(node.meta) not in self.left_out
        if is_known and conversion_target(node) is not None:
            self._conversion(node, value)
            return
        name = target_text(node.target)
        attrs, operands = self._arguments(node)
        several = isinstance(value, list | tuple)
        paths = list(_paths(value)) if several else []
        leaves = [each for _, each in paths] if several else [value]
        results = tuple(map(type_text, leaves)) if value is not None else ()
        self._add(node, name if is_known else f"{LEFT_OUT}.{name}", attrs, operands, results)
        if several:
            self.first_values[node] = _first_values(value, len(self.out.values))
            self.out.values.extend((node, path) for path, _ in paths)
            self.tensor_values.extend(isinstance(each, torch.Tensor) for each in leaves)
        elif results:
            self._define(node, value)

    def _conversion(self, node: fx.Node, value: Any) -> None:
        attrs = f"{{origin = #mp.origin<{origins.origin_of(node)}>{self._region(node)}}}"
        self._add(node, "mp.cast", attrs, (self._operand(node.args[0]),), (type_text(value),))
        self._define(node, value)

    def _add(
        self,
        node: fx.Node,
        target: str,
        attrs: str,
        operands: tuple[int, ...],
        types: tuple[str, ...],
    ) -> None:
        flags = EFFECTS if target != "mp.cast" and self._has_effects(node) else 0
        key = node.meta.get(RANGE_KEY)
        if key is not None and target != "mp.cast":
            measured = f"mp.measured = {key.attribute()}"
            attrs = f"{attrs[:-1]}, {measured}}}" if attrs else f"{{{measured}}}"
        if is_backward(node):
            flags |= BACKWARD
        source = self._source(node)
        self.out.nodes.append((target, attrs, operands, types, flags, source))
        self.out.fx_nodes.append(node)

    def _has_effects(self, node: fx.Node) -> bool:
        if node.op != "call_function":
            return False
        known = _facts(node.target).is_impure
        return _torch.is_impure(node) if known is None else known

    def _name_result(self, node: fx.Node) -> None:
        producer, index = node.args
        if not isinstance(producer, fx.Node) or not isinstance(index, int):
            raise UnsupportedError("a result that is not chosen by a constant number")
        number = self.first_values[producer][index]
        picked = _value(producer)[index]
        if isinstance(picked, list | tuple):
            self.first_values[node] = _first_values(picked, number)
        else:
            self.number[node] = number

    def _operand(self, arg: Any) -> int:
        number = self.number.get(arg)
        if number is None:
            raise UnsupportedError(f"reads {arg}, which has no single value")
        return number

    def _arguments(self, node: fx.Node) -> tuple[str, tuple[int, ...]]:
        """Attribute text and operands. Nodes with like arguments share one text."""
        operands: list[int] = []
        try:
            key = (id(node.target), self._region(node), *self._signature(node, operands))
            text = self.attribute_texts.get(key)
        except TypeError:  # an argument that cannot be a key
            return self._spell_arguments(node)
        if text is None:
            text, spelled = self._spell_arguments(node)
            self.attribute_texts[key] = text
            return text, spelled
        return text, tuple(operands)

    def _signature(self, node: fx.Node, operands: list[int]) -> list[Any]:
        """All that the text depends on. Appends the operands that it stands over."""
        if not node.kwargs:
            return [self._sign(arg, operands) for arg in node.args]
        return [(name, self._sign(arg, operands)) for name, arg in arguments_of(node)]

    def _sign(self, arg: Any, operands: list[int]) -> Any:
        kind = type(arg)
        if kind is fx.Node:
            number = self.number.get(arg)
            if number is None:
                return "@", str(arg.target) if arg.op == "get_attr" else self._operand(arg)
            operands.append(number)
            return self.tensor_values[number]
        if kind in _SCALARS:
            return kind, arg
        if isinstance(arg, list | tuple):
            return kind is tuple, *[self._sign(item, operands) for item in arg]
        return kind, repr(arg) if isinstance(arg, float) else arg

    def _spell_arguments(self, node: fx.Node) -> tuple[str, tuple[int, ...]]:
        """Attribute text and operands. A plain tensor is left out of the text as long as
        all tensor arguments before it are plain tensors."""
        tensors = _facts(node.target).tensors
        operands: list[int] = []
        entries: list[str] = []
        plain = True
        expected = iter(tensors)
        for name, arg in arguments_of(node):
            # An optional tensor that was left out makes the next one's place unclear.
            plain = plain and (name not in tensors or name == next(expected))
            if plain and name in tensors and self._is_tensor(arg):
                operands.append(self._operand(arg))
                continue
            plain = plain and name not in tensors and not _leaves(arg)
            entries.append(f"{_key_text(name)} = {self._argument_text(arg, operands)}")
        args = "{args = {" + ", ".join(entries) + "}" if entries else ""
        region = self._region(node)
        if not args:
            return ("{" + region.removeprefix(", ") + "}" if region else ""), tuple(operands)
        return args + region + "}", tuple(operands)

    def _is_tensor(self, arg: Any) -> bool:
        return isinstance(arg, fx.Node) and self.tensor_values[self._operand(arg)]

    def _argument_text(self, arg: Any, operands: list[int]) -> str:
        if isinstance(arg, fx.Node):
            if arg.op == "get_attr" and arg not in self.number:
                return quoted(f"@{arg.target}")
            operands.append(self._operand(arg))
            return f'"%{len(operands) - 1}"'
        if isinstance(arg, list | tuple):
            return "[" + ", ".join(self._argument_text(item, operands) for item in arg) + "]"
        if isinstance(arg, dict):
            items = (f"{_key_text(k)} = {self._argument_text(v, operands)}" for k, v in arg.items())
            return "{" + ", ".join(items) + "}"
        if isinstance(arg, slice):
            return self._argument_text((arg.start, arg.stop, arg.step), operands)
        return _scalar_text(self.scalar_texts, arg)

    def _region(self, node: fx.Node) -> str:
        """The checkpointed region that a node is recomputed in, as an attribute."""
        policy = node.meta.get("recompute")
        if policy is None:
            return ""
        region = node.meta.get("ac_graph_id", 0)
        number = self.regions.setdefault(region, len(self.regions))
        return f", mp.recompute = {number}"

    def _source(self, node: fx.Node) -> int:
        meta = node.meta
        trace = meta.get("stack_trace") or ""
        key = (self._module_path(meta), trace)
        index = self.source_of.get(key)
        if index is None:
            if key == ("", ""):
                index = -1
            else:
                index = len(self.out.sources)
                self.out.sources.append((key[0], *self._line(trace)))
            self.source_of[key] = index
        return index

    def _module_path(self, meta: dict[str, Any]) -> str:
        """The path, by the identity of the stack that many nodes share."""
        stack = meta.get("nn_module_stack")
        path = self.path_of.get(id(stack)) if stack else None
        if path is None:
            path = origins.module_path(meta)
            if stack:
                self.path_of[id(stack)] = path
        return path

    def _line(self, trace: str) -> tuple[str, int]:
        line = self.line_of.get(trace)
        if line is None:
            line = self.line_of[trace] = innermost_line(trace)
        return line

    def _output(self, node: fx.Node) -> None:
        for leaf in _leaves(node.args[0]):
            self.out.outputs.append((self._operand(leaf), f"{{mp.name = {quoted(leaf.name)}}}"))
            self.out.output_leaves.append(leaf)


def _paths(value: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    """What lists and tuples in each other hold, and the indices that lead there."""
    for i, item in enumerate(value):
        if isinstance(item, list | tuple):
            yield from (((i, *path), leaf) for path, leaf in _paths(item))
        else:
            yield (i,), item


def _first_values(items: Any, number: int) -> list[int]:
    """The number of the first value in each of `items`, if the first of all is `number`."""
    sizes = (sum(1 for _ in _paths([item])) for item in items)
    return list(itertools.accumulate(sizes, initial=number))[:-1]


def _key_text(name: Any) -> str:
    text = str(name)
    return text if text.isidentifier() else quoted(text)


def _scalar_text(cache: dict[Any, str], arg: Any) -> str:
    try:
        key = (type(arg), arg, str(arg) if isinstance(arg, float) else None)
        text = cache.get(key)
    except TypeError:
        return attribute_text(arg)
    if text is None:
        text = cache[key] = attribute_text(arg)
    return text


def _value(node: fx.Node) -> Any:
    if "val" in node.meta:
        return node.meta["val"]
    target = node.target
    if _torch.is_operator(target) and not target._schema.returns:  # type: ignore[union-attr]
        return None
    raise UnsupportedError("no traced value")


def _attribute_of(graph: fx.Graph, node: fx.Node) -> Any:
    value: Any = graph.owning_module
    for part in str(node.target).split("."):
        value = getattr(value, part)
    return value


def conversion_target(node: fx.Node) -> torch.dtype | None:
    """The dtype that `node` converts to, if conversion is all it does."""
    if node.target is _torch.CONVERT:
        dtype = node.args[1] if len(node.args) > 1 else node.kwargs.get("dtype")
    elif node.target is _torch.TO_COPY and set(node.kwargs) == {"dtype"}:
        dtype = node.kwargs["dtype"]
    else:
        return None
    if not isinstance(dtype, torch.dtype) or not isinstance(node.args[0], fx.Node):
        return None
    dtype_text(dtype)
    return dtype


def is_backward(node: fx.Node) -> bool:
    """True if a node of a joint graph belongs to the backward part."""
    tag = node.meta.get("partitioner_tag")
    return tag is not None and str(tag).endswith("backward")


def innermost_line(trace: str) -> tuple[str, int]:
    """File and line of the last frame of a stack trace, ("", 0) without one."""
    start = trace.rfind('File "')
    if start < 0:
        return "", 0
    file, _, rest = trace[start + 6 :].partition('"')
    digits = rest.partition("line ")[2].partition(",")[0].partition("\n")[0]
    return file, int(digits) if digits.isdigit() else 0
