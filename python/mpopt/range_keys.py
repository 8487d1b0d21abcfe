"""Names of values that are the same in every trace of a model.

A value is known by the path of its module, the operator that makes it, the number of the
operator among those of equal path, operator and phase in graph order, and the number of the
result. Conversions and views make no value of their own: theirs are their operand's.
"""

from __future__ import annotations

import operator
from typing import Literal, NamedTuple

import torch
from torch import fx

from . import _torch, origins
from .attributes import quoted
from .importer import RANGE_KEY, conversion_target, is_backward, target_text
from .native import op_kind

Phase = Literal["forward", "backward"]
_MAKES_NO_VALUE = frozenset({"view", "reshape", "shape", "creation", "effect"})


class Key(NamedTuple):
    """Of a value; of an input of a graph, by name and role."""

    module: str
    op: str
    ordinal: int = 0
    phase: Phase = "forward"
    result: int = 0

    def attribute(self) -> str:
        """As the attribute `mp.measured` of an operation."""
        return f'[{quoted(self.module)}, {quoted(self.op)}, {self.ordinal}, "{self.phase}"]'

    def __str__(self) -> str:
        number = f" #{self.ordinal}" if self.ordinal else ""
        result = f" result {self.result}" if self.result else ""
        return f"{self.module or '(top)'}: {self.op}{number}{result}, {self.phase}"


def mark(graph: fx.Graph, inputs: tuple[origins.Input, ...] = ()) -> None:
    """Leave a key in the metadata of every node that makes a floating-point value. `inputs`
    are those of the compiled function, as captured."""
    counts: dict[tuple[str, str, Phase], int] = {}
    for node in graph.nodes:
        if node.op == "placeholder":
            node.meta[RANGE_KEY] = _key_of_input(node, inputs)
        elif node.op == "call_function" and _makes_values(node):
            name = target_text(node.target)
            phase: Phase = "backward" if is_backward(node) else "forward"
            path = origins.module_path(node.meta)
            ordinal = counts.get((path, name, phase), 0)
            counts[path, name, phase] = ordinal + 1
            if op_kind(name) not in _MAKES_NO_VALUE and _is_floating(node.meta.get("val")):
                node.meta[RANGE_KEY] = Key(path, name, ordinal, phase)


def key_of(node: fx.Node) -> Key | None:
    """What `mark` left."""
    key = node.meta.get(RANGE_KEY)
    return key if isinstance(key, Key) else None


def _makes_values(node: fx.Node) -> bool:
    return node.target is not operator.getitem and conversion_target(node) is None


def _key_of_input(node: fx.Node, inputs: tuple[origins.Input, ...]) -> Key:
    index = _torch.input_index(node)
    if index is not None and index < len(inputs):
        return Key(inputs[index].name, inputs[index].role)
    role = "tangent" if _torch.is_tangent(node) else "input"
    return Key(node.name, role)


def _is_floating(value: object) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_is_floating, value))
    return isinstance(value, torch.Tensor) and value.is_floating_point()
