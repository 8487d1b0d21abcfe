"""Runs a model's graphs as the backend gets them, and measures every value.

Values are measured before they are rounded: what autocast computes in a half type is computed
in fp32 here, so that an overflow is seen with its size and does not hide what comes after it.
An operator that refuses the wider type runs in the traced one.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, fx

from . import _torch, _torch_watch, composites, importer, origins, range_keys
from .attributes import LOW_PRECISION
from .native import op_kind
from .range_keys import Key
from .ranges import Range, logits_of_attention, logits_of_softmax

_OUTPUTS = "mpopt_outputs"
_AS_TRACED = frozenset({"bitcast", "effect"})
# The number of the argument that says a softmax of halves is to give fp32.
_WIDENS = {
    torch.ops.aten._softmax.default: 2,
    torch.ops.aten._log_softmax.default: 2,
}


class Recorder:
    """A backend of `torch.compile` that fills `ranges`."""

    def __init__(self) -> None:
        self.ranges: defaultdict[Key, Range] = defaultdict(Range)

    def __call__(self, gm: fx.GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        """What runs in place of Dynamo's graph `gm`."""
        capture = origins.capture(gm, example_inputs)
        compile_graphs = _torch_watch.aot_compiler(
            lambda graph, _: self._runner(graph),
            lambda graph, _: self._runner(graph, is_backward=True),
            lambda graph, _: self._inference(graph, capture),
            lambda joint, inputs, **more: self._partition(joint, inputs, capture, **more),
            composites.keeping_table(),
        )
        run: Callable[..., Any] = compile_graphs(gm, example_inputs)
        return run

    def _partition(
        self, joint: fx.GraphModule, inputs: Any, capture: origins.Capture, **more: Any
    ) -> tuple[Any, Any]:
        range_keys.mark(joint.graph, capture.inputs)
        with _torch_watch.keeping_like_nodes():
            forward, backward = _torch.partition(joint, inputs, **more)
        # What comes after these is saved for backward, in our types.
        _output_of(forward).meta[_OUTPUTS] = more["num_fwd_outputs"]
        return forward, backward

    def _inference(self, gm: fx.GraphModule, capture: origins.Capture) -> Callable[..., Any]:
        range_keys.mark(gm.graph, capture.inputs)
        return self._runner(gm)

    def _runner(self, gm: fx.GraphModule, is_backward: bool = False) -> Callable[..., Any]:
        traced = [_dtype_of(leaf) for leaf in _leaves_of(gm)]
        count = _output_of(gm).meta.get(_OUTPUTS, len(traced))

        def run(args: list[Any]) -> Any:
            values = list(args)
            args.clear()
            with _torch_watch.as_compiled_code_runs():
                results = _Interpreter(gm, self, is_backward).run(*values)
                visible = zip(results, traced[:count], strict=False)
                return [*itertools.starmap(_converted, visible), *results[count:]]

        run._boxed_call = True  # type: ignore[attr-defined]
        return run


