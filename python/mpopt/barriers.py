"""Which roundings of half-precision arithmetic Inductor has to perform.

By default Inductor drops a narrowing and widening pair inside a kernel, also one
that the model or a pass put there on purpose. `emulate_precision_casts` makes
explicit conversions exact, but it also rounds after every operation that the trace
marked with a barrier. Taking the marks off gives the wanted middle: conversions are
exact, and a chain of half arithmetic is computed in f32 and rounded once. The marks
stay where a decision is made on the value: see `observed`.
"""

from __future__ import annotations

import operator

from torch import fx

from . import _torch
from .importer import conversion_target, target_text
from .native import op_kind

_OBSERVERS = frozenset({"compare", "index", "rounding", "bitcast"})
# A rounding before one of these is the same as a rounding after it.
_TRANSPARENT = frozenset({"view", "reshape", "movement", "monotone"})


def relax(graph: fx.Graph) -> int:
    """Take barriers off all nodes of `graph` but those whose value is observed.

    Returns how many were taken off.
    """
    keep = observed(graph)
    marked = [n for n in graph.nodes if n.meta.get(_torch.BARRIER) and n not in keep]
    for node in marked:
        del node.meta[_torch.BARRIER]
    return len(marked)


def observed(graph: fx.Graph) -> set[fx.Node]:
    """Nodes whose exact value decides a truth value, an index, an integer or a bit pattern.

    Directly, or through operations that only move elements or commute with rounding.
    """
    found: set[fx.Node] = set()
    for node in reversed(graph.nodes):
        if any(_observes(user) or (user in found and _passes_on(user)) for user in node.users):
            found.add(node)
    return found


def _observes(user: fx.Node) -> bool:
    if user.op != "call_function":
        return False
    dtype = conversion_target(user)
    if dtype is not None:
        return not (dtype.is_floating_point or dtype.is_complex)
    return op_kind(target_text(user.target)) in _OBSERVERS


def _passes_on(user: fx.Node) -> bool:
    if user.op != "call_function":
        return False
    if user.target is operator.getitem or conversion_target(user) is not None:
        return True
    return op_kind(target_text(user.target)) in _TRANSPARENT
