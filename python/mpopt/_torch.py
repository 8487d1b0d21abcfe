"""Everything of PyTorch that has no stability promise, for 2.11 to 2.15.

The only module that touches `torch._*`, with `_torch_watch`. What differs between releases is
found by looking for the feature, not at the version.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from . import torch_release

torch_release.check(torch.__version__)  # before an import that an older release lacks

from torch._inductor import config as inductor_config  # noqa: E402
from torch._inductor.custom_graph_pass import (  # noqa: E402
    CustomGraphPass,
    CustomPartitionerFn,
)
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

__all__ = [
    "CustomGraphPass",
    "CustomPartitionerFn",
    "TorchDispatchMode",
    "compile_fx",
    "inductor_config",
]

PRE_PASS = "joint_custom_pre_pass"
JOINT_POST_PASS = "joint_custom_post_pass"
POST_PASS = "post_grad_custom_post_pass"
PARTITIONER = "custom_partitioner_fn"
EMULATE = "emulate_precision_casts"
BARRIER = "low_precision_pointwise_barrier"
CONVERT = torch.ops.prims.convert_element_type.default
TO_COPY = torch.ops.aten._to_copy.default
AS_STRIDED = torch.ops.aten.as_strided.default
_KEPT = "mpopt_kept"


class ChainedPass(CustomGraphPass):
    """Several passes as one, for releases whose slot takes one object only."""

    def __init__(self, passes: Sequence[Any]) -> None:
        self.passes = list(passes)

    def __call__(self, graph: fx.Graph) -> None:
        for each in self.passes:
            each(graph)

    def uuid(self) -> Any:
        """The members' uuids; None, which turns caching off, when one has none."""
        ids = [each.uuid() if isinstance(each, CustomGraphPass) else None for each in self.passes]
        return None if None in ids else tuple(ids)


def slot_takes_list() -> bool:
    """True if a pass slot of Inductor's configuration takes a list (2.13 and later)."""
    from torch._inductor import custom_graph_pass

    return hasattr(custom_graph_pass, "get_custom_graph_passes")


def chain_pass(existing: Any, added: CustomGraphPass) -> Any:
    """A value for a pass slot that runs what was there, then `added`."""
    if existing is None:
        return [added] if slot_takes_list() else added
    before = list(existing) if isinstance(existing, list | tuple) else [existing]
    return [*before, added] if slot_takes_list() else ChainedPass([*before, added])


def inductor_setting(name: str, patches: Mapping[str, Any], default: Any = None) -> Any:
    """A setting of Inductor as it will be under `patches`."""
    for key in (name, name.replace("_", "-")):
        if key in patches:
            return patches[key]
    return getattr(inductor_config, name, default)


def has_setting(name: str) -> bool:
    """True if this Inductor has a setting of that name."""
    return hasattr(inductor_config, name)


def user_wants_exact_casts(patches: Mapping[str, Any]) -> bool:
    """True if the user's own configuration asks Inductor for eager's roundings."""
    numerics = inductor_setting("numerics", patches, "default")
    exact = bool(inductor_setting(EMULATE, patches, False))
    return exact or numerics not in (None, "default")


def mode_options(mode: str) -> dict[str, Any]:
    """Inductor's settings for a mode of `torch.compile`. Raises KeyError on an unknown one."""
    import torch._inductor as inductor

    modes = inductor.list_mode_options()
    return dict(modes[mode])


def mode_names() -> list[str]:
    """The modes that Inductor knows."""
    import torch._inductor as inductor

    return list(inductor.list_mode_options())


def compile_fx(
    gm: fx.GraphModule,
    example_inputs: Sequence[Any],
    patches: Mapping[str, Any],
    decompositions: Mapping[Any, Callable[..., Any]] | None = None,
) -> Callable[..., Any]:
    """Inductor's entry point under settings `patches`; takes over `gm`."""
    from torch._inductor.compile_fx import compile_fx as entry

    table: Any = decompositions
    result: Any = entry(gm, example_inputs, config_patches=dict(patches), decompositions=table)
    return result  # type: ignore[no-any-return]


def partition(
    gm: fx.GraphModule, joint_inputs: Sequence[Any], **kwargs: Any
) -> tuple[fx.GraphModule, fx.GraphModule]:
    """Inductor's own partition of a joint graph."""
    from torch._functorch.partitioners import min_cut_rematerialization_partition

    return min_cut_rematerialization_partition(gm, joint_inputs, **kwargs)