class _Interpreter(fx.Interpreter):
    """One run of one graph."""

    def __init__(self, gm: fx.GraphModule, recorder: Recorder, is_backward: bool) -> None:
        super().__init__(gm)
        self.ranges = recorder.ranges
        self.is_backward = is_backward
        self.given: dict[fx.Node, Any] = {}
        """Inputs as they came: an operator that writes into one must have that one."""

    def run_node(self, n: fx.Node) -> Any:
        if n.op == "call_function":
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            result = _widened(self._call(n, args, kwargs))
        else:
            result = super().run_node(n)
            if n.op == "placeholder":
                self.given[n] = result
                result = _widened(result)
        key = range_keys.key_of(n)
        if key is not None and self._counts(n, key):
            self._record(n, key, result)
        return result

    def _counts(self, node: fx.Node, key: Key) -> bool:
        """False for what backward saved or computes once more."""
        if node.op == "placeholder":
            return not self.is_backward or key.op == "tangent"
        return not self.is_backward or key.phase == "backward"

    # Running ------------------------------------------------------------------

    def _call(self, node: fx.Node, args: Any, kwargs: Any) -> Any:
        target: Any = node.target
        if not _torch.is_operator(target) or _writes(target):
            return self._call_as_traced(node)
        if op_kind(str(target)) in _AS_TRACED:
            return self._call_as_traced(node)
        wide_args, wide_kwargs = fx.node.map_aggregate((args, kwargs), _wide_argument)
        try:
            return target(*_without_widening(target, wide_args), **wide_kwargs)
        except (RuntimeError, ValueError, TypeError, NotImplementedError):
            return self._call_as_traced(node)

    def _call_as_traced(self, node: fx.Node) -> Any:
        def value(arg: fx.Node) -> Any:
            if arg in self.given:
                return self.given[arg]
            return _converted(self.env[arg], _dtype_of(arg))

        target: Any = node.target
        return target(*fx.map_arg(node.args, value), **fx.map_arg(node.kwargs, value))

    # Measuring ----------------------------------------------------------------

    def _record(self, node: fx.Node, key: Key, result: Any) -> None:
        traced = node.meta.get("val")
        pairs: Any = [(result, traced)]
        if isinstance(result, list | tuple) and isinstance(traced, list | tuple):
            pairs = zip(result, traced, strict=False)
        for number, (value, val) in enumerate(pairs):
            if isinstance(value, Tensor) and value.is_floating_point():
                self._add(key._replace(result=number), value, val)
        if not self.is_backward:
            self._record_heads(node, key)

    def _add(self, key: Key, value: Tensor, traced: Any) -> None:
        range_ = self.ranges[key]
        range_.dtype = str(getattr(traced, "dtype", value.dtype)).removeprefix("torch.")
        range_.add(value)

    def _record_heads(self, node: fx.Node, key: Key) -> None:
        is_fused = node.op == "call_function" and op_kind(str(node.target)) == "attention"
        if not is_fused and node.target not in _WIDENS:
            return
        arguments = {k: self._value(v) for k, v in importer.arguments_of(node)}
        if is_fused:
            query, keys = arguments.get("query"), arguments.get("key")
            if isinstance(query, Tensor) and isinstance(keys, Tensor) and query.ndim == 4:
                scale = arguments.get("scale")
                self.ranges[key].add_logits(logits_of_attention(query, keys, scale))
            return
        given, dim = arguments["self"], arguments["dim"]
        if given.ndim == 4 and dim in (3, -1) and given.numel():
            self.ranges[key].add_logits(logits_of_softmax(given))

    def _value(self, arg: Any) -> Any:
        return self.env.get(arg) if isinstance(arg, fx.Node) else arg


def _output_of(gm: fx.GraphModule) -> fx.Node:
    output: fx.Node = gm.graph.find_nodes(op="output")[0]
    return output


def _leaves_of(gm: fx.GraphModule) -> Sequence[Any]:
    leaves: Any = _output_of(gm).args[0]
    return leaves if isinstance(leaves, list | tuple) else [leaves]


def _dtype_of(node: Any) -> torch.dtype | None:
    """Of the half tensor that `node` was traced as; None for anything else."""
    value = node.meta.get("val") if isinstance(node, fx.Node) else None
    return value.dtype if isinstance(value, Tensor) and value.dtype in LOW_PRECISION else None


def _converted(value: Any, dtype: torch.dtype | None) -> Any:
    return value.to(dtype) if isinstance(value, Tensor) and dtype is not None else value


def _widened(value: Any) -> Any:
    """`value` with half tensors in fp32, also those in lists."""
    if isinstance(value, Tensor):
        return value.float() if value.dtype in LOW_PRECISION else value
    if isinstance(value, list | tuple):
        return type(value)(map(_widened, value)) if type(value) in (list, tuple) else value
    return value


def _wide_argument(arg: Any) -> Any:
    return torch.float32 if isinstance(arg, torch.dtype) and arg in LOW_PRECISION else arg


def _without_widening(target: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    number = _WIDENS.get(target)
    if number is None or args[0].dtype in LOW_PRECISION:
        return args
    return (*args[:number], False, *args[number + 1 :])


def _writes(target: Any) -> bool:
    return bool(target._schema.is_mutable)
