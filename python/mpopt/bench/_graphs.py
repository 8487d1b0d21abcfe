"""Joint graphs, traced or read from files, for what looks at models without running them.

A file is JSON, perhaps gzipped: `info` (`num_fwd_outputs`, and in `static` the numbers of the
inputs that stay where they are), and `nodes` in order, each with `name`, `op`, `target`, `args`,
`kwargs`, `val` and `prov` (what is known of its origin, such as `partitioner_tag`). A tensor is
its shape, stride and dtype: nothing of its values is kept. Arguments that JSON lacks are objects
of one key: `n` a node, `dt` a dtype, `dev` a device, `lay` a layout, `mf` a memory format, `l` a
list, `t` a tuple, `sl` a slice, `f` a number that is not finite.
"""

from __future__ import annotations

import contextlib
import gzip
import importlib
import json
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode

from .. import _torch
from ._errors import BenchError, UsageError, check_name
from .cuda_policy import cuda_policy
from .families import Size, build

SUFFIXES = (".json.gz", ".json")
_TAG = "partitioner_tag"


@dataclass(frozen=True)
class JointGraph:
    """A joint graph as AOTAutograd traced it.

    Attributes:
        module: the graph, with fake values.
        result_count: how many of its results are those of forward.
        static: numbers of inputs that stay where they are, as parameters do.
        mode: the mode of its fake values.
    """

    module: fx.GraphModule
    result_count: int
    static: tuple[int, ...]
    mode: Any


def graph_files(folder: str, names: Sequence[str] | None = None) -> list[Path]:
    """The graphs in `folder`, or those called `names`.

    Raises:
        UsageError: there is none, or not one of them.
    """
    root = Path(folder)
    if not root.is_dir():
        raise UsageError(f"--graphs: no folder '{folder}'")
    files = {graph_name(p): p for p in sorted(root.iterdir()) if p.name.endswith(SUFFIXES)}
    if not files:
        raise UsageError(f"--graphs: no file *{SUFFIXES[0]} in '{folder}'")
    if names is None:
        return list(files.values())
    return [files[check_name("graph", name, files)] for name in names]


def graph_name(path: Path) -> str:
    """The file's name without its suffix."""
    for suffix in SUFFIXES:
        if path.name.endswith(suffix):
            return path.name.removesuffix(suffix)
    return path.name


def load_graph(path: Path) -> JointGraph:
    """Read a graph.

    Raises:
        BenchError: the file is not a graph, or names an operator that is not there.
    """
    opener: Callable[..., Any] = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            data = json.load(file)
    except (OSError, ValueError) as error:
        raise BenchError(f"{path}: {error}") from error
    try:
        return _Reader(data).read()
    except (KeyError, TypeError, AttributeError, ImportError) as error:
        raise BenchError(f"{path}: {type(error).__name__}: {error}") from error


class _Reader:
    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.mode = FakeTensorMode(allow_non_fake_inputs=True)
        self.root = torch.nn.Module()
        self.graph = fx.Graph()
        self.nodes: dict[str, fx.Node] = {}

    def read(self) -> JointGraph:
        info = self.data["info"]
        for name, value in self.data.get("consts", {}).items():
            self.root.register_buffer(name, self._value(value))
        for record in self.data["nodes"]:
            self._add(record)
        module = fx.GraphModule(self.root, self.graph)
        return JointGraph(module, info["num_fwd_outputs"], tuple(info["static"]), self.mode)

    def _add(self, record: dict[str, Any]) -> None:
        args, kwargs = self._decode_all(record)
        node = self._create(record, args, kwargs)
        self.nodes[record["name"]] = node
        node.meta["val"] = self._value(record["val"])
        tag = record.get("prov", {}).get(_TAG)
        if tag is not None:
            node.meta[_TAG] = tag

    def _decode_all(self, record: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        kwargs = {key: self._decode(item) for key, item in record["kwargs"].items()}
        return tuple(self._decode(record["args"])), kwargs

    def _create(
        self, record: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> fx.Node:
        op, target = record["op"], record["target"]
        if op == "output":
            return self.graph.output(args[0])  # type: ignore[no-any-return]
        if op == "call_function":
            target = _resolve(target)
        return self.graph.create_node(op, target, args, kwargs, record["name"])

    def _value(self, value: Any) -> Any:
        if isinstance(value, list):
            return tuple(self._value(item) for item in value)
        if value is None or "other" in value:
            return None
        with self.mode:
            dtype = getattr(torch, value["dtype"])
            return torch.empty_strided(value["shape"], value["stride"], dtype=dtype)

    def _decode(self, arg: Any) -> Any:
        if not isinstance(arg, dict):
            return arg
        ((key, value),) = arg.items()
        match key:
            case "n":
                return self.nodes[value]
            case "dt" | "lay" | "mf":
                return getattr(torch, value)
            case "dev":
                return torch.device(value)
            case "f":
                return float(value)
        items = [self._decode(item) for item in value]
        if key == "sl":
            return slice(*items)
        return tuple(items) if key == "t" else items


def _resolve(text: str) -> Any:
    """The operator or function called `text`."""
    importlib.import_module("torch._inductor.lowering")  # registers operators of Inductor's own
    kind, _, name = text.partition(":")
    if kind == "hop":
        return getattr(torch.ops.higher_order, name)
    if kind == "py":
        if name == "getitem":
            return operator.getitem
        module, _, function = name.rpartition(".")
        return getattr(importlib.import_module(module.replace("_operator", "operator")), function)
    if name.startswith("transformers."):
        importlib.import_module("transformers.integrations.moe")  # registers it
    space, packet, overload = name.split(".")
    return getattr(getattr(getattr(torch.ops, space), packet), overload)


def trace(family: str, size: Size) -> Callable[[], JointGraph]:
    """Trace a training step of a family as on a GPU, with CUDA's autocast lists.

    Returns what gives a fresh graph at each call.

    Raises:
        BenchError: no joint graph was traced.
    """
    caught: list[tuple[fx.GraphModule, dict[str, Any]]] = []

    def catch(module: fx.GraphModule, inputs: Any, **kwargs: Any) -> Any:
        caught.append((module, kwargs))
        raise _StopError

    with cuda_policy():
        model, batch = build(family, size)
        step = torch.compile(model, backend=joint_backend(catch), dynamic=False)
        with contextlib.suppress(Exception), torch.autocast("cpu", torch.bfloat16):
            step(*batch)
    if not caught:
        raise BenchError(f"{family}: no joint graph was traced")
    return lambda: _copied(*caught[0])


class _StopError(Exception):
    """The graph is caught; nothing after it is of interest."""


def joint_backend(partition: Callable[..., Any]) -> Any:
    """A backend of `torch.compile` that gives joint graphs to `partition`."""
    from torch._dynamo.backends.common import aot_autograd
    from torch._inductor.decomposition import select_decomp_table

    return aot_autograd(
        fw_compiler=lambda module, inputs: module,
        partition_fn=partition,
        decompositions=select_decomp_table(),
        keep_inference_input_mutations=True,
    )


def _copied(module: fx.GraphModule, kwargs: dict[str, Any]) -> JointGraph:
    graph = fx.Graph(module)
    nodes: dict[fx.Node, fx.Node] = {}
    graph.output(graph.graph_copy(module.graph, nodes))
    mode = _torch.fake_mode_of([node.meta.get("val") for node in graph.nodes])
    if mode is None:
        raise BenchError("a graph without traced values")
    static = tuple(kwargs.get("static_lifetime_input_indices") or ())
    return JointGraph(fx.GraphModule(module, graph), kwargs["num_fwd_outputs"], static, mode)
