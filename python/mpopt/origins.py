"""Who asked for a conversion, and which inputs are weights.

Both are known where Dynamo hands the graph over and lost further down. A tag in
`meta["custom"]` reaches the joint graph, forward and backward; inputs are found
again through their descriptors.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from . import _torch
from .attributes import LOW_PRECISION
from .native import op_kind

TAG = "mpopt"
USER, AUTOCAST, PROMOTION, DECOMPOSITION = "user", "autocast", "promotion", "decomposition"

_CAST_METHODS = frozenset(
    {"to", "float", "half", "bfloat16", "double", "type", "type_as", "int", "long", "bool"}
)
_CAST_FUNCTIONS = frozenset({"_to_copy", "convert_element_type"})
_CONVERSIONS = frozenset({str(_torch.TO_COPY), str(_torch.CONVERT)})
_CHECKPOINT = "tag_activation_checkpoint"
_WRITES = frozenset(
    {"setitem", "iadd", "isub", "imul", "itruediv", "ifloordiv", "ipow", "imod", "imatmul"}
)


@dataclasses.dataclass(frozen=True)
class Input:
    """One input of the compiled function."""

    role: str  # "parameter" | "buffer" | "input" | "symint" | "half_weight"
    name: str


@dataclasses.dataclass(frozen=True)
class Capture:
    """What was learnt from Dynamo's graph, before AOTAutograd traced it."""

    inputs: tuple[Input, ...]
    tags: tuple[tuple[str, str, str], ...]  # (node, tag, module path)
    has_low_precision: bool
    autocast: dict[str, str]
    depends_on_rounding: bool = False
    """The model rounds by name, or decides something on a half-precision value: then
    generated code must round where the graph says so."""

    halves: tuple[tuple[int, int], ...] = ()
    """Inputs that are half copies of others: (number of the weight, number of the copy)."""

    def digest(self) -> str:
        """Changes with every decision that PyTorch's cache keys do not see."""
        data = json.dumps(dataclasses.asdict(self), sort_keys=True)
        return hashlib.sha256(data.encode()).hexdigest()


def capture(gm: fx.GraphModule, example_inputs: Sequence[Any]) -> Capture:
    """Tag every node of Dynamo's graph and its sub-graphs; describe its inputs."""
    placeholders = gm.graph.find_nodes(op="placeholder")
    inputs = [_describe(p, e) for p, e in zip(placeholders, example_inputs, strict=False)]
    autocast = _torch.autocast_state()
    tags: list[tuple[str, str, str]] = []
    low, rounds = bool(autocast), False
    entered = bool(autocast)
    for graph in graphs_of(gm):
        state = Autocast(_torch.autocast_dtypes(), active=entered)
        for node in graph.nodes:
            state.step(node)
            entered = entered or state.active
            low = low or state.active or _is_low(node.meta.get("example_value"))
            if node.op in ("call_function", "call_method", "call_module"):
                tag = _tag(node, state.active)
                node.meta["custom"] = {**(node.meta.get("custom") or {}), TAG: tag}
                tags.append((node.name, tag, module_path(node.meta)))
                rounds = rounds or _rounds_by_name(node) or _decides_on_half(node)
    low = low or any(_is_low(example) for example in example_inputs)
    return Capture(tuple(inputs), tuple(tags), low, autocast, rounds)


def graphs_of(gm: fx.GraphModule) -> Iterator[fx.Graph]:
    """The graph of `gm` and of each graph module inside, each once."""
    for module in gm.modules():
        if isinstance(module, fx.GraphModule):
            yield module.graph


def checkpointed_body(node: fx.Node) -> fx.GraphModule | None:
    """The module that `node` of Dynamo's graph runs and runs again in backward, if it does."""
    if not _torch.is_higher_order(node.target) or target_name(node) != _CHECKPOINT:
        return None
    body = node.args[0]
    if not isinstance(body, fx.Node) or body.op != "get_attr" or not isinstance(body.target, str):
        return None
    module = getattr(node.graph.owning_module, body.target, None)
    return module if isinstance(module, fx.GraphModule) else None


def _is_low(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.dtype in LOW_PRECISION
    return isinstance(value, list | tuple) and any(_is_low(item) for item in value)


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for item in value for t in _tensors(item)] if isinstance(value, list | tuple) else []


def _operands(node: fx.Node) -> list[torch.Tensor]:
    return [t for arg in node.all_input_nodes for t in _tensors(arg.meta.get("example_value"))]


def _rounds_by_name(node: fx.Node) -> bool:
    """True if the model's text asks for a half type where it had a wider float."""
    results = _tensors(node.meta.get("example_value"))
    return (
        is_user_cast(node)
        and any(t.dtype in LOW_PRECISION for t in results)
        and any(t.is_floating_point() and t.dtype not in LOW_PRECISION for t in _operands(node))
    )


def _decides_on_half(node: fx.Node) -> bool:
    """True if integers, truth values or whole numbers come out of half-precision values."""
    if not any(t.dtype in LOW_PRECISION for t in _operands(node)):
        return False
    discrete = (
        not (t.is_floating_point() or t.is_complex())
        for t in _tensors(node.meta.get("example_value"))
    )
    name = target_name(node).split(".")[0]
    return any(discrete) or op_kind(f"aten.{name}") == "rounding"


