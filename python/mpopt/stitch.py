"""The forward and the backward graph of a training step as one graph, and two again.

After the partitioner it is known what forward saves and what backward computes again, but each
of the two graphs shows one side of a saved value only. In the stitched graph backward reads the
values of forward themselves:

    inputs of forward, inputs of backward that forward does not make (tangents, ...)
    nodes of forward
    nodes of backward; what it computes again appears a second time
    results of forward, results of backward

What passes add belongs to the phase that its tag names, and what backward then reads of forward
is what is saved. Without a change in between both graphs come back node for node.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import fx

from . import _torch, fakes, native
from .errors import MpoptError, UnsupportedError
from .importer import conversion_target, is_backward

_UNCHECKED = "saved_tensor_with_no_vc_check"  # such tensors come last among the saved ones
_TAG = "partitioner_tag"
_IN_BACKWARD = "autograd_backward"
_SYMBOLS = torch.SymInt | torch.SymFloat | torch.SymBool


class _Saved(NamedTuple):
    """A value that forward saves."""

    node: fx.Node
    """Its node in the stitched graph."""
    placeholder: fx.Node | None
    """Its input of the backward graph that was stitched; None for one saved since then."""
    is_kept: bool
    """Saved even if no node reads it, as the number that says how large a symbol is."""


class Stitched:
    """A pair of graphs as one. `graph` may be changed before `split`.

    Raises UnsupportedError when the two do not fit each other in the way that AOTAutograd
    wants it: results of forward from number `result_count` are the first inputs of backward,
    the numbers at the end of them first.
    """

    def __init__(
        self, forward: fx.GraphModule, backward: fx.GraphModule, result_count: int
    ) -> None:
        self.forward, self.backward = forward, backward
        self.result_count = result_count
        self.graph = fx.Graph()
        self.graph.owning_module = _attributes(forward, backward)  # type: ignore[assignment]
        self.original: dict[fx.Node, fx.Node] = {}
        """The node of the pair for each node here that stands for one."""
        self.is_backward: set[fx.Node] = set()
        self.saved = self._stitch()

    # Stitching --------------------------------------------------------------

    def _stitch(self) -> list[_Saved]:
        results = _results(self.forward.graph)
        inputs = self.backward.graph.find_nodes(op="placeholder")
        pairs = _pair(results[self.result_count :], inputs)
        ours: dict[fx.Node, fx.Node] = {}
        theirs: dict[fx.Node, fx.Node] = {}
        for node in self.forward.graph.find_nodes(op="placeholder"):
            self._copy(node, ours, backward=False)
        for node in inputs[len(pairs) :]:
            self._copy(node, theirs, backward=True)
        for node in _inner(self.forward.graph):
            self._copy(node, ours, backward=False)
        theirs.update((placeholder, ours[node]) for node, placeholder in pairs)
        for node in _inner(self.backward.graph):
            self._copy(node, theirs, backward=True)
        front = fx.map_arg(tuple(results[: self.result_count]), ours.__getitem__)
        back = fx.map_arg(tuple(_results(self.backward.graph)), theirs.__getitem__)
        self.graph.output((*front, *back))
        self._add_values()
        return [_Saved(ours[node], p, _is_symbol(node) or not p.users) for node, p in pairs]

    def _copy(self, node: fx.Node, env: dict[fx.Node, fx.Node], *, backward: bool) -> None:
        new = env[node] = self.graph.node_copy(node, env.__getitem__)
        self.original[new] = node
        if backward:
            self.is_backward.add(new)
        if not _belongs(new, backward):
            new.meta[_TAG] = "is_backward" if backward else "is_forward"

    def _add_values(self) -> None:
        """The partitioner leaves none on what it wraps for the state of random numbers."""
        for node in self.graph.nodes:
            if "val" in node.meta or not _torch.is_higher_order(node.target):
                continue
            mode = _torch.fake_mode_of([leaf.meta.get("val") for leaf in node.all_input_nodes])
            if mode is not None:
                with _torch.fake_execution(mode):
                    node.meta["val"] = fakes.run_node(node)

    def repeat_constants(self) -> int:
        """Let backward make the constants that it reads, so that none is saved. How many."""
        found = 0
        for node in list(reversed(self.graph.nodes)):
            readers = [user for user in node.users if user in self.is_backward]
            if readers and node not in self.is_backward and _is_constant(node):
                self._repeat(node, readers)
                found += 1
        return found

    # Splitting --------------------------------------------------------------

    def split(self) -> None:
        """Put the two halves of the graph into the modules that it was made of.

        Raises MpoptError, with the modules as they were, if forward would read backward.
        """
        self._place_new_nodes()
        self._repeat_widenings()
        values, symbols = self._saved_now()
        forward = self._forward_graph(values, symbols)
        backward = self._backward_graph(values, symbols)
        self.saved = [*values, *symbols]
        self.forward.graph, self.backward.graph = forward, backward

    def _ends(self) -> tuple[list[Any], list[Any]]:
        """Results of forward, and of backward."""
        results = _results(self.graph)
        return results[: self.result_count], results[self.result_count :]

    def _place_new_nodes(self) -> None:
        """The phase of each node that a pass added: of its tag, but what forward reads is
        forward's, and what reads backward is backward's."""
        wanted = set(_nodes(self._ends()[0]))
        for node in reversed(self.graph.nodes):
            known = node in self.original and node not in self.is_backward
            if node in wanted or (known and node.op != "output"):
                wanted.update(node.all_input_nodes)
        for node in self.graph.nodes:
            if node.op == "output":
                continue
            if node not in self.original and self._is_new_in_backward(node, node in wanted):
                self.is_backward.add(node)
            if node in wanted and node in self.is_backward:
                raise MpoptError(f"forward would read {node}, which backward computes")

    def _is_new_in_backward(self, node: fx.Node, wanted: bool) -> bool:
        if not self.is_backward.isdisjoint(node.all_input_nodes):
            return True
        picks = node.target is operator.getitem  # never apart from what it picks from
        return is_backward(node) and not wanted and not picks

    def _repeat_widenings(self) -> None:
        """Backward widens for itself: the narrow value is the one to save."""
        saved = {item.node for item in self.saved}
        returned = set(_nodes(self._ends()[1]))
        for node in list(reversed(self.graph.nodes)):
            if node.op != "call_function" or node in self.is_backward or node in saved:
                continue
            readers = [user for user in node.users if user in self.is_backward]
            if (readers or node in returned) and _is_widened(node, saved):
                self._repeat(node, readers)

    def _repeat(self, node: fx.Node, readers: list[fx.Node]) -> None:
        output = self.graph.output_node()
        with self.graph.inserting_before(min(readers, default=output)):
            new = self.graph.create_node(node.op, node.target, node.args, node.kwargs, node.name)
        new.meta = {**node.meta, _TAG: "is_backward", _IN_BACKWARD: True}
        self.is_backward.add(new)
        for reader in readers:
            reader.replace_input_with(node, new)
        if output in node.users:
            front, back = self._ends()
            output.args = ((*front, *(new if item is node else item for item in back)),)
        if not node.users:
            self.graph.erase_node(node)

    # What is saved ----------------------------------------------------------

    def _saved_now(self) -> tuple[list[_Saved], list[_Saved]]:
        """The values and the numbers that forward saves, in the order that AOTAutograd wants."""
        read = self._read_by_backward()
        here = set(self.graph.nodes)
        kept = [s for s in self.saved if s.node in read or (s.is_kept and s.node in here)]
        before = {item.node for item in kept}
        new = [_Saved(node, None, False) for node in read if node not in before]
        for item in new:
            if not isinstance(item.node.meta.get("val"), torch.Tensor | _SYMBOLS):
                raise MpoptError(f"backward would read {item.node}, which cannot be saved")
        values = [s for s in kept if not _is_symbol(s.node)]
        checked = next((i for i, s in enumerate(values) if not _is_checked(s.node)), len(values))
        values[checked:checked] = [s for s in new if not _is_symbol(s.node)]
        symbols = [s for s in [*kept, *new] if _is_symbol(s.node)]
        return values, self._with_sizes(symbols, new)

    def _read_by_backward(self) -> dict[fx.Node, None]:
        returned = set(_nodes(self._ends()[1]))
        return {
            node: None
            for node in self.graph.nodes
            if node not in self.is_backward
            and (node in returned or not self.is_backward.isdisjoint(node.users))
        }

    def _with_sizes(self, symbols: list[_Saved], new: list[_Saved]) -> list[_Saved]:
        """`symbols`, preceded by those that sizes of `new` values need and nobody saves yet."""
        needed = {s: None for item in new for s in _torch.symbols_of(item.node.meta["val"])}
        if not needed:
            return symbols
        bound = {_torch.symbol_of(item.node) for item in symbols}
        nodes = _torch.symbol_nodes(self.graph)
        missing = [nodes[s] for s in needed if s not in bound and s in nodes]
        binding = [item for item in symbols if _torch.symbol_of(item.node)]
        derived = [item for item in symbols if not _torch.symbol_of(item.node)]
        binding += [_Saved(n, None, True) for n in missing if n not in self.is_backward]
        return [*binding, *derived]

    # The two graphs ---------------------------------------------------------

    def _forward_graph(self, values: list[_Saved], symbols: list[_Saved]) -> fx.Graph:
        graph, env = fx.Graph(), dict[fx.Node, fx.Node]()
        for node in self.graph.nodes:
            if node.op != "output" and node not in self.is_backward:
                env[node] = self._restore(graph, node, env)
        nodes = [item.node for item in (*values, *symbols)]
        results = fx.map_arg((*self._ends()[0], *nodes), env.__getitem__)
        output = _return(graph, results, self.forward.graph.output_node())
        self._describe(output, results, [item.node for item in values])
        return graph

    def _describe(self, output: fx.Node, results: Sequence[Any], values: list[fx.Node]) -> None:
        """Bring what `output` says of each result up to date."""
        meta, before = output.meta, len(_results(self.forward.graph))
        if len(meta.get("desc") or ()) == before:
            front = list(meta["desc"][: self.result_count])
            count = len(results) - self.result_count
            unchecked = {i for i, node in enumerate(values) if node.meta.get(_UNCHECKED)}
            tail = [_torch.saved_descriptor(i, i in unchecked) for i in range(count)]
            meta["desc"] = front + tail
        if len(meta.get("output_stack_traces") or ()) == before:
            traces = [n.meta.get("stack_trace") if isinstance(n, fx.Node) else n for n in results]
            meta["output_stack_traces"] = traces

    def _backward_graph(self, values: list[_Saved], symbols: list[_Saved]) -> fx.Graph:
        graph, env = fx.Graph(), dict[fx.Node, fx.Node]()
        for item in (*symbols, *values):
            env[item.node] = self._input(graph, item)
        for node in self.graph.nodes:
            if node.op != "output" and node in self.is_backward:
                env[node] = self._restore(graph, node, env)
        results = fx.map_arg(tuple(self._ends()[1]), env.__getitem__)
        _return(graph, results, self.backward.graph.output_node())
        return graph

    def _input(self, graph: fx.Graph, item: _Saved) -> fx.Node:
        """The input of backward for a saved value."""
        known = item.placeholder
        new = graph.placeholder(known.name if known else item.node.name)
        new.meta = dict((known or item.node).meta)
        original = self.original.get(item.node)
        value = item.node.meta.get("val")
        if original is not None and value is not original.meta.get("val"):
            new.meta["val"] = value
            new.meta.pop("tensor_meta", None)
        return new

    def _restore(self, graph: fx.Graph, node: fx.Node, env: Mapping[fx.Node, fx.Node]) -> fx.Node:
        """A copy of `node` in one of the two graphs, under the name that it had there."""
        original = self.original.get(node)
        args, kwargs = fx.map_arg((node.args, node.kwargs), env.__getitem__)
        name = original.name if original is not None else node.name
        new = graph.create_node(node.op, node.target, args, kwargs, name, node.type)
        new.meta = dict(node.meta)
        if original is not None:
            _take_back(new.meta, original.meta)
        return new


def _take_back(meta: dict[str, Any], original: dict[str, Any]) -> None:
    """What stitching put into the metadata of a node."""
    for key in (_TAG, "val"):
        if key not in original:
            meta.pop(key, None)
    if _TAG in original:
        meta[_TAG] = original[_TAG]


def _return(graph: fx.Graph, results: Any, like: fx.Node) -> fx.Node:
    """Let `graph` return `results`, as `like` does in another graph."""
    output = graph.create_node("output", like.target, (results,), name=like.name)
    output.meta = dict(like.meta)
    return output


def _results(graph: fx.Graph) -> list[Any]:
    results = graph.output_node().args[0]
    if not isinstance(results, list | tuple):
        raise UnsupportedError("a graph that returns no list")
    return list(results)


def _nodes(results: list[Any]) -> Iterator[fx.Node]:
    """What a graph returns that it or its caller computes."""
    return (item for item in results if isinstance(item, fx.Node))


def _inner(graph: fx.Graph) -> Iterator[fx.Node]:
    """All nodes but inputs and output."""
    return (node for node in graph.nodes if node.op not in ("placeholder", "output"))


def _pair(saved: list[Any], inputs: list[fx.Node]) -> list[tuple[fx.Node, fx.Node]]:
    """Each result of forward that is saved, and the input of backward that it becomes."""
    if len(saved) > len(inputs) or not all(isinstance(node, fx.Node) for node in saved):
        raise UnsupportedError("backward has fewer inputs than forward saves")
    if len(set(saved)) < len(saved):
        raise UnsupportedError("forward saves a value twice")
    count = next((i for i, node in enumerate(reversed(saved)) if not _is_symbol(node)), len(saved))
    first = len(saved) - count
    partners = [*inputs[count : len(saved)], *inputs[:count]]
    for i, (node, partner) in enumerate(zip(saved, partners, strict=True)):
        if _is_symbol(partner) != (i >= first) or not _alike(node, partner):
            raise UnsupportedError(f"backward does not read {node} where forward saves it")
    return list(zip(saved, partners, strict=True))


def _alike(node: fx.Node, partner: fx.Node) -> bool:
    one, other = node.meta.get("val"), partner.meta.get("val")
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return isinstance(other, torch.Tensor) == isinstance(one, torch.Tensor)
    return one.dtype is other.dtype and str(one.shape) == str(other.shape)


def _is_symbol(node: fx.Node) -> bool:
    return isinstance(node.meta.get("val"), _SYMBOLS)


def _is_checked(node: fx.Node) -> bool:
    """True for a tensor that autograd guards against writes."""
    return isinstance(node.meta.get("val"), torch.Tensor) and not node.meta.get(_UNCHECKED)


def _belongs(node: fx.Node, backward: bool) -> bool:
    """True if the tag of `node` names the phase that the partitioner chose for it."""
    return _TAG in node.meta and is_backward(node) == backward


def _is_constant(node: fx.Node) -> bool:
    """True for a tensor that is made of nothing, such as one of zeros."""
    if not _torch.is_operator(node.target) or node.all_input_nodes:
        return False
    is_tensor = isinstance(node.meta.get("val"), torch.Tensor)
    return is_tensor and native.op_kind(str(node.target)) == "creation"


def _is_widened(node: fx.Node, saved: set[fx.Node]) -> bool:
    """True for a widened value, or a view of one, where something narrower can be saved."""
    while node not in saved and node.args and isinstance(node.args[0], fx.Node):
        source = node.args[0]
        if conversion_target(node) is not None:
            return _size(source) < _size(node)
        if not (_torch.is_operator(node.target) and node.target.is_view):  # type: ignore[union-attr]
            return False
        node = source
    return False


def _size(node: fx.Node) -> int:
    value = node.meta.get("val")
    return value.element_size() if isinstance(value, torch.Tensor) else 0


def _attributes(*modules: fx.GraphModule) -> torch.nn.Module:
    """The graphs and constants that nodes of `modules` name."""
    root = torch.nn.Module()
    for module in modules:
        for node in module.graph.find_nodes(op="get_attr"):
            name, value = str(node.target), _attribute(module, str(node.target))
            if "." in name or getattr(root, name, value) is not value:
                raise UnsupportedError(f"two things of the name {name}")
            setattr(root, name, value)
    return root


def _attribute(module: Any, name: str) -> Any:
    for part in name.split("."):
        module = getattr(module, part)
    return module
