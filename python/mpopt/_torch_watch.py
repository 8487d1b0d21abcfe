"""The part of `_torch` that measuring and watching needs: what has no stability promise in how
Dynamo compiles frames and how AOTAutograd runs graphs.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import fx


@contextlib.contextmanager
def backward_without_autocast() -> Iterator[None]:
    """Have AOTAutograd trace backward as eager runs it: outside of the autocast of forward."""
    from torch._functorch import config

    name = "backward_pass_autocast"
    with config.patch({name: "off"}) if hasattr(config, name) else contextlib.nullcontext():
        yield


def without_autocast() -> Any:
    """A context without autocast on any device."""
    return torch._C._DisableAutocast()


def aot_compiler(
    forward: Callable[..., Any],
    backward: Callable[..., Any],
    inference: Callable[..., Any],
    partition: Callable[..., Any],
    table: Mapping[Any, Any],
) -> Callable[..., Any]:
    """AOTAutograd as Inductor calls it, with what compiles the graphs it makes."""
    from torch._dynamo.backends.common import aot_autograd

    compiler: Any = aot_autograd(
        fw_compiler=forward,
        bw_compiler=backward,
        inference_compiler=inference,
        partition_fn=partition,
        decompositions=dict(table),
        keep_inference_input_mutations=True,
    )
    return compiler  # type: ignore[no-any-return]


@contextlib.contextmanager
def keeping_like_nodes() -> Iterator[None]:
    """Have the partitioner leave nodes apart that compute the same."""
    from torch._functorch import config

    with config.patch(cse=False):
        yield


@contextlib.contextmanager
def as_compiled_code_runs() -> Iterator[None]:
    """No autocast and no autograd: graphs of AOTAutograd hold all of both."""
    with torch._C._DisableAutocast(), torch.no_grad():
        yield


def compile_apart(function: Any, backend: Any) -> Any:
    """`torch.compile` whose code counts in nobody's limit of recompilations, if it can be."""
    entry: Any = torch.compile
    apart = "isolate_recompiles"
    more = {apart: True} if apart in inspect.signature(entry).parameters else {}
    return entry(function, backend=backend, **more)


def uncompiled(model: torch.nn.Module) -> torch.nn.Module:
    """The module that `torch.compile` wrapped, or `model`."""
    inner = getattr(model, "_orig_mod", model)
    return inner if isinstance(inner, torch.nn.Module) else model


def frame_being_compiled() -> tuple[Any, Any]:
    """The code object that Dynamo compiles on this thread, and the number of the compilation;
    (None, None) outside of Dynamo."""
    from torch._dynamo.symbolic_convert import InstructionTranslator
    from torch._guards import CompileContext

    try:
        translator: Any = InstructionTranslator.current_tx()
        return translator.output.root_tx.f_code, CompileContext.current_compile_id()
    except AttributeError:
        return None, None


def forget_compiled(code: Any, numbers: Any) -> int:
    """Have Dynamo compile `code` again where it now runs the results of compilations
    `numbers`. Returns how many there were."""
    from torch._C._dynamo.eval_frame import _debug_get_cache_entry_list
    from torch._dynamo.guards import DeletedGuardManagerWrapper

    entries = [e for e in _debug_get_cache_entry_list(code) if e.compile_id in numbers]
    for entry in entries:
        manager = entry.guard_manager
        state: Any = manager.extra_state
        # As Dynamo itself does when an object that a guard is about dies; the code may run.
        state.invalidate(entry, DeletedGuardManagerWrapper("mpopt computes a region in fp32"))
    return len(entries)


def are_finite(tensors: Sequence[torch.Tensor]) -> torch.Tensor | None:
    """Whether all floating-point elements are finite, on their device; None without any."""
    plain = [
        t.detach()
        for t in tensors
        if isinstance(t, torch.Tensor)
        and t.is_floating_point()
        and t.itemsize > 1
        and t.layout is torch.strided
        and t.numel() > 0
    ]
    if not plain:
        return None
    with torch.no_grad():
        norms = torch._foreach_norm(plain, float("inf"))
        return torch.stack([norm.to(norms[0].device).double() for norm in norms]).isfinite().all()


def backward_node(outputs: Sequence[Any]) -> Any:
    """The node of autograd that runs the backward graph of compiled code; None without one."""
    for value in outputs:
        node = getattr(value, "grad_fn", None)
        above = [before for before, _ in node.next_functions] if node is not None else []
        for each in (node, *above):
            if each is not None and "CompiledFunction" in each.name():
                return each
    return None


def autocast_node(graph: fx.Graph, device: str) -> fx.Node:
    """Turns autocast off at the insertion point, as Dynamo writes it."""
    from torch.amp import autocast_mode

    args = (device, None, False, True)
    return graph.call_function(autocast_mode._enter_autocast, args)


def end_autocast_node(graph: fx.Graph, begin: fx.Node) -> fx.Node:
    """Ends what `autocast_node` began."""
    from torch.amp import autocast_mode

    return graph.call_function(autocast_mode._exit_autocast, (begin,))