def saved_descriptor(index: int, unchecked: bool) -> Any:
    """What AOTAutograd calls the `index`th value that forward saves."""
    from torch._functorch._aot_autograd import descriptors

    if unchecked:
        return descriptors.SavedForBackwardsNoVcCheckAOTOutput(index)
    return descriptors.SavedForBackwardsAOTOutput(index)


def symbols_of(value: Any) -> list[Any]:
    """The symbols in the sizes of a traced value, in a fixed order."""
    from torch._functorch import partitioners
    from torch.fx.experimental.symbolic_shapes import free_symbols

    found = set(free_symbols(value))
    as_given = getattr(partitioners, "_free_symbols_without_replacements", None)
    if as_given is not None:  # runtime assertions speak of these
        found |= set(as_given(value))
    return sorted(found, key=lambda symbol: symbol.name)


def symbol_of(node: fx.Node) -> Any:
    """The symbol that `node` gives its value to; None if it is a number of another kind."""
    from torch.fx.experimental.symbolic_shapes import is_symbol_binding_fx_node

    return is_symbol_binding_fx_node(node)


def symbol_nodes(graph: fx.Graph) -> dict[Any, fx.Node]:
    """The node of each symbol that `graph` gives a value."""
    from torch.fx.experimental.symbolic_shapes import find_symbol_binding_fx_nodes

    return dict(find_symbol_binding_fx_nodes(graph))


def byte_count(value: Any) -> int:
    """Bytes of a traced tensor; symbolic sizes count with their value in the example."""
    if not isinstance(value, torch.Tensor):
        return 0
    count = value.element_size()
    for size in value.shape:
        hint = size if type(size) is int else size.node.hint  # type: ignore[attr-defined]
        count *= int(hint or 0)
    return count


def decomposition_table(patches: Mapping[str, Any]) -> dict[Any, Callable[..., Any]]:
    """Inductor's own table under settings `patches`; not to be changed."""
    from torch._inductor.decomposition import select_decomp_table

    known = {k.replace("-", "_"): v for k, v in patches.items()}
    relevant = ("fallback_random", "fallback_embedding_bag_byte_unpack")
    with inductor_config.patch({k: known[k] for k in relevant if k in known}):
        table: dict[Any, Callable[..., Any]] = select_decomp_table()
    return table


@functools.cache
def drops_roundings() -> bool:
    """True if Inductor replaces f32 → bf16 → f32 in a graph by nothing (before 2.13)."""
    from torch._inductor.fx_passes import joint_graph

    graph = fx.Graph()
    node = graph.placeholder("x")
    node.meta["val"] = value = torch.empty(1)
    for dtype in (torch.bfloat16, torch.float32):
        node = graph.call_function(CONVERT, (node, dtype))
        node.meta["val"] = value = value.to(dtype)
    graph.output(node)
    graph = fx.GraphModule(torch.nn.Module(), graph).graph
    joint_graph.patterns.apply(graph)
    return len(graph.find_nodes(op="call_function", target=CONVERT)) < 2


@functools.cache
def convert_pattern() -> Any:
    """The pattern of Inductor that makes two conversions one."""
    from torch._inductor.fx_passes import joint_graph

    entries = joint_graph.patterns.patterns[("call_function", CONVERT)]
    return next(e for e in entries if _name_of(getattr(e, "handler", None)) == "pointless_convert")


def _name_of(function: Any) -> str:
    return str(getattr(function, "__name__", ""))


def keep_roundings(graph: fx.Graph) -> None:
    """Have Inductor keep the roundings of `graph` where its pattern would drop them. The
    graphs of others are compiled as before."""
    if not drops_roundings():
        return
    entry = convert_pattern()
    if _name_of(entry.extra_check) != _spares_kept.__name__:
        entry.extra_check = _spares_kept
    for node in graph.find_nodes(op="call_function", target=CONVERT):
        source = node.args[0]
        if source.target is CONVERT and not _is_exact(source):
            node.meta[_KEPT] = True


def _spares_kept(match: Any) -> bool:
    return _KEPT not in match.output_node().meta


def _is_exact(conversion: fx.Node) -> bool:
    """True if a conversion is from a floating type to a wider or the same one."""
    before, after = conversion.args[0].meta["val"].dtype, conversion.meta["val"].dtype  # type: ignore[union-attr]
    if not before.is_floating_point:
        return False
    return bool(before is after or before.itemsize < after.itemsize)


