"""Operators that stay whole until our passes have run, and their expansion.

Inductor decomposes norms, softmax and the like while it traces, which scatters
their conversions over the graph. The backend traces with a table that lacks
KEPT; after the passes, `expand` does what Inductor's table would have done.
"""

from __future__ import annotations

import hashlib
import inspect
import operator
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import fx
from torch.utils import _pytree as pytree

from . import _torch, fakes
from .importer import RANGE_KEY

KEPT_NAMES = (
    "native_layer_norm",
    "native_layer_norm_backward",
    "native_group_norm",
    "native_group_norm_backward",
    "_fused_rms_norm",
    "_fused_rms_norm_backward",
    "_softmax",
    "_softmax_backward_data",
    "_log_softmax",
    "_log_softmax_backward_data",
    "gelu",
    "gelu_backward",
    "silu",
    "silu_backward",
    "nll_loss_forward",
    "nll_loss_backward",
    "embedding_dense_backward",
)

# Per node and not per operator: the expansion has its own.
_OWN_META = frozenset({"val", "tensor_meta", _torch.BARRIER, RANGE_KEY})

Key = tuple[Any, ...]
Table = Mapping[Any, Callable[..., Any]]


def kept_operators() -> frozenset[Any]:
    """The overloads of KEPT_NAMES that this PyTorch has, `out` variants aside."""
    found: set[Any] = set()
    for name in KEPT_NAMES:
        packet = getattr(torch.ops.aten, name, None)
        if packet is not None:
            overloads = [o for o in packet.overloads() if o != "out" and not o.endswith("_out")]
            found.update(getattr(packet, o) for o in overloads)
    return frozenset(found)


KEPT = kept_operators()


class KeepingTable(dict[Any, Any]):
    """Inductor's decompositions without KEPT.

    PyTorch's caches cannot hash a plain dictionary of functions. This one pickles
    as the recipe that makes it, with the digest that tells two recipes apart.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return keeping_table, (None, recipe_digest())


def keeping_table(patches: Mapping[str, Any] | None = None, digest: str = "") -> KeepingTable:
    """Inductor's table under settings `patches`, less KEPT. `digest` is only for pickling."""
    del digest
    stock = _torch.decomposition_table(patches or {})
    return KeepingTable((op, rule) for op, rule in stock.items() if op not in KEPT)


def recipe_digest() -> str:
    """Changes with this file's code or the list of kept operators."""
    text = inspect.getsource(inspect.getmodule(keeping_table) or keeping_table)
    names = ",".join(sorted(map(str, KEPT)))
    return hashlib.sha256((text + names).encode()).hexdigest()


def expand(graph: fx.Graph, table: Table) -> int:
    """Replace every kept operator by its decomposition in `table`, in place.

    Values and metadata become those that tracing with `table` would have given.
    Returns how many were replaced. A failure leaves the operator at hand whole
    and goes up to the caller.
    """
    expander = _Expander(table)
    for node in list(graph.nodes):
        if node.op == "call_function" and node.target in KEPT and node.target in table:
            expander.expand(node)
        else:
            expander.note(node)
    return expander.count


