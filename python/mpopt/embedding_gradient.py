"""The gradient of a tied embedding without a buffer of zeros.

A tied weight's gradient is a sum: that of the matrix product, and that of the lookup, which
is zero but for the rows of the batch's tokens. Expanded apart, the second costs a buffer of
zeros of the weight's size, and one more read of it for the sum. Here the rows of the tokens
are summed among themselves, in the same order, and added to theirs of the other gradient.
The bits are the same: an untouched row gets what adding zero gives.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, fx

from .composites import Table, inline_function

_LOOKUP = torch.ops.aten.embedding_dense_backward.default
_ADD = torch.ops.aten.add.Tensor

# Rows of tokens are written, read and written again; a row of the weight is written and read.
_ROWS_PER_TOKEN = 3


class _Sum(NamedTuple):
    """`add` of a lookup's gradient to another one."""

    add: fx.Node
    lookup: fx.Node
    other: fx.Node


def fuse(graph: fx.Graph, table: Table) -> int:
    """Expand the sums that gain by it, in place; return how many."""
    count = 0
    for lookup in list(graph.find_nodes(op="call_function", target=_LOOKUP)):
        found = _sum_of(lookup)  # now: the sum before may have taken its operand's place
        if found is not None:
            _expand(found, table)
            count += 1
    return count


def _sum_of(lookup: fx.Node) -> _Sum | None:
    add = next(iter(lookup.users), None)
    if len(lookup.users) != 1 or add is None or add.target is not _ADD or add.kwargs:
        return None
    others = [arg for arg in add.args if arg is not lookup]
    if len(others) != 1 or not isinstance(others[0], fx.Node) or not _gains(lookup, others[0]):
        return None
    return _Sum(add, lookup, others[0])


def _gains(lookup: fx.Node, other: fx.Node) -> bool:
    made, added = lookup.meta["val"], other.meta["val"]
    arguments: Any = lookup.args
    _, indices, rows, _, by_frequency = arguments
    if by_frequency or not isinstance(added, Tensor):
        return False
    if added.dtype is not torch.float32 or made.dtype is not torch.float32:
        return False
    tokens = indices.meta["val"].numel()
    sizes = (tokens, rows, *made.shape, *added.shape)
    if not all(type(size) is int for size in sizes) or made.shape != added.shape:
        return False
    return bool(0 < _ROWS_PER_TOKEN * tokens < rows)


def _expand(item: _Sum, table: Table) -> None:
    arguments: Any = item.lookup.args
    grad, indices, _, padding, _ = arguments

    def compute(grad: Tensor, indices: Tensor, other: Tensor) -> Tensor:
        return add_rows(grad, indices, other, padding)

    inline_function(item.add, compute, [grad, indices, item.other], table)
    item.lookup.graph.erase_node(item.lookup)


def add_rows(grad: Tensor, indices: Tensor, other: Tensor, padding: Any) -> Tensor:
    """`embedding_dense_backward(grad, indices, len(other), padding, False) + other`, float32.

    `grad` is of shape (*indices.shape, columns), `other` of shape (rows, columns).
    """
    tokens = indices.reshape(-1)
    rows = grad.reshape(tokens.numel(), -1)
    rows = rows.masked_fill((tokens == padding).unsqueeze(1), 0.0)
    numbers = torch.arange(tokens.numel(), device=tokens.device)
    # Equal tokens share the slot of the first of them, so that their sum is one row.
    first = torch.full((other.shape[0],), tokens.numel(), device=tokens.device)
    slots = first.scatter_reduce(0, tokens.long(), numbers, "amin")[tokens]
    sums = torch.zeros_like(rows).index_put((slots,), rows, accumulate=True)
    # Adding zero makes +0 of -0. Written so, for x + 0 is taken for x.
    base = torch.where(other == 0.0, 0.0, other)
    return base.index_put((tokens,), sums[slots] + other[tokens])