def make_casts_exact() -> None:
    """Have Inductor perform explicit conversions under `emulate_precision_casts` as its
    releases from 2.13 on do."""
    _keep_casts_of_cpu()
    _keep_casts_before_half_arithmetic()


@functools.cache
def _keep_casts_of_cpu() -> None:
    """Before 2.13 the C++ code reads the value from before a rounding, whatever the setting."""
    from torch._inductor.codegen import cpp

    if "emulate_precision_casts" in inspect.getsource(cpp.CppOverrides):
        return
    remember: Any = cpp.CppKernel.cache_dtype_convert

    def unless_exact(self: Any, *args: Any) -> None:
        if not inductor_config.emulate_precision_casts:
            remember(self, *args)

    cpp.CppKernel.cache_dtype_convert = unless_exact  # type: ignore[method-assign]


@functools.cache
def _keep_casts_before_half_arithmetic() -> None:
    """Before 2.12 a narrowing becomes nothing where the next operator computes in f32."""
    from torch._inductor import lowering

    if "use_compute_types" in inspect.signature(lowering.to_dtype).parameters:
        return
    for target in (CONVERT, CONVERT.overloadpacket):
        lowering.lowerings[target] = _exact_conversion(lowering.lowerings[target])


def _exact_conversion(usual: Callable[..., Any]) -> Callable[..., Any]:
    """The lowering of a conversion, as `usual` but performed under exact casts."""
    from torch._inductor import lowering
    from torch._inductor.virtualized import ops

    halves = (torch.bfloat16, torch.float16)

    def lower(x: Any, dtype: torch.dtype) -> Any:
        source = x.get_dtype()
        is_half = source in halves or dtype in halves
        is_usual = source is dtype or source.is_complex or dtype.is_complex
        if is_usual or not (is_half and inductor_config.emulate_precision_casts):
            return usual(x, dtype)

        def convert(value: Any) -> Any:
            result = ops.to_dtype(value, dtype, src_dtype=source, use_compute_types=False)
            return ops.to_dtype(result, dtype) if dtype in halves else result

        return lowering.make_pointwise(convert, override_return_dtype=dtype)(x)

    return lower


def is_autocast_on() -> bool:
    """True if autocast is enabled for any device on this thread."""
    return bool(torch._C._is_any_autocast_enabled())


def autocast_state() -> dict[str, str]:
    """The dtype of each device type with autocast on."""
    state = {}
    for device in ("cpu", "cuda", "xpu", "mps"):
        with contextlib.suppress(RuntimeError):
            if torch.is_autocast_enabled(device):
                state[device] = str(torch.get_autocast_dtype(device)).removeprefix("torch.")
    return state


def autocast_dtypes() -> dict[str, torch.dtype]:
    """The dtype of each device type with autocast on."""
    return {device: getattr(torch, name) for device, name in autocast_state().items()}


@functools.cache
def has_grad_dtype() -> bool:
    """True if a gradient may have another type than its parameter (2.10 and later)."""
    return hasattr(torch.nn.Parameter(torch.empty(0)), "grad_dtype")


def has_bf16(device_type: str) -> bool:
    """True if the hardware of a device type computes in bf16, and PyTorch's kernels use it."""
    if device_type == "cpu":
        probe: Any = getattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", None)
        return probe is not None and bool(probe())
    if device_type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    probe = getattr(getattr(torch, device_type, None), "is_bf16_supported", None)
    return probe is not None and bool(probe())


def next_autograd_node() -> int:
    """The number that the next node of autograd will get on this thread."""
    from torch._C._autograd import _get_sequence_nr

    return int(_get_sequence_nr())


def current_autograd_node() -> Any:
    """The node whose backward runs on this thread; None outside of backward."""
    return torch._C._current_autograd_node()


def number_of_node(node: Any) -> int:
    """The number of a node of autograd, in the order of the forward pass."""
    return int(node._sequence_nr())


def real_input(placeholder: fx.Node, example: Any) -> Any:
    """The tensor that Dynamo saw for an input, not a fake one; None if it is gone."""
    from torch._subclasses.fake_tensor import FakeTensor

    if not isinstance(example, FakeTensor):
        return example
    real: Any = getattr(placeholder.meta.get("grapharg"), "example", None)
    return None if isinstance(real, FakeTensor) else real


def half_example(like: torch.Tensor, dtype: torch.dtype, mode: Any) -> torch.Tensor:
    """A fake tensor of constant sizes for the half copy of a weight."""
    with mode or contextlib.nullcontext():
        return torch.empty_strided(like.shape, like.stride(), dtype=dtype, device=like.device)


