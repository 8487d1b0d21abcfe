"""Computes regions of Dynamo's graph in fp32, whatever autocast or the model's types say.

The graph becomes what `with torch.autocast(..., enabled=False)` and `.float()` on everything
that comes in would have given, so that backward is in fp32, too. What the graph returns keeps its
type.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterator

import torch
from torch import fx

from . import _torch, _torch_watch, origins

EVERYTHING = "*"
"""The region that all nodes are in."""
_HALVES = frozenset({torch.float16, torch.bfloat16})


def is_inside(path: str, regions: Collection[str]) -> bool:
    """True if a module path is that of a region, or of a module in one. The region "" is what
    the graph computes outside of all modules."""
    if path in regions or EVERYTHING in regions:
        return True
    return any(region and path.startswith(f"{region}.") for region in regions)


def widen(gm: fx.GraphModule, regions: Collection[str]) -> int:
    """Compute `regions` of `gm` and of the graphs inside in fp32. Returns how many nodes it
    took."""
    if not regions:
        return 0
    count = sum(_widen_graph(graph, regions) for graph in origins.graphs_of(gm))
    if count:
        _keep_output_types(gm.graph)
        for module in gm.modules():
            if isinstance(module, fx.GraphModule):
                module.recompile()
    return count


def _widen_graph(graph: fx.Graph, regions: Collection[str]) -> int:
    runs = list(_runs(graph, regions))
    inside = {node for run in runs for node in run}
    count = len(inside)
    for run in runs:
        inside |= _widen_run(graph, run)
    _narrow_for_others(graph, inside)
    return count


def _runs(graph: fx.Graph, regions: Collection[str]) -> Iterator[list[fx.Node]]:
    """Nodes of `regions` that follow each other."""
    run: list[fx.Node] = []
    for node in graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            continue
        if _computes(node) and is_inside(origins.module_path(node.meta), regions):
            run.append(node)
        elif run:
            yield run
            run = []


def _computes(node: fx.Node) -> bool:
    """True if a node can read wider operands: it does not write into one of them."""
    if node.op not in ("call_function", "call_method") or _torch.is_higher_order(node.target):
        return False
    name = origins.target_name(node)
    return name not in ("_enter_autocast", "_exit_autocast") and not origins.is_write(node)


def _widen_run(graph: fx.Graph, run: list[fx.Node]) -> set[fx.Node]:
    """Returns the conversions that it added."""
    with graph.inserting_before(run[0]):
        begins = [_torch_watch.autocast_node(graph, device) for device in sorted(_devices(run))]
    wide: dict[fx.Node, fx.Node] = {}
    for node in run:
        if node.target is operator.getitem:
            continue
        for arg in node.all_input_nodes:
            if arg not in wide and _is_half(arg):
                with graph.inserting_before(node):
                    wide[arg] = graph.call_method("float", (arg,))
                wide[arg].meta = _place_of(node)
            if arg in wide:
                node.replace_input_with(arg, wide[arg])
    with graph.inserting_after(run[-1]):
        for begin in begins:
            _torch_watch.end_autocast_node(graph, begin)
    return set(wide.values())


def _narrow_for_others(graph: fx.Graph, inside: set[fx.Node]) -> None:
    """Readers outside get the traced type where no autocast is on that would convert for them:
    their other operands have it."""
    state = origins.Autocast(_torch.autocast_dtypes())
    for node in list(graph.nodes):
        state.step(node)
        if node in inside or state.active or not _computes(node):
            continue
        for arg in node.all_input_nodes:
            if arg in inside and _is_half(arg):
                with graph.inserting_before(node):
                    narrow = graph.call_method("to", (arg, arg.meta["example_value"].dtype))
                narrow.meta = _place_of(node)
                node.replace_input_with(arg, narrow)


def _devices(run: list[fx.Node]) -> set[str]:
    values = (n.meta.get("example_value") for node in run for n in (node, *node.all_input_nodes))
    return {value.device.type for value in values if isinstance(value, torch.Tensor)}


def _is_half(node: fx.Node) -> bool:
    value = node.meta.get("example_value")
    return isinstance(value, torch.Tensor) and value.dtype in _HALVES


def _place_of(node: fx.Node) -> dict[str, object]:
    kept = ("nn_module_stack", "stack_trace", "source_fn_stack")
    return {key: node.meta[key] for key in kept if key in node.meta}


def _keep_output_types(graph: fx.Graph) -> None:
    output = graph.find_nodes(op="output")[0]
    for leaf in output.all_input_nodes:
        if leaf.op != "placeholder" and _is_half(leaf):
            with graph.inserting_before(output):
                back = graph.call_method("to", (leaf, leaf.meta["example_value"].dtype))
            back.meta = dict(leaf.meta)
            output.replace_input_with(leaf, back)