def _describe(placeholder: fx.Node, example: Any) -> Input:
    source = _torch.placeholder_source(placeholder)
    name = clean_path(source) or placeholder.name
    if isinstance(example, int | torch.SymInt | torch.SymFloat):
        return Input("symint", name)
    if isinstance(example, torch.nn.Parameter):
        return Input("parameter", name)
    if isinstance(example, torch.Tensor) and _torch.is_static_input(placeholder):
        return Input("buffer", name)
    return Input("input", name)


def target_name(node: fx.Node) -> str:
    """The name of what a node of Dynamo's graph calls."""
    return str(getattr(node.target, "__name__", node.target))


class Autocast:
    """Where autocast is on, and in which dtype, while walking over enter and exit nodes.

    A sub-graph starts as on if it may have been called so: who reads the state
    treats the conversions of autocast and of decompositions alike.
    """

    def __init__(self, dtypes: Mapping[str, torch.dtype], *, active: bool = False) -> None:
        self.dtypes: dict[str, torch.dtype] = dict(dtypes)
        self.assumed = active
        self.outside: dict[Any, tuple[dict[str, torch.dtype], bool]] = {}

    @property
    def active(self) -> bool:
        """True if autocast is or may be on for some device."""
        return self.assumed or bool(self.dtypes)

    def dtype_on(self, device: str) -> torch.dtype | None:
        """The half type on a device type; None where autocast is not known to be on."""
        return self.dtypes.get(device)

    def step(self, node: fx.Node) -> None:
        """Go past `node`."""
        name = target_name(node)
        if name == "_enter_autocast":
            self.outside[node] = self.dtypes, self.assumed
            self._enter(*node.args)
        elif name == "_exit_autocast" and node.args[0] in self.outside:
            self.dtypes, self.assumed = self.outside[node.args[0]]

    def _enter(self, device: Any, dtype: Any = None, enabled: Any = True, *_: Any) -> None:
        rest = {k: v for k, v in self.dtypes.items() if k != device}
        if enabled:
            rest[device] = dtype or torch.get_autocast_dtype(device)
        self.dtypes, self.assumed = rest, False


def _tag(node: fx.Node, autocast: bool) -> str:
    if is_user_cast(node):
        return USER
    mixed = "+mixed" if _mixes_dtypes(node) else ""
    return ("autocast" if autocast else "op") + mixed


def is_user_cast(node: fx.Node) -> bool:
    """True if the model's text asks for a dtype in `node`, or writes into a given one."""
    name = target_name(node).split(".")[0]
    if name in _CAST_METHODS or name in _CAST_FUNCTIONS or is_write(node):
        return True
    arguments = [*node.args, *node.kwargs.values()]
    return any(isinstance(arg, torch.dtype) for arg in arguments)


def is_write(node: fx.Node) -> bool:
    """True if a node of Dynamo's graph writes into one of its operands."""
    name = target_name(node).split(".")[0]
    in_place = name.endswith("_") and not name.startswith("_")
    return name in _WRITES or in_place or "out" in node.kwargs


def _mixes_dtypes(node: fx.Node) -> bool:
    dtypes = set()
    for arg in node.all_input_nodes:
        value = arg.meta.get("example_value")
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            dtypes.add(value.dtype)
    return len(dtypes) > 1


def origin_of(node: fx.Node) -> str:
    """Origin of a conversion in the joint graph; "user" when nothing is known."""
    tag = (node.meta.get("custom") or {}).get(TAG)
    if not isinstance(tag, str) or tag == USER:
        return USER
    original = node.meta.get("original_aten")
    if original is None:
        return USER
    # By name: tracing deep-copies metadata, and a copied overload is another object.
    if str(original) in _CONVERSIONS:
        return AUTOCAST if tag.startswith("autocast") else DECOMPOSITION
    return PROMOTION if tag.endswith("+mixed") else DECOMPOSITION


_ROOT = re.compile(r"[LG]\[['\"](\w+)['\"]\]")
_QUOTED_KEY = re.compile(r"\[['\"]?([\w.]+)['\"]?\]")
_CONTAINERS = re.compile(r"\.?_(modules|parameters|buffers)(?=\.|\[|$)")


def clean_path(source: str) -> str:
    """ "blocks.0.norm" of "L['self']._modules['blocks']._modules['0'].norm"."""
    root = _ROOT.match(source)
    if root is None:
        text = source
    elif root.end() < len(source):
        text = source[root.end() :]
    else:
        text = "" if root.group(1) == "self" else root.group(1)
    text = _CONTAINERS.sub("", text)
    return _QUOTED_KEY.sub(r".\1", text).strip(".")


_paths: dict[str, str] = {}


def module_path(meta: dict[str, Any]) -> str:
    """Path of the innermost module that a node was traced in, "" at the top."""
    stack = meta.get("nn_module_stack") or meta.get("fwd_nn_module_stack")
    if not stack:
        return ""
    entry = next(reversed(stack.values()))
    source = entry[0] if isinstance(entry, tuple) else str(entry)
    path = _paths.get(source)
    if path is None:
        path = _paths[source] = clean_path(source)
    return path