def add_input(graph: fx.Graph, name: str, value: torch.Tensor) -> fx.Node:
    """A further last input of Dynamo's graph, which AOTAutograd takes for one of Dynamo's."""
    from torch._dynamo.source import ConstantSource

    last = graph.find_nodes(op="placeholder")[-1]
    with graph.inserting_after(last):
        node = graph.placeholder(name)
    node.meta["example_value"] = value
    node._dynamo_source = ConstantSource(f"mpopt_{node.name}")
    return node


def backward_pass_autocast() -> str:
    """How AOTAutograd traces the backward graph; "unknown" where it cannot be set."""
    from torch._functorch import config

    return str(getattr(config, "backward_pass_autocast", "unknown"))


def fake_mode_of(values: Sequence[Any]) -> Any:
    """The fake tensor mode of `values`, or the one of the compilation under way, or None."""
    from torch._guards import detect_fake_mode

    return detect_fake_mode(values)


@contextlib.contextmanager
def fake_execution(mode: Any) -> Iterator[None]:
    """Run operators on fake tensors as Inductor does: no autocast, no new guards."""
    from torch._dispatch.python import enable_python_dispatcher

    with mode, enable_python_dispatcher(), torch._C._DisableAutocast(), torch.no_grad():
        yield


def converted_fake(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor | None:
    """What `value.to(dtype)` gives for a contiguous fake tensor of constant sizes, made
    without the dispatcher; None for any other value."""
    if not _is_plain_fake(value) or value.dtype is dtype or not value.is_contiguous():
        return None
    from torch._subclasses.fake_tensor import FakeTensor, unset_fake_temporarily

    with unset_fake_temporarily():
        meta = torch.empty_strided(value.shape, value.stride(), dtype=dtype, device="meta")
    return FakeTensor(value.fake_mode, meta, value.device)  # type: ignore[attr-defined]


def viewed_fake(target: Any, value: Any, rest: Sequence[Any]) -> torch.Tensor | None:
    """What the view operator `target` gives on the fake tensor `value` and constants, made
    without the dispatcher's cache; None for any other operator or argument."""
    if not is_operator(target) or not target.is_view or not _is_plain_fake(value):
        return None
    if not all(map(_is_constant, rest)):
        return None
    from torch._dispatch.python import no_python_dispatcher
    from torch._subclasses.fake_tensor import FakeTensor, in_kernel_invocation_manager

    try:
        with no_python_dispatcher(), in_kernel_invocation_manager(value.fake_mode):
            meta = target(value, *rest)
    except (RuntimeError, ValueError, IndexError):
        return None  # the dispatcher says whether it is an error, and which
    return FakeTensor(value.fake_mode, meta, value.device) if type(meta) is torch.Tensor else None


def _is_plain_fake(value: Any) -> bool:
    """True for a fake tensor of constant sizes that holds no constant of its own."""
    from torch._subclasses.fake_tensor import FakeTensor

    if type(value) is not FakeTensor or value.constant is not None or value.requires_grad:
        return False
    return all(type(size) is int for size in (*value.shape, *value.stride()))


def _is_constant(arg: Any) -> bool:
    if isinstance(arg, list | tuple):
        return all(map(_is_constant, arg))
    return arg is None or type(arg) in (int, bool, torch.dtype)


def is_object(value: Any) -> bool:
    """True for what stands for an object of a class of its own, such as a device mesh, in a
    traced graph."""
    from torch._library.fake_class_registry import FakeScriptObject

    return isinstance(value, torch.ScriptObject | FakeScriptObject)


def trace(
    function: Callable[..., Any], values: Sequence[Any], table: Mapping[Any, Any], mode: Any
) -> fx.GraphModule:
    """The graph of `function` on fake `values` under decomposition `table`."""
    from torch.fx.experimental.proxy_tensor import make_fx

    with fake_execution(mode):
        return make_fx(function, decomposition_table=dict(table), tracing_mode="real")(*values)


def is_impure(node: fx.Node) -> bool:
    """True if `node` has effects or draws random numbers."""
    if isinstance(node.target, torch._ops.OpOverload):
        return is_impure_operator(node.target)
    return isinstance(node.target, torch._ops.HigherOrderOperator) or bool(node.is_impure())


@functools.cache
def is_impure_operator(target: Any) -> bool:
    """True if an overload has effects or draws random numbers, whatever its arguments."""
    random = torch.Tag.nondeterministic_seeded in target.tags
    return random or bool(fx.Graph().call_function(target, ()).is_impure())


def is_operator(target: Any) -> bool:
    """True for an overload such as `aten.mm.default`."""
    return isinstance(target, torch._ops.OpOverload)


def is_higher_order(target: Any) -> bool:
    """True for an operator that takes graphs, such as `cond`."""
    return isinstance(target, torch._ops.HigherOrderOperator)


def argument_names(target: Any) -> tuple[str, ...]:
    """Names of the arguments of an overload in schema order."""
    return tuple(argument.name for argument in target._schema.arguments)


def tensor_arguments(target: Any) -> tuple[str, ...]:
    """Names of the arguments of an overload that hold tensors or lists of tensors, in order."""
    return tuple(a.name for a in target._schema.arguments if "Tensor" in str(a.type))


def input_index(placeholder: fx.Node) -> int | None:
    """The number of the compiled function's input that `placeholder` is, if it is one as is."""
    desc: Any = placeholder.meta.get("desc")
    return desc.idx if type(desc).__name__ == "PlainAOTInput" else None


def is_tangent(placeholder: fx.Node) -> bool:
    """True if `placeholder` is an incoming gradient."""
    desc = placeholder.meta.get("desc")
    if desc is not None:
        return type(desc).__name__ == "TangentAOTInput"
    return placeholder.name.startswith("tangents_")


def has_descriptors(graph: fx.Graph) -> bool:
    """True if the graph's placeholders say where they come from (2.9 and later, main graph)."""
    return any(n.meta.get("desc") is not None for n in graph.find_nodes(op="placeholder"))


def placeholder_source(placeholder: fx.Node) -> str:
    """Where Dynamo found an input, as "L['self'].weight"; "" when it does not say."""
    source = getattr(placeholder.meta.get("grapharg"), "source", None)
    name = getattr(source, "name", "")
    return str(name() if callable(name) else name)


def is_static_input(placeholder: fx.Node) -> bool:
    """True if Dynamo holds an input for part of the model: a parameter or a buffer."""
    return "_dynamo_static_input_type" in (placeholder.meta.get("tensor_dict") or {})


def supports_compile_fx() -> bool:
    """True if `compile_fx` takes the arguments that the backend passes."""
    from torch._inductor.compile_fx import compile_fx as entry

    parameters = inspect.signature(entry).parameters
    return {"config_patches", "decompositions"} <= set(parameters)


def local_tensor(dtensor: Any) -> torch.Tensor:
    """The piece of a DTensor on this rank, the same memory, complete."""
    local = dtensor._local_tensor
    wait = getattr(local, "trigger_wait", None)  # of AsyncCollectiveTensor
    return local if wait is None else wait()  # type: ignore[no-any-return]


def collective_device(group: Any, preferred: torch.device) -> torch.device:
    """`preferred` if the process group reduces tensors there, else where it does."""
    from torch.distributed import distributed_c10d

    if torch.device(preferred.type) in group._device_types:
        return preferred
    return torch.device(distributed_c10d._get_object_coll_device(group))


def is_swapped_by_fsdp(param: torch.Tensor) -> bool:
    """True for the parameters of FullyShardedDataParallel, whose memory it fills and swaps
    through `.data`, so that no version counter moves."""
    return bool(getattr(param, "_fsdp_flattened", False) or getattr(param, "_is_flat_param", False))


def reduces_in_buckets() -> bool:
    """True in the forward of a DistributedDataParallel, whose reducer copies each gradient to
    a bucket in the type of its parameter."""
    if not torch.distributed.is_available():
        return False
    return torch.nn.parallel.DistributedDataParallel._active_ddp_module is not None


@contextlib.contextmanager
def defining_operator(namespace: str, schema: str, fake: Callable[..., Any]) -> Iterator[Any]:
    """Defines an operator that takes dense tensors, and gives its overload.

    Inductor lays its inputs out densely. If the body raises, there is no such operator.
    """
    library: Any = torch.library.Library(namespace, "DEF")  # type: ignore[no-untyped-call]
    tags = (torch.Tag.pt2_compliant_tag, torch.Tag.needs_contiguous_strides)
    library.define(schema, tags=tags)
    name = schema.partition("(")[0]
    torch.library.register_fake(f"{namespace}::{name}", fake, lib=library)
    try:
        yield getattr(getattr(torch.ops, namespace), name).default
    except BaseException:
        library._destroy()
        raise
    _LIBRARIES.append(library)


_LIBRARIES: list[Any] = []
"""Operators last as long as the objects that defined them."""
