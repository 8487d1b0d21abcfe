"""From what the passes changed back to the FX graph, in place.

Nothing is erased before everything else is known to be right, and each earlier
step can be undone: an error leaves the graph exactly as it was.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import fx

from . import _torch, fakes, log, origins, region_op
from .attributes import DTYPE_OF_TEXT, parse_dictionary, type_text
from .errors import MpoptError
from .importer import Imported, operands_of, replace_operands, target_text

# Says nothing about a new node that its neighbour says about itself.
_OWN_META = frozenset(
    {
        "val",
        "tensor_meta",
        "original_aten",
        "desc",
        "unbacked_bindings",
        "eager_input_vals",
        # Of an input, or of a value that the partitioner saves.
        "is_static_input",
        "aot_runtime_epilogue_input_mutation",
        "saved_tensor_with_no_vc_check",
        "saved_for_quantization",
        "dequant_type",
    }
)

_CONTIGUOUS: dict[str, Any] = {"memory_format": torch.contiguous_format}


def apply_edits(graph: fx.Graph, imported: Imported, edits: dict[str, Any]) -> None:
    """Do `edits` (see `Module.edits`) to `graph`, which `imported` describes.

    Raises MpoptError, with `graph` unchanged, when they do not fit it or would change
    the dtype or shape of an output.
    """
    _Edit(graph, imported).apply(edits)


def is_empty(edits: dict[str, Any], imported: Imported) -> bool:
    """True if `edits` leave the graph alone."""
    changed = any(edits[key] for key in ("erased", "retyped", "rewired", "added"))
    return not changed and list(edits["outputs"]) == [number for number, _ in imported.outputs]


class _Edit:
    def __init__(self, graph: fx.Graph, imported: Imported) -> None:
        self.graph = graph
        self.imported = imported
        self.undo: list[Callable[[], object]] = []
        self.dirty: set[fx.Node] = set()
        """Nodes whose traced values are those of before."""
        self.made: dict[int, fx.Node] = {}
        self.picked: dict[tuple[fx.Node, int], fx.Node] = {}
        self.tagged = any("partitioner_tag" in n.meta for n in graph.nodes)
        self.outputs_before = self._output_types()

    def apply(self, edits: dict[str, Any]) -> None:
        known = self.graph.find_nodes(op="placeholder") or self.graph.nodes
        mode = _torch.fake_mode_of([node.meta.get("val") for node in known])
        try:
            with _torch.fake_execution(mode):
                self._prepare(edits)
        except Exception:
            for step in reversed(self.undo):
                step()
            raise
        self._erase(edits["erased"])

    def _prepare(self, edits: dict[str, Any]) -> None:
        erased = self._nodes(edits["erased"])
        self.dirty = self._nodes(edits["retyped"])
        rewired: dict[fx.Node, list[tuple[int, int]]] = {}
        for number, position, value in edits["rewired"]:
            rewired.setdefault(self.imported.fx_nodes[number], []).append((position, value))
        added: dict[fx.Node, list[dict[str, Any]]] = {}
        for item in edits["added"]:
            added.setdefault(self._anchor(item["before"]), []).append(item)
        # In order, so that what is made reads the values of now.
        for node in self.graph.nodes:
            for item in added.pop(node, ()):
                self._add(item)
            if node in rewired:
                self._rewire(node, rewired[node])
            if node in self.dirty and node not in erased:
                self._refresh(node)
        self._set_outputs(edits["outputs"])
        self._check(erased)
        self._check_order({*rewired, *self.made.values(), *self.picked.values()})

    def _nodes(self, numbers: Iterable[int]) -> set[fx.Node]:
        return {self.imported.fx_nodes[number] for number in numbers}

    # Values -----------------------------------------------------------------

    def _value(self, number: int) -> fx.Node:
        """The FX node of value `number`; a `getitem` is made if there is none."""
        if number >= len(self.imported.values):
            if number not in self.made:
                raise MpoptError(f"value {number} is read before it is made")
            return self.made[number]
        node, path = self.imported.values[number]
        for index in path:
            node = self._result(node, index)
        return node

    def _result(self, node: fx.Node, index: int) -> fx.Node:
        key = node, index
        if key not in self.picked:
            count = len(node.meta["val"])
            found = [u for u in node.users if _picks(u, index, count)]
            self.picked[key] = found[0] if found else self._pick(node, index)
        return self.picked[key]

    def _pick(self, node: fx.Node, index: int) -> fx.Node:
        with self.graph.inserting_after(node):
            new = self.graph.call_function(operator.getitem, (node, index))
        self.undo.append(lambda: self.graph.erase_node(new))
        new.meta.update({k: v for k, v in node.meta.items() if k not in _OWN_META})
        new.meta["val"] = node.meta["val"][index]
        return new

    # Additions --------------------------------------------------------------

    def _add(self, added: dict[str, Any]) -> None:
        operands = [self._value(number) for number in added["operands"]]
        before = self._anchor(added["before"])
        with self.graph.inserting_before(before):
            if added["op"] in ("mp.cast", "mp.round"):
                results = [self._convert(added, operands[0])]
            elif added["op"] == "mp.materialize":
                results = [self._store(added, operands[0])]
            elif added["op"] == "mp.region":
                results = self._region(added, operands)
            else:
                results = self._operator(added, operands)
        self._check_types(added, results)
        for i, result in enumerate(results):
            self.made[added["first_result"] + i] = result

    def _anchor(self, number: int) -> fx.Node:
        if number < len(self.imported.fx_nodes):
            return self.imported.fx_nodes[number]
        return self.graph.output_node()

    def _convert(self, added: dict[str, Any], source: fx.Node) -> fx.Node:
        node = self._create(_torch.CONVERT, (source, DTYPE_OF_TEXT[added["dtype"]]), {}, added)
        if added["op"] == "mp.round":
            node = self._create(_torch.CONVERT, (node, source.meta["val"].dtype), {}, added)
        return node

    def _store(self, added: dict[str, Any], source: fx.Node) -> fx.Node:
        """A view of `source` as it is, which makes Inductor store it in its own shape."""
        value = source.meta["val"]
        if not value.is_contiguous():
            return source  # it may be stored in another layout, of which we know nothing
        args = (source, list(value.shape), list(value.stride()))
        return self._create(_torch.AS_STRIDED, args, {}, added)

    def _operator(self, added: dict[str, Any], operands: list[fx.Node]) -> list[fx.Node]:
        like = self._like(added)
        if like is not None and target_text(like.target) == added["op"]:
            target: Any = like.target
            args, kwargs = replace_operands(like, operands)
        elif added["op"].startswith("mp."):
            raise MpoptError(f"{added['op']} is no operator of PyTorch: run mp-lower before")
        else:
            target = _overload(added["op"])
            args, kwargs = (), _named_arguments(target, parse_dictionary(added["args"]), operands)
        node = self._create(target, args, kwargs, added)
        value = node.meta["val"]
        if not isinstance(value, list | tuple):
            return [node]
        return [self._pick(node, index) for index in range(len(value))]

    def _region(self, added: dict[str, Any], operands: list[fx.Node]) -> list[fx.Node]:
        """A call of the region's kernel, and its results."""
        kernel = added["kernel"]
        if kernel is None:
            raise MpoptError("a region has no kernel: run mp-inline-regions before")
        sizes = self._sizes(region_op.signature(kernel), operands, added)
        node = self._create(region_op.load(), (operands, kernel, sizes), {}, added)
        log.counters["regions"] += 1
        return [self._pick(node, index) for index in range(len(node.meta["val"]))]

    def _sizes(
        self, signature: region_op.Signature, operands: list[fx.Node], added: dict[str, Any]
    ) -> list[fx.Node | int]:
        """The extent that the kernel learns at run time, if there is one."""
        if signature.sized_by is None:
            return []
        number, axis = signature.sized_by
        size = operands[number].meta["val"].shape[axis]
        if isinstance(size, int):
            return [size]
        return [self._create(torch.ops.aten.sym_size.int, (operands[number], axis), {}, added)]

    def _like(self, added: dict[str, Any]) -> fx.Node | None:
        return self.imported.fx_nodes[added["like"]] if added["like"] >= 0 else None

    def _create(self, target: Any, args: Any, kwargs: Any, added: dict[str, Any]) -> fx.Node:
        node = self.graph.call_function(target, args, kwargs)
        self.undo.append(lambda: self.graph.erase_node(node))
        donor = self._like(added) or next(iter(node.all_input_nodes), None)
        if donor is not None:
            node.meta.update({k: v for k, v in donor.meta.items() if k not in _OWN_META})
        node.meta.pop(_torch.BARRIER, None)
        node.meta["original_aten"] = target
        node.meta["custom"] = {**(node.meta.get("custom") or {}), origins.TAG: "mpopt"}
        if self.tagged:
            node.meta["partitioner_tag"] = "is_backward" if added["backward"] else "is_forward"
        if added["backward"]:
            node.meta["autograd_backward"] = True
        else:
            node.meta.pop("autograd_backward", None)
        node.meta["val"] = self._evaluate(node)
        return node

    def _evaluate(self, node: fx.Node) -> Any:
        """The traced value of `node`.

        A view needs a layout that a conversion may have given, for it copies. Where the
        conversion is gone, a copy takes its place.
        """
        try:
            return fakes.evaluate(node)
        except (RuntimeError, ValueError):
            if node.target is not torch.ops.aten.view.default:
                raise
        source, *sizes = node.args
        with self.graph.inserting_before(node):
            target = torch.ops.aten.clone.default
            copy = self.graph.call_function(target, (source,), _CONTIGUOUS)
        self.undo.append(lambda: self.graph.erase_node(copy))
        copy.meta.update({k: v for k, v in node.meta.items() if k not in _OWN_META})
        copy.meta["original_aten"] = target
        copy.meta["val"] = fakes.evaluate(copy)
        self._set_arguments(node, (copy, *sizes), node.kwargs)
        return fakes.evaluate(node)

    def _check_types(self, added: dict[str, Any], results: list[fx.Node]) -> None:
        made = [type_text(result.meta["val"]) for result in results]
        wanted = list(added["types"])
        if len(made) != len(wanted) or any(map(_element_differs, made, wanted)):
            raise MpoptError(f"{added['op']} gives {made} where the passes expect {wanted}")

    # Changes to nodes that stay ---------------------------------------------

    def _rewire(self, node: fx.Node, changes: Iterable[tuple[int, int]]) -> None:
        operands = operands_of(node)
        for position, value in changes:
            old, new = operands[position], self._value(value)
            if not _same(old.meta.get("val"), new.meta.get("val")):
                self.dirty.add(node)
            operands[position] = new
        self._set_arguments(node, *replace_operands(node, operands))

    def _set_arguments(self, node: fx.Node, args: Any, kwargs: Any) -> None:
        old = node.args, node.kwargs

        def restore() -> None:
            node.args, node.kwargs = old

        self.undo.append(restore)
        node.args, node.kwargs = args, kwargs

    def _set_outputs(self, numbers: list[int]) -> None:
        if list(numbers) == [number for number, _ in self.imported.outputs]:
            return
        node = self.graph.output_node()
        supply = iter([self._value(number) for number in numbers])
        self._set_arguments(node, fx.map_arg(node.args, lambda _: next(supply)), node.kwargs)

    def _refresh(self, node: fx.Node) -> None:
        """Bring the traced value of `node` up to date, and have its readers follow."""
        if node.op != "call_function" or _torch.is_impure(node) or _converts_alike(node):
            return
        new = self._evaluate(node)
        if not _same(node.meta["val"], new):
            self._set_value(node, new)
            self.dirty.update(node.users)

    def _set_value(self, node: fx.Node, value: Any) -> None:
        old: dict[str, Any] = {k: v for k, v in node.meta.items() if k in ("val", "tensor_meta")}
        self.undo.append(lambda: node.meta.update(old))
        node.meta["val"] = value
        node.meta.pop("tensor_meta", None)

    # The end ----------------------------------------------------------------

    def _output_types(self) -> list[str]:
        return [type_text(leaf.meta["val"]) for leaf in operands_of(self.graph.output_node())]

    def _check(self, gone: set[fx.Node]) -> None:
        after = self._output_types()
        if after != self.outputs_before:
            raise MpoptError(f"outputs would change from {self.outputs_before} to {after}")
        for node in gone:
            for user in node.users:
                if not _goes(user, gone):
                    raise MpoptError(f"{node} is erased but {user} reads it")

    def _check_order(self, touched: set[fx.Node]) -> None:
        """What `Graph.lint` looks for, in the nodes that may have it."""
        touched.add(self.graph.output_node())
        seen: set[fx.Node] = set()
        for node in self.graph.nodes:
            if node in touched and not seen.issuperset(node.all_input_nodes):
                raise MpoptError(f"{node} would read what comes after it")
            seen.add(node)

    def _erase(self, numbers: list[int]) -> None:
        for number in sorted(numbers, reverse=True):
            self._erase_whole(self.imported.fx_nodes[number])

    def _erase_whole(self, node: fx.Node) -> None:
        """With the `getitem` nodes that pick its results."""
        for user in list(node.users):
            self._erase_whole(user)
        self.graph.erase_node(node)