class _Expander:
    """State of one walk over a graph, in order."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.count = 0
        self.memo: dict[Key, fx.Graph | None] = {}
        self.symbols: dict[str, fx.Node] = {}

    def note(self, node: fx.Node) -> None:
        """Remember a node that computes a size. Tracing has one node for each expression."""
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt):
            self.symbols.setdefault(str(value), node)

    def expand(self, node: fx.Node) -> None:
        """Replace `node`, unless the table declines."""
        flat, spec = pytree.tree_flatten((node.args, node.kwargs))
        holes = [i for i, arg in enumerate(flat) if isinstance(arg, fx.Node)]
        values = [flat[i].meta["val"] for i in holes]
        mode = _torch.fake_mode_of(values)
        key = _key(node, flat, spec)
        if key not in self.memo:
            self.memo[key] = _trace(node.target, flat, spec, holes, values, self.table, mode)
        body = self.memo[key]
        if body is None:
            return
        inliner = _Inliner(node, mode, self.symbols)
        _replace(node, inliner.inline(body, [flat[i] for i in holes]))
        for new in inliner.drop_unused():
            self.note(new)
        self.count += 1


def _key(node: fx.Node, flat: list[Any], spec: Any) -> Key:
    """What a decomposition may depend on, including which arguments are the same tensor."""
    ids = [id(arg.meta["val"]) if isinstance(arg, fx.Node) else None for arg in flat]
    repeats = tuple(ids.index(i) for i in ids)
    return (node.target, spec, repeats, *(_argument_key(arg) for arg in flat))


def _argument_key(arg: Any) -> Any:
    if not isinstance(arg, fx.Node):
        return type(arg).__name__, repr(arg)
    value = arg.meta["val"]
    if not isinstance(value, torch.Tensor):
        return "symbol", str(value)
    return (
        value.dtype,
        str(value.device),
        tuple(map(str, value.shape)),
        tuple(map(str, value.stride())),
    )


def _trace(
    target: Any,
    flat: list[Any],
    spec: Any,
    holes: list[int],
    values: list[Any],
    table: Table,
    mode: Any,
) -> fx.Graph | None:
    """The decomposition as a graph whose placeholders are the node arguments; None if none."""

    def call(*tensors: Any) -> Any:
        filled = list(flat)
        for i, tensor in zip(holes, tensors, strict=True):
            filled[i] = tensor
        args, kwargs = pytree.tree_unflatten(filled, spec)
        return target(*args, **kwargs)

    body = _torch.trace(call, values, table, mode).graph
    body.eliminate_dead_code()
    declined = any(n.target is target for n in body.nodes)
    return None if declined else body


def inline_function(
    node: fx.Node, function: Callable[..., Any], arguments: list[fx.Node], table: Table
) -> None:
    """Replace `node` by what `function` of `arguments` does, traced with `table`."""
    values = [argument.meta["val"] for argument in arguments]
    mode = _torch.fake_mode_of(values)
    body = _torch.trace(function, values, table, mode).graph
    inliner = _Inliner(node, mode, {})
    _replace(node, inliner.inline(body, arguments))
    inliner.drop_unused()


class _Inliner:
    """Copies a traced body in front of the node that it stands for."""

    def __init__(self, node: fx.Node, mode: Any, symbols: Mapping[str, fx.Node]) -> None:
        self.node = node
        self.mode = mode
        self.symbols = symbols
        self.made: list[fx.Node] = []
        self.meta = {k: v for k, v in node.meta.items() if k not in _OWN_META}

    def inline(self, body: fx.Graph, arguments: list[fx.Node]) -> Any:
        """The values that the body returns. Erases what it made if it fails."""
        try:
            return self._inline(body, arguments)
        except BaseException:
            for new in reversed(self.made):
                self.node.graph.erase_node(new)
            raise

    def _inline(self, body: fx.Graph, arguments: list[fx.Node]) -> Any:
        env = dict(zip(body.find_nodes(op="placeholder"), arguments, strict=True))
        with self.node.graph.inserting_before(self.node), _torch.fake_execution(self.mode):
            for inner in body.nodes:
                if inner.op == "output":
                    return fx.map_arg(inner.args[0], env.__getitem__)
                if inner.op == "call_function":
                    env[inner] = self._copy(inner, env)
                elif inner.op != "placeholder":
                    raise ValueError(f"{inner.op} in the expansion of {self.node.target}")
        raise ValueError(f"the expansion of {self.node.target} returns nothing")

    def drop_unused(self) -> list[fx.Node]:
        """Erase the made nodes that nobody reads, now that results are handed over."""
        for new in reversed(self.made):
            if not new.users:
                self.node.graph.erase_node(new)
        return [new for new in self.made if new.users]

    def _copy(self, inner: fx.Node, env: dict[fx.Node, fx.Node]) -> fx.Node:
        value = inner.meta.get("val")
        known = self.symbols.get(str(value)) if isinstance(value, torch.SymInt) else None
        if known is not None:
            return known
        args = fx.map_arg(inner.args, env.__getitem__)
        kwargs = fx.map_arg(inner.kwargs, env.__getitem__)
        new = self.node.graph.create_node("call_function", inner.target, args, kwargs, inner.name)
        self.made.append(new)
        new.meta.update(self.meta)
        # A fresh value, not the body's: Inductor reads aliasing off the storages.
        new.meta["val"] = fakes.evaluate(new)
        return new


def _replace(node: fx.Node, results: Any) -> None:
    """Hand the users of `node` over to `results` and erase it."""
    if isinstance(results, list | tuple):
        for user in list(node.users):
            if user.target is not operator.getitem:
                raise ValueError(f"{user} reads all results of {node} at once")
            index: Any = user.args[1]
            user.replace_all_uses_with(results[index])
            node.graph.erase_node(user)
    else:
        node.replace_all_uses_with(results)
    _hand_over_key(node, results)
    node.graph.erase_node(node)


def _hand_over_key(node: fx.Node, results: Any) -> None:
    """What was measured of the first result of `node` is known of what computes it now."""
    first = results[0] if isinstance(results, list | tuple) else results
    if RANGE_KEY in node.meta and isinstance(first, fx.Node):
        first.meta.setdefault(RANGE_KEY, node.meta[RANGE_KEY])
