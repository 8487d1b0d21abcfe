"""Regions of the graph that become kernels of our own.

The passes choose them and write their kernels (`mp-outline-hot-regions`,
`mp-lower-regions-to-linalg`). What is left is to compile each kernel, so that one that no
backend takes is the graph again, before Inductor sees it.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import torch
from torch import fx

from . import kernels, log, machine, region_op
from .errors import MpoptError
from .options import OUTLINE, Options

if TYPE_CHECKING:
    from ._mpopt import Module

_STEPS = (
    "mp-normalize",
    "mp-raise",
    OUTLINE,
    "mp-lower-regions-to-linalg",
    "mp-inline-regions{without-kernel}",
    "mp-lower",
)
INLINE = "func.func(mp-inline-regions{without-kernel},mp-lower)"
"""Puts back what has no kernel, as the framework's operators."""


def are_wanted(options: Options, graph: fx.Graph) -> bool:
    """True if `options` ask for kernels where `graph` runs."""
    if options.regions == "off" or not options.pass_pipeline():
        return False
    return options.regions != "cpu" or _device_of(graph).type == "cpu"


def announce(options: Options) -> None:
    """Define the operator: a graph that PyTorch has in a cache calls it, and our passes do not
    run. Where it cannot be loaded, `settle` says so."""
    if options.regions != "off":
        with contextlib.suppress(MpoptError):
            region_op.load()


def passes(options: Options, graph: fx.Graph) -> list[str]:
    """The passes that make regions of a graph; none where none are wanted."""
    if not are_wanted(options, graph) or OUTLINE in options.disable_passes:
        return []
    device = _device_of(graph).type
    # On the CPU, the model is the attribute that the function has anyway.
    target = machine.auto_name(device) if device == "cuda" else "cpu"
    everything = " all" if options.regions == "all" else ""
    # "strict" refuses every candidate, with a remark.
    numerics = " numerics=strict" if options.numerics == "strict" else ""
    outline = f"{OUTLINE}{{target={target}{everything}{numerics}}}"
    return [outline if step == OUTLINE else step for step in _STEPS]


def settle(module: Module, graph: fx.Graph, strict: bool) -> None:
    """Compile the kernels of `module`; put regions back whose kernel does not compile.

    Raises MpoptError instead under `strict`.
    """
    texts = module.kernels()
    if not texts:
        return
    region_op.load()
    device = _device_of(graph)
    refused = [text for text in texts if not _compiles(text, device, strict)]
    if refused:
        module.drop_kernels(refused)
        module.run(INLINE)
    log.counters["region_kernels"] += len(texts) - len(refused)


def _compiles(text: str, device: torch.device, strict: bool) -> bool:
    try:
        kernels.prepare(text, device.type, device.index or 0)
    except MpoptError as error:
        log.counters["fallbacks"] += 1
        log.counters["fallbacks.kernels"] += 1
        if strict:
            raise
        _warn(str(error))
        return False
    return True


_warned: set[str] = set()


def _warn(reason: str) -> None:
    if reason not in _warned:
        _warned.add(reason)
        log.warn(f"mpopt: a region stays with Inductor: {reason}")


def _device_of(graph: fx.Graph) -> torch.device:
    """Where a graph runs: on the GPU that one of its inputs is on, else on the CPU."""
    for node in graph.find_nodes(op="placeholder"):
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and value.device.type == "cuda":
            return value.device
    return torch.device("cpu")
