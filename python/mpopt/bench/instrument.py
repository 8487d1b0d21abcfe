"""What Inductor schedules: each kernel's phase, bytes, and whether it only converts.

The one module of the benchmark that uses PyTorch's private API.  It reads the
scheduler just before code generation, so that it sees the kernels of any backend
that ends in Inductor; the caches of whole graphs are off meanwhile, so that every
graph is scheduled.  (Libraries of generated C++ are still reused: they are looked
up by their text, after scheduling.)

A kernel *only converts* if its loop bodies do nothing but load, convert and store
floating-point values.  (One that stores elsewhere what it loaded, and in the same
dtype, is a copy and does not count.)  Its role is

* `weight`: all it reads are parameters or buffers;
* `gradient`: it widens gradients of parameters that the graph returns as they are;
* `activation`: anything else.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal
from unittest import mock

import torch
from torch._dynamo.utils import counters
from torch._functorch import config as functorch_config
from torch._guards import TracingContext
from torch._inductor import config, ir
from torch._inductor.dependencies import MemoryDep
from torch._inductor.scheduler import (
    BaseSchedulerNode,
    NopKernelSchedulerNode,
    Scheduler,
    SchedulerNode,
)
from torch._inductor.virtualized import V

Phase = Literal["forward", "backward"]
Role = Literal["activation", "weight", "gradient"]

_HALVES = (torch.bfloat16, torch.float16)
_MOVES_ONLY = {"ops", "get_index", "load", "to_dtype", "store", "output"}
_INPUT_NAME = re.compile(r"(?:primals_(?P<training>\d+)|arg(?P<inference>\d+)_\d+)")


@dataclass(frozen=True)
class Kernel:
    """One scheduled kernel.

    Attributes:
        phase: of the graph that it belongs to (inference counts as forward).
        name: Inductor's name.
        extern: a library call or a matmul template rather than a generated loop.
        bytes: read plus written, each buffer once.
        role: what a kernel that only converts converts; None for any other kernel.
        moves: it also permutes, slices or broadcasts what it converts.
        shape: of the first buffer that it writes.
        source: dtypes that it reads.
        target: dtypes that it writes.
        origins: the graph's operators that it came from.
        module: path of the module that the first origin was traced in, or "".
    """

    phase: Phase
    name: str
    extern: bool
    bytes: int
    role: Role | None
    moves: bool
    shape: tuple[int, ...]
    source: tuple[str, ...]
    target: tuple[str, ...]
    origins: tuple[str, ...]
    module: str


class _Graph:
    """The parameters that a graph reads and the parameter gradients that it returns."""

    def __init__(self, graph: Any) -> None:
        context = TracingContext.try_get()
        metadata = context.fw_metadata if context is not None else None
        self._static = frozenset(metadata.static_input_indices if metadata is not None else ())
        self.phase: Phase = "backward" if graph.is_backward else "forward"
        self.parameters = {
            str(node.target)
            for node in graph.graph.find_nodes(op="placeholder")
            if self._is_parameter(node.meta.get("desc"), str(node.target))
        }
        self.gradients = self._gradients(graph) if graph.is_backward else set()

    def _is_parameter(self, description: Any, name: str) -> bool:
        """Whether an input is a parameter, by AOTAutograd's description or else by its name."""
        kind = type(description).__name__
        if kind in ("ParamAOTInput", "BufferAOTInput"):
            return True
        if kind == "PlainAOTInput":
            return description.idx in self._static
        match = _INPUT_NAME.fullmatch(name)
        if match is None:
            return False
        training, inference = match["training"], match["inference"]
        index = int(training) - 1 if training is not None else int(inference)
        return index in self._static

    def _gradients(self, graph: Any) -> set[str]:
        """Names of the returned buffers that are gradients of parameters."""
        names = graph.get_output_names()
        (output,) = graph.graph.find_nodes(op="output")
        descriptions = output.meta.get("desc")
        if descriptions is None or len(descriptions) != len(names):
            # AOTAutograd returns one gradient per forward input, in their order.
            return {name for i, name in enumerate(names) if i in self._static}
        return {
            name
            for name, description in zip(names, descriptions, strict=True)
            if type(description).__name__ == "GradAOTOutput"
            and self._is_parameter(description.grad_of, "")
        }


def _buffer_dtype(name: str) -> torch.dtype | None:
    """Dtype of a buffer or input of the graph being compiled, None for what is no tensor."""
    buffer = V.graph.try_get_buffer(name)
    if buffer is None or isinstance(buffer, ir.TorchBindObject):
        return None
    return buffer.maybe_get_dtype()


def _reads_writes(node: BaseSchedulerNode) -> tuple[list[str], list[str]]:
    """Names of the buffers that a kernel reads from and leaves in memory, sorted."""
    reads = node.get_read_write_buffer_accesses(include_reads=True, include_writes=False)
    writes = node.get_read_write_buffer_accesses(include_reads=False, include_writes=True)
    return sorted(reads), sorted(writes)


