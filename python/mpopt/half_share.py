"""How much of a model runs in half precision, from the graphs that Dynamo captures.

These are seen in every compilation, also when the compiled code comes from a cache.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, fx

from . import _torch
from .origins import target_name

_CONVERSIONS = frozenset({"to", "type", "type_as", "float", "half", "bfloat16", "double"})
_VIEWS = frozenset(
    """getitem t transpose permute view view_as reshape unsqueeze squeeze flatten unflatten expand
    expand_as chunk split unbind narrow select swapaxes movedim contiguous detach""".split()
)


class HalfShare:
    """Counts operators of all graphs that go through `backend`."""

    def __init__(self) -> None:
        self.half = 0
        """Operators whose result is fp16 or bf16."""
        self.all = 0
        """Operators whose result is a floating-point number. No views, no conversions."""

    def counting(self, backend: Callable[..., Any]) -> Callable[..., Any]:
        """`backend`, which counts what it compiles."""

        @functools.wraps(backend)  # its attributes, too: Dynamo calls `reset`
        def counted(gm: fx.GraphModule, example_inputs: Sequence[Any], **kwargs: Any) -> Any:
            self.add(gm)
            return backend(gm, example_inputs, **kwargs)

        return counted

    def add(self, gm: fx.GraphModule) -> None:
        """Count a graph of Dynamo's and those inside it."""
        for module in gm.modules():
            if isinstance(module, fx.GraphModule):
                for dtype in _results(module.graph):
                    self.all += 1
                    self.half += dtype in (torch.float16, torch.bfloat16)

    def share(self) -> float | None:
        """Half of all; None if nothing was compiled."""
        return self.half / self.all if self.all else None


def _results(graph: fx.Graph) -> Iterator[torch.dtype]:
    """The floating-point types that operators of a graph compute."""
    for node in graph.nodes:
        if node.op not in ("call_function", "call_method", "call_module"):
            continue
        if target_name(node) in _CONVERSIONS | _VIEWS or _calls_graph(node):
            continue
        value = node.meta.get("example_value")
        first = value[0] if isinstance(value, tuple | list) and value else value
        if isinstance(first, Tensor) and first.is_floating_point():
            yield first.dtype


def _calls_graph(node: fx.Node) -> bool:
    """True for what only runs a graph inside, such as a checkpointed block."""
    return _torch.is_higher_order(node.target)
