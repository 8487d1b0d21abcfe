"""The function that `torch.compile(backend="mpopt")` calls."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import fx

from . import (
    _torch,
    composites,
    exporter,
    half_weights,
    heal,
    hot_regions,
    importer,
    log,
    native,
    origins,
    rewrite_log,
)
from .errors import MpoptError, OptionError, did_you_mean
from .joint_pass import JointPass, device_of, policy_attribute
from .options import NUMERICS, Options, resolve
from .partition import Partitioner, StitchedPass, StoragePass
from .post_pass import PostPass

Compiled = Callable[..., Any]


def mpopt(
    gm: fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
    **unknown: Any,
) -> Compiled:
    """Compile Dynamo's graph `gm` through Inductor with mpopt's passes in between.

    `mode` is a numerics contract ("strict", "precise", "relaxed") or a mode of Inductor
    ("max-autotune", ...). Raises OptionError on unknown keys and bad values.
    """
    if unknown:
        raise OptionError(f"the backend takes options= and mode=, not {', '.join(unknown)}=")
    resolved, patches = _settings(options, mode)
    log.get_logger("backend").debug("options %s", resolved)
    if resolved.disable:
        return _torch.compile_fx(gm, example_inputs, patches)
    if not resolved.heal:
        return _compile_graph(gm, example_inputs, resolved, patches)
    healer = heal.Healer(gm, resolved)
    with healer.compiling():
        return healer.watching(_compile_graph(gm, example_inputs, resolved, patches))


def _compile_graph(
    gm: fx.GraphModule,
    example_inputs: Sequence[Any],
    resolved: Options,
    patches: dict[str, Any],
) -> Compiled:
    try:
        capture = origins.capture(gm, example_inputs)
    except Exception as error:
        _capture_failed(resolved, error)
        return _torch.compile_fx(gm, example_inputs, patches)
    if not (capture.has_low_precision or resolved.precision or resolved.regions != "off"):
        # Nothing to decide: the code must be what it would be without us.
        log.counters["stock_graphs"] += 1
        return _torch.compile_fx(gm, example_inputs, patches)
    takes_halves = resolved.half_weights and bool(resolved.pass_pipeline())
    if not takes_halves:
        return _compile(gm, example_inputs, resolved, capture, patches)
    halves = half_weights.plan(gm, example_inputs)
    log.counters["half_weights"] += len(halves)
    examples, capture = half_weights.prepare(example_inputs, capture, halves)
    with half_weights.further_inputs(gm, examples):
        compiled = _compile(gm, examples, resolved, capture, patches)
    return half_weights.feed(compiled, halves) if halves else compiled


def _compile(
    gm: fx.GraphModule,
    example_inputs: Sequence[Any],
    options: Options,
    capture: origins.Capture,
    user_patches: dict[str, Any],
) -> Compiled:
    native.load()  # a missing library is one clear error, and not one per graph
    hot_regions.announce(options)
    patches = dict(user_patches)
    relax = capture.depends_on_rounding and _relaxes_barriers(options, user_patches)
    if relax:
        patches[_torch.EMULATE] = True
    _torch.make_casts_exact()
    passes: dict[str, JointPass] = {
        _torch.PRE_PASS: JointPass(options, capture, user_patches, relax),
        _torch.POST_PASS: PostPass(options, capture, user_patches, relax=False),
    }
    if options.partition_pipeline():
        inner = _torch.inductor_setting(_torch.PARTITIONER, patches)
        stitched = StitchedPass(options, capture, user_patches, relax=False)
        patches[_torch.PARTITIONER] = Partitioner(stitched, inner)
        storage = StoragePass(options, capture, user_patches, relax=False)
        passes[_torch.JOINT_POST_PASS] = storage
    for slot, added in passes.items():
        patches[slot] = _torch.chain_pass(_torch.inductor_setting(slot, patches), added)
    return _torch.compile_fx(gm, example_inputs, patches, composites.keeping_table(user_patches))


def _relaxes_barriers(options: Options, patches: Mapping[str, Any]) -> bool:
    """True if Inductor is to keep explicit conversions only (see `barriers`).

    Not under the user's own request for eager's roundings or the contract strict,
    and not without passes, for then the code is to be Inductor's own.
    """
    if options.numerics == "strict" or not options.pass_pipeline():
        return False
    return _torch.has_setting(_torch.EMULATE) and not _torch.user_wants_exact_casts(patches)


def _settings(
    options: Mapping[str, Any] | None, mode: str | None
) -> tuple[Options, dict[str, Any]]:
    """Options, and settings of Inductor, from the two arguments of `torch.compile`."""
    given = dict(options or {})
    patches: dict[str, Any] = {}
    if mode in NUMERICS:
        if given.setdefault("numerics", mode) != mode:
            raise OptionError(f"mode={mode!r} contradicts numerics={given['numerics']!r}")
    elif mode is not None and mode != "default":
        patches.update(_inductor_mode(mode))
    resolved = resolve(given)
    patches.update({k.replace("-", "_"): v for k, v in resolved.inductor.items()})
    return resolved, patches


def _inductor_mode(mode: str) -> dict[str, Any]:
    try:
        return _torch.mode_options(mode)
    except KeyError:
        hint = did_you_mean(mode, [*NUMERICS, *_torch.mode_names()])
        raise OptionError(f"unknown mode {mode!r}{hint}") from None


def _capture_failed(options: Options, error: Exception) -> None:
    log.counters["fallbacks"] += 1
    log.counters["fallbacks.capture"] += 1
    if options.strict:
        raise MpoptError(f"capture: {error}") from error
    log.warn(f"mpopt failed in stage 'capture' and this graph is compiled without it: {error}")


def reset() -> None:
    """Forget counts and times. `torch._dynamo.reset()` calls it."""
    log.counters.clear()
    log.seconds.clear()
    rewrite_log.reset()
    heal.reset()


mpopt.reset = reset  # type: ignore[attr-defined]


def rewrite(gm: fx.GraphModule, example_inputs: Sequence[Any], **options: Any) -> fx.GraphModule:
    """A copy of an ATen-level graph with the passes applied; `gm` stays as it is.

    `gm` comes from `make_fx` or AOTAutograd; its nodes need `meta["val"]`, which
    `make_fx` on fake tensors leaves there. Keyword arguments are those of Options.
    Raises MpoptError when the graph cannot be described or the passes fail.
    """
    resolved = resolve(options)
    result = copy.deepcopy(gm)
    for old, new in zip(gm.graph.nodes, result.graph.nodes, strict=True):
        new.meta = dict(old.meta)
    placeholders = result.graph.find_nodes(op="placeholder")
    for placeholder, example in zip(placeholders, example_inputs, strict=True):
        placeholder.meta.setdefault("val", example)
    imported = importer.import_graph(result.graph)
    target = resolved.target if resolved.target != "auto" else device_of(result.graph)
    attributes = f'mp.target = "{target}"'
    if resolved.policy is not None:
        attributes += ", " + policy_attribute(resolved.policy)
    module = native.module_type().from_graph(
        imported.inputs,
        imported.nodes,
        imported.outputs,
        sources=imported.sources,
        attributes="{" + attributes + "}",
    )
    if resolved.pass_pipeline():
        module.run(resolved.pass_pipeline())
    exporter.apply_edits(result.graph, imported, module.edits())
    result.recompile()
    return result