def _converts(node: BaseSchedulerNode) -> bool:
    """Whether a loop nest only loads, converts and stores floating-point values."""
    if not isinstance(node, SchedulerNode) or not hasattr(node._body, "root_block"):
        return False
    body = node._body
    ops = {str(n.target) for n in body.root_block.graph.nodes}
    if body.subblocks or not ops <= _MOVES_ONLY or "to_dtype" not in ops:
        return False
    names = [dep.name for dep in (*node.read_writes.reads, *node.read_writes.writes)]
    dtypes = {_buffer_dtype(name) for name in names}
    if not all(dtype is not None and dtype.is_floating_point for dtype in dtypes):
        return False
    return len(dtypes) > 1 or not _moves(node)


def _moves(node: BaseSchedulerNode) -> bool:
    """Whether any value is stored at another place than it was loaded from."""

    def places(deps: Any) -> set[Any]:
        return {dep.normalize().index if isinstance(dep, MemoryDep) else dep for dep in deps}

    return places(node.read_writes.reads) != places(node.read_writes.writes)


def _role(node: BaseSchedulerNode, graph: _Graph) -> Role:
    """Role of one loop nest that only converts."""
    reads = {dep.name for dep in node.read_writes.reads}
    writes = {dep.name for dep in node.read_writes.writes}
    if reads <= graph.parameters:
        return "weight"
    widens = all(_buffer_dtype(name) in _HALVES for name in reads) and all(
        _buffer_dtype(name) is torch.float32 for name in writes
    )
    return "gradient" if widens and writes <= graph.gradients else "activation"


def _kernel_role(node: BaseSchedulerNode, graph: _Graph) -> Role | None:
    """Role of a kernel; one that converts several things counts as the least expected."""
    parts = node.get_nodes()
    if not all(_converts(part) for part in parts):
        return None
    roles = {_role(part, graph) for part in parts}
    order: tuple[Role, ...] = ("activation", "gradient", "weight")
    return next(role for role in order if role in roles)


def _origins(node: BaseSchedulerNode) -> tuple[tuple[str, ...], str]:
    """Operators that a kernel came from, and the module path of the first that has one."""
    nodes = [n for part in node.get_nodes() if part.node for n in part.node.get_origins()]
    calls = [n for n in nodes if n.op == "call_function"]
    paths = [
        str(stack[-1][0]).removeprefix("L['self'].")
        for n in calls
        if (stack := list((n.meta.get("nn_module_stack") or {}).values()))
    ]
    return tuple(sorted({str(n.target) for n in calls})), paths[0] if paths else ""


def _dtype_names(buffers: list[str]) -> tuple[str, ...]:
    dtypes = {_buffer_dtype(name) for name in buffers}
    return tuple(sorted(str(d).removeprefix("torch.") for d in dtypes if d is not None))


def _shape(name: str) -> tuple[int, ...]:
    buffer = V.graph.try_get_buffer(name)
    if buffer is None or isinstance(buffer, ir.TorchBindObject) or not buffer.has_tensor_output():
        return ()
    hint = V.graph.sizevars.optimization_hint
    return tuple(int(hint(s, fallback=0)) for s in buffer.get_size())


def _describe(node: BaseSchedulerNode, graph: _Graph) -> Kernel | None:
    """Return the kernel that a scheduler node becomes, None if it moves no bytes."""
    accesses = node.get_read_write_buffer_accesses(include_reads=True, include_writes=True)
    if isinstance(node, NopKernelSchedulerNode) or not accesses:
        return None
    extern = node.is_extern() or node.is_template()
    role = None if extern else _kernel_role(node, graph)
    reads, writes = _reads_writes(node)
    origins, module = _origins(node)
    return Kernel(
        phase=graph.phase,
        name=node.get_name(),
        extern=extern,
        bytes=sum(accesses.values()),
        role=role,
        moves=role is not None and any(_moves(part) for part in node.get_nodes()),
        shape=_shape(writes[0]) if writes else (),
        source=_dtype_names(reads),
        target=_dtype_names(writes),
        origins=origins,
        module=module,
    )


@contextlib.contextmanager
def record_kernels() -> Iterator[list[Kernel]]:
    """Yield a list that receives every kernel scheduled inside the block, caches off."""
    kernels: list[Kernel] = []
    seen: set[int] = set()
    keep: list[Scheduler] = []  # so that no id is used twice
    codegen = Scheduler.codegen

    def recorded(scheduler: Scheduler) -> None:
        if id(scheduler) not in seen:  # some wrappers generate twice from one schedule
            seen.add(id(scheduler))
            keep.append(scheduler)
            graph = _Graph(V.graph)
            described = (_describe(node, graph) for node in scheduler.nodes)
            kernels.extend(kernel for kernel in described if kernel is not None)
        codegen(scheduler)

    with (
        config.patch(fx_graph_cache=False, fx_graph_remote_cache=False),
        functorch_config.patch(enable_autograd_cache=False, enable_remote_autograd_cache=False),
        mock.patch.object(Scheduler, "codegen", recorded),
    ):
        yield kernels


def reset() -> None:
    """Forget everything that Dynamo has compiled and counted."""
    torch._dynamo.reset()
    counters.clear()


def graph_count() -> int:
    """Number of graphs that Dynamo has handed to a backend since `reset`."""
    return int(counters["stats"]["unique_graphs"])
