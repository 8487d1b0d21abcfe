"""`placement`: what a training step moves and keeps by the model of kernels, ours beside stock's.

The graph is a joint graph as a GPU would trace it. It goes through Inductor's joint passes and its
partitioner, and `mp-report-traffic` counts on the pair. Nothing is compiled and nothing runs, so
that models of any size can be looked at without a GPU.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from .. import _torch, importer, native
from ..importer import conversion_target
from ..joint_pass import JointPass
from ..options import Options, resolve
from ..origins import Capture
from ..stitch import Stitched
from ._errors import BenchError
from ._graphs import JointGraph
from .rows import Row
from .step import Say

_COUNT = "func.func(mp-normalize,mp-report-traffic)"
_CAPTURE = Capture((), (), True, {})


@dataclass(frozen=True)
class Level:
    """How a graph is treated: options of the backend, None for Inductor alone. Ours get the
    half copies of weights as inputs."""

    options: Mapping[str, Any] | None


LEVELS: dict[str, Level] = {
    "stock": Level(None),
    "precise": Level({"numerics": "precise"}),
    "relaxed": Level({"numerics": "relaxed"}),
    "relaxed-free": Level({"numerics": "relaxed", "epsilon": 10}),
}
"""What is compared. The last is not held back by what the noise model says of errors."""

_METRICS = {
    "pointwise_bytes": ("fused_bytes", "bytes"),
    "saved_bytes": ("saved_bytes", "bytes"),
    "cast_only_kernels": ("cast_kernels", "kernels"),
    "cast_only_bytes": ("cast_bytes", "bytes"),
    "pointwise_kernels": ("fused_kernels", "kernels"),
    "library_bytes": ("external_bytes", "bytes"),
}


def measure_placement(name: str, load: Callable[[], JointGraph], say: Say) -> list[Row]:
    """Return the rows of one graph. `load` gives a fresh one, which is rewritten."""
    rows: list[Row] = []

    def add(level: str, metric: str, value: float, unit: str) -> None:
        rows.append(Row("placement", name, level, "step", metric, value, unit))

    for level, how in LEVELS.items():
        say(f"{name}: {level}")
        traffic = traffic_of(load(), how)
        for metric, (key, unit) in _METRICS.items():
            add(level, metric, traffic[key], unit)
        add(level, "all_bytes", traffic["fused_bytes"] + traffic["external_bytes"], "bytes")
    return rows


def traffic_of(graph: JointGraph, level: Level) -> dict[str, int]:
    """Return what `mp-report-traffic` says of a training step. `graph` is rewritten."""
    if level.options is None:
        return count(_partitioned(graph).graph, "")
    options = resolve(level.options, target="cuda", strict=True)
    give_half_weights(graph)
    JointPass(options, _CAPTURE, {}, False)(graph.module.graph)
    stitched = _partitioned(graph)
    stitched.repeat_constants()
    return count(stitched.graph, _storage_pipeline(options))


def _storage_pipeline(options: Options) -> str:
    return f"mp-partitioned{{numerics={options.numerics} epsilon={options.epsilon!r}}}"


def _partitioned(graph: JointGraph) -> Stitched:
    """The graph after Inductor's own passes and its partitioner."""
    from torch._inductor import lowering  # noqa: F401  # registers what the passes look for
    from torch._inductor.fx_passes.joint_graph import joint_graph_passes
    from torch._inductor.virtualized import V

    with V.set_fake_mode(graph.mode):
        joint_graph_passes(graph.module)
    pair = _torch.partition(
        graph.module,
        [],
        num_fwd_outputs=graph.result_count,
        static_lifetime_input_indices=list(graph.static),
    )
    return Stitched(*pair, graph.result_count)


def count(graph: fx.Graph, pipeline: str, target: str = "cuda") -> dict[str, int]:
    """Return what `mp-report-traffic` says of a stitched graph after the passes of `pipeline`."""
    imported = importer.import_graph(graph, _CAPTURE)
    module = native.module_type().from_graph(
        imported.inputs,
        imported.nodes,
        imported.outputs,
        sources=imported.sources,
        attributes=f'{{mp.target = "{target}"}}',
    )
    if pipeline:
        module.run(pipeline)
    module.run(_COUNT)
    found = re.search(r"mp\.traffic = \{([^}]*)\}", str(module))
    if found is None:
        raise BenchError("mp-report-traffic left no count")
    return {key: int(value) for key, value in re.findall(r"(\w+) = (-?\d+)", found[1])}


def give_half_weights(graph: JointGraph) -> None:
    """Let inputs stand for the half copies of parameters, as an optimizer of ours writes them."""
    nodes = graph.module.graph.find_nodes(op="placeholder")
    last = [node for node in nodes if not _torch.is_tangent(node)][-1]
    for weight in [nodes[index] for index in graph.static]:
        halves: dict[torch.dtype, fx.Node] = {}
        for cast in [user for user in weight.users if _narrows(user)]:
            dtype = cast.meta["val"].dtype
            if dtype not in halves:
                with graph.module.graph.inserting_after(last):
                    last = graph.module.graph.placeholder(f"half_{len(halves)}_{weight.name}")
                last.meta = {**weight.meta, "val": cast.meta["val"]}
                halves[dtype] = last
            cast.replace_all_uses_with(halves[dtype])
            graph.module.graph.erase_node(cast)
    graph.module.recompile()


def _narrows(node: fx.Node) -> bool:
    dtype = conversion_target(node) if node.op == "call_function" else None
    return dtype is not None and dtype.is_floating_point and dtype.itemsize == 2
