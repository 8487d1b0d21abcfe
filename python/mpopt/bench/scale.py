"""`scale`: how long mpopt's own stages take on a very large graph.

The graph is a family's joint graph as AOTAutograd traced it, repeated side by side
until it has the nodes that were asked for. Nothing is compiled from it.
"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from typing import Any
from unittest import mock

import torch
from torch import fx
from torch._inductor import config as inductor_config

from .. import log
from ..joint_pass import JointPass, is_training
from ._errors import BenchError, UsageError
from .families import Size
from .rows import Row
from .runner import Runner
from .step import Say, spread
from .variants import Variant

STAGES = ("import", "build", "passes", "export")


def traced(
    family: str, size: Size, variant: Variant, options: Mapping[str, Any] | None = None
) -> tuple[JointPass, fx.Graph]:
    """Return the pass that Inductor calls with the joint graph of one step, and that graph.

    Raises:
        BenchError: the family compiled no graph with a backward part.
    """
    caught: list[tuple[JointPass, fx.Graph]] = []
    original = JointPass.__call__

    def catch(self: JointPass, graph: fx.Graph) -> None:
        if is_training(graph):
            caught.append((self, repeated(graph, 1)))
        original(self, graph)

    with (
        mock.patch.object(JointPass, "__call__", catch),
        inductor_config.patch(force_disable_caches=True),
    ):
        runner = Runner(family, size, variant, options)
        runner.backward(runner.forward())
    if not caught:
        raise BenchError(f"{family}, {variant.name}: no joint graph was traced")
    return caught[0]


def repeated(graph: fx.Graph, copies: int) -> fx.Graph:
    """Return a graph with `copies` independent copies of `graph`, all inputs first."""
    result = fx.Graph(graph.owning_module)
    maps: list[dict[fx.Node, fx.Node]] = [{} for _ in range(copies)]
    for copied in maps:
        for node in graph.find_nodes(op="placeholder"):
            copied[node] = result.node_copy(node)
    outputs: list[fx.Node] = []
    for copied in maps:
        result.graph_copy(graph, copied)
        outputs += [copied[node] for node in graph.output_node().all_input_nodes]
    result.output(tuple(outputs))
    return result


def measure_scale(
    family: str,
    size: Size,
    variants: list[Variant],
    options: Mapping[str, Any],
    *,
    nodes: int,
    repeats: int,
    say: Say,
) -> list[Row]:
    """Return seconds per stage and in all for a graph of at least `nodes` nodes.

    Raises:
        UsageError: a variant is not one of mpopt's.
        BenchError: see `traced`.
    """
    for variant in variants:
        if variant.backend != "mpopt":
            raise UsageError(f"'{variant.name}' does not run mpopt; give mpopt-… variants")
    rows: list[Row] = []
    for variant in variants:
        say(f"{family}: tracing {variant.name}")
        owner, graph = traced(family, size, variant, options)
        copies = -(-nodes // len(graph.nodes))
        samples: dict[str, list[float]] = {stage: [] for stage in (*STAGES, "total")}
        for index in range(repeats):
            say(f"{family}: {copies} copies of {len(graph.nodes)} nodes ({index + 1} of {repeats})")
            for stage, value in _seconds(owner, repeated(graph, copies)).items():
                samples[stage].append(value)
        total = copies * len(graph.nodes)
        rows.append(Row("scale", family, variant.name, "compile", "nodes", total, "nodes"))
        rows += [
            Row("scale", family, variant.name, "compile", f"{stage}_s{suffix}", value, "s", repeats)
            for stage, values in samples.items()
            for suffix, value in spread(values).items()
        ]
        torch._dynamo.reset()
    return rows


def _seconds(owner: JointPass, graph: fx.Graph) -> dict[str, float]:
    """Wall time of each stage on `graph`, which is rewritten."""
    gc.collect()
    log.seconds.clear()
    before = log.counters["fallbacks"]
    owner.run(graph)
    if log.counters["fallbacks"] != before:
        raise BenchError("mpopt fell back on the large graph")
    times = {stage: log.seconds[stage] for stage in STAGES}
    return {**times, "total": sum(times.values())}