def _converts_alike(node: fx.Node) -> bool:
    """True if `node` converts: then only another shape or layout gives another value."""
    if node.target is not _torch.CONVERT or not isinstance(node.args[0], fx.Node):
        return False
    return _same_layout(node.args[0].meta["val"], node.meta["val"])


def _goes(node: fx.Node, gone: set[fx.Node]) -> bool:
    """True if `node` is among `gone`, or picks a result and only such nodes read it."""
    picks = node.target is operator.getitem
    return node in gone or (picks and all(_goes(user, gone) for user in node.users))


def _picks(user: fx.Node, index: int, count: int) -> bool:
    chosen = user.args[1] if user.target is operator.getitem else None
    return isinstance(chosen, int) and chosen % count == index


def _element(text: str) -> str:
    return text.rpartition("x")[2] if "x" in text else text


def _element_differs(made: str, wanted: str) -> bool:
    return _element(made) != _element(wanted)


def _same(old: Any, new: Any) -> bool:
    if isinstance(old, torch.Tensor) and isinstance(new, torch.Tensor):
        return old.dtype == new.dtype and _same_layout(old, new)
    if isinstance(old, list | tuple) and isinstance(new, list | tuple):
        return len(old) == len(new) and all(map(_same, old, new))
    return str(old) == str(new)


