"""Self-healing: what made inf or NaN is computed in fp32 from then on (option `heal`).

Calls are watched with one reduction over what the graph returns and one over its gradients. Only
after some bad ones is the graph run eagerly, operator by operator, with what is in the bad module
in fp32, until nothing is inf or NaN. Those modules are pinned, and Dynamo compiles the code again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, fx

from . import _torch_watch, log, origins
from .bad_op import Watch
from .callbacks import BadOp
from .importer import innermost_line
from .options import Options
from .widening import EVERYTHING, is_inside, widen

_ROUNDS = 16
"""Modules to look for one after the other before the whole graph is tried."""


@dataclasses.dataclass(frozen=True)
class Healed:
    """Why a region is computed in fp32."""

    region: str
    cause: BadOp
    calls: int


class _Frame:
    """What is known of one code object that Dynamo compiles."""

    def __init__(self) -> None:
        self.regions: dict[str, Healed] = {}
        self.compilations: set[Any] = set()


_frames: weakref.WeakKeyDictionary[Any, _Frame] = weakref.WeakKeyDictionary()


def healed() -> list[Healed]:
    """All regions that are computed in fp32 now, by code and in the order of their finding."""
    return [each for frame in _frames.values() for each in frame.regions.values()]


def reset() -> None:
    """Forget all regions."""
    _frames.clear()


class Healer:
    """Watches the calls of one graph of Dynamo's. `gm` is widened where that was found before."""

    def __init__(self, gm: fx.GraphModule, options: Options) -> None:
        self.after = options.heal_after
        self.depth = options.heal_depth
        self.code, number = _torch_watch.frame_being_compiled()
        self.frame = _Frame() if self.code is None else _frames.setdefault(self.code, _Frame())
        self.frame.compilations.add(number)
        self.traced = _copy(gm)
        self.replacement: Callable[..., Any] | None = None
        """Runs in place of the compiled code, where Dynamo cannot compile it again."""
        self.bad_calls = 0
        self.pending: list[_Verdict] = []
        self.is_widened = widen(gm, self.frame.regions) > 0

    def compiling(self) -> contextlib.AbstractContextManager[None]:
        """A context to compile the graph in: backward of a region is to be in fp32, too."""
        return (
            _torch_watch.backward_without_autocast()
            if self.is_widened
            else contextlib.nullcontext()
        )

    def watching(self, compiled: Callable[..., Any]) -> Callable[..., Any]:
        """`compiled`, watched."""

        def run(*args: Any) -> Any:
            self._count()
            if self.replacement is not None:
                return self.replacement(*args)
            if self.bad_calls >= self.after and (healed := self._heal(args)) is not None:
                return healed(*args)
            outputs = compiled(*args)
            self._watch(outputs)
            return outputs

        return run

    # Watching -------------------------------------------------------------------

    def _watch(self, outputs: Any) -> None:
        values = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
        call = object()
        self._ask(call, values, [])
        node = _torch_watch.backward_node(values)
        if node is not None:
            node.register_hook(lambda made, given: self._ask(call, made, given))

    def _ask(self, call: object, made: Sequence[Any], given: Sequence[Any]) -> None:
        """Whether `made` is bad and `given`, gradients that came in, is not."""
        is_good = _torch_watch.are_finite(made)
        if is_good is None:
            return
        came_good = _torch_watch.are_finite(given)
        if came_good is not None:
            is_good = is_good | ~came_good.to(is_good.device)
        self.pending.append(_Verdict(call, is_good))

    def _count(self) -> None:
        """Take the verdicts into account that are there, without waiting for others."""
        while self.pending and self.pending[0].is_known():
            verdict = self.pending.pop(0)
            if not verdict.is_good():
                # Backward of a call whose forward was bad is the same call.
                self.pending = [v for v in self.pending if v.call is not verdict.call]
                self.bad_calls += 1
                log.counters["nonfinite_calls"] += 1

    # Healing --------------------------------------------------------------------

    def _heal(self, args: Sequence[Any]) -> Callable[..., Any] | None:
        """The graph with the regions at fault in fp32, if that helps."""
        calls, self.bad_calls = self.bad_calls, 0
        log.counters["heal_searches"] += 1
        try:
            found = find(self.traced, args, self.frame.regions, self.depth)
        except Exception as error:
            log.warn(f"mpopt: cannot look for what made inf or NaN in {calls} calls: {error}")
            found = None
        if not found:
            self._not_found(calls)
            return None
        for region, cause in found.items():
            self.frame.regions[region] = Healed(region, cause, calls)
            log.counters["healed_regions"] += 1
            log.warn(_message(region, cause, calls))
        trial = _copy(self.traced)
        widen(trial, self.frame.regions)
        known = self.frame.compilations
        if self.code is None or not _torch_watch.forget_compiled(self.code, known):
            self.replacement = trial
            log.warn("mpopt: this graph cannot be compiled again; it runs eagerly from now on")
        known.clear()
        return trial

    def _not_found(self, calls: int) -> None:
        self.after *= 2  # it may be what the model means
        log.get_logger("backend").info(
            "%d calls gave inf or NaN, but no operator for which fp32 would help", calls
        )


class _Verdict:
    """Whether a call was good: a truth value on the way from its device."""

    def __init__(self, call: object, is_good: Tensor) -> None:
        self.call = call
        self.event: Any = None
        if is_good.device.type == "cuda":
            host = torch.empty((), dtype=torch.bool, pin_memory=True)
            self.value = host.copy_(is_good, non_blocking=True)
            self.event = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self.event.record()
        else:
            self.value = is_good

    def is_known(self) -> bool:
        return self.event is None or bool(self.event.query())

    def is_good(self) -> bool:
        return bool(self.value)