def _same_layout(old: torch.Tensor, new: torch.Tensor) -> bool:
    return _key(old.shape) == _key(new.shape) and _key(old.stride()) == _key(new.stride())


def _key(sizes: Iterable[Any]) -> tuple[Any, ...]:
    """Symbolic sizes by name: to compare them would guard on them."""
    return tuple([size if type(size) is int else str(size) for size in sizes])


def _overload(name: str) -> Any:
    namespace, operator_name, overload = name.split(".")
    try:
        return getattr(getattr(getattr(torch.ops, namespace), operator_name), overload)
    except AttributeError as error:
        raise MpoptError(f"this PyTorch has no operator {name}") from error


def _named_arguments(target: Any, given: dict[str, Any], operands: list[fx.Node]) -> dict[str, Any]:
    """Keyword arguments of `target`: those in `given`, then operands by position."""

    def fill(value: Any) -> Any:
        if isinstance(value, str) and value.startswith("%"):
            return operands[int(value[1:])]
        return [fill(item) for item in value] if isinstance(value, list) else value

    arguments = {name: fill(value) for name, value in given.items()}
    free = iter(operands)
    for name in _torch.tensor_arguments(target):
        if name in given:
            break
        operand = next(free, None)
        if operand is None:
            break
        arguments[name] = operand
    return arguments