def _message(region: str, cause: BadOp, calls: int) -> str:
    where = f"module {region!r}" if region else "the code outside of modules"
    if region == EVERYTHING:
        where = "the whole graph"
    line = f" at {cause.line}" if cause.line else ""
    return (
        f"mpopt: {where} is computed in fp32 from now on: {cause.op} in {cause.phase}{line} made "
        f"{cause.kind} of finite values; {calls} calls were bad "
        f"(healed region {log.counters['healed_regions']})"
    )


# Looking for regions --------------------------------------------------------------


def find(
    gm: fx.GraphModule, args: Sequence[Any], known: Sequence[str] | dict[str, Any], depth: int
) -> dict[str, BadOp]:
    """The regions that have to be in fp32, beside those `known`, so that `gm` makes no inf or
    NaN of finite values; empty if that cannot be reached, or is so already."""
    found: dict[str, BadOp] = {}
    first = None
    for _ in range(_ROUNDS):
        culprit = _first_bad(gm, args, {*known, *found})
        if culprit is None:
            return found
        first = first or culprit.cause
        regions = [_region_of(path, depth) for path in culprit.paths]
        region = next((r for r in regions if not is_inside(r, {*known, *found})), None)
        if region is None:
            return {}  # fp32 does not hold it either
        found[region] = culprit.cause
    if first is not None and _first_bad(gm, args, {EVERYTHING}) is None:
        return {EVERYTHING: first}
    return {}


class _Culprit(NamedTuple):
    cause: BadOp
    paths: list[str]
    """Its module, and those whose results it reads: the gradient of a half result is half."""


def _region_of(path: str, depth: int) -> str:
    return ".".join(path.split(".")[:depth]) if depth else path


def _first_bad(gm: fx.GraphModule, args: Sequence[Any], regions: set[str]) -> _Culprit | None:
    trial = _copy(gm)
    widen(trial, regions)
    values = [_own(arg) for arg in args]
    watch, steps = Watch(), list[fx.Node]()
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.random.fork_rng(_cuda_devices(values)))
        stack.enter_context(torch.enable_grad())
        stack.enter_context(watch)
        outputs = _Steps(trial, watch, steps).run(*values)
        if watch.found is None:
            _go_back(outputs, values)
    return None if watch.found is None else _culprit(steps, watch.found)


def _culprit(steps: list[fx.Node], found: BadOp) -> _Culprit:
    """What a watch found that knows nodes by the number of their step."""
    if not found.module:
        return _Culprit(found, [""])
    node = steps[int(found.module)]
    path = origins.module_path(node.meta)
    file, line = innermost_line(node.meta.get("stack_trace") or "")
    cause = dataclasses.replace(found, module=path, line=f"{file}:{line}" if file else "")
    operands = [n for n in node.all_input_nodes if n.op.startswith("call")]
    return _Culprit(cause, [path, *(origins.module_path(n.meta) for n in operands)])


class _Steps(fx.Interpreter):
    """Tells a watch which node runs, as its number in `steps`."""

    def __init__(self, gm: fx.GraphModule, watch: Watch, steps: list[fx.Node]) -> None:
        super().__init__(gm)
        self.watch = watch
        self.steps = steps

    def run_node(self, n: fx.Node) -> Any:
        body = origins.checkpointed_body(n)
        if body is not None:
            args, _ = self.fetch_args_kwargs_from_env(n)
            return _Steps(body, self.watch, self.steps).run(*args[1:])
        self.steps.append(n)
        self.watch.enter(str(len(self.steps) - 1))
        try:
            return super().run_node(n)
        finally:
            self.watch.leave()


def _go_back(outputs: Any, values: Sequence[Any]) -> None:
    """Backward under gradients of the size that a loss without a scale has: a loss scale that is
    too large is no fault of a region."""
    leaves = outputs if isinstance(outputs, list | tuple) else [outputs]
    roots = [v for v in leaves if isinstance(v, Tensor) and v.requires_grad]
    inputs = [v for v in values if isinstance(v, Tensor) and v.requires_grad]
    if not roots or not inputs:
        return
    tangents = [torch.full_like(v, 1 / max(1, v.numel())) for v in roots]
    with _torch_watch.without_autocast():
        torch.autograd.grad(roots, inputs, tangents, allow_unused=True)


def _own(value: Any) -> Any:
    """A leaf of the same value that may be written into; parameters are not copied."""
    if not isinstance(value, Tensor):
        return value
    is_parameter = isinstance(value, torch.nn.Parameter)
    own = value.detach() if is_parameter else value.detach().clone()
    return own.requires_grad_(value.requires_grad)


def _cuda_devices(values: Sequence[Any]) -> list[int]:
    tensors = (v for v in values if isinstance(v, Tensor) and v.device.type == "cuda")
    return sorted({t.device.index for t in tensors})


def _copy(gm: fx.GraphModule) -> fx.GraphModule:
    """Another module of the same nodes; modules inside that hold graphs are copied, too."""
    graph = fx.Graph()
    graph.output(graph.graph_copy(gm.graph, {}))
    for placeholder in graph.find_nodes(op="placeholder"):
        placeholder.meta.pop("grapharg", None)  # holds what was given for it
    copied = fx.GraphModule(gm, graph)
    for name, module in list(copied.named_children()):
        if isinstance(module, fx.GraphModule):
            setattr(copied, name, _copy(module))
    return copied
