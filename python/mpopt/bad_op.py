"""Finds the operator that made an inf or NaN: runs forward and backward of a step again, eagerly,
and looks at each result.

An operator is to blame if its result holds a NaN that none of its operands held, or an inf
where all operands, numbers among them, were finite. So a mask of -inf is nobody's fault, but
a softmax over a row of nothing else is.
"""

from __future__ import annotations

import math
import re
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from . import _torch
from .callbacks import BadOp

_INF, _NAN = 1, 2
_PACKAGES = (Path(torch.__file__).parent, Path(__file__).parent)
_FRAME = re.compile(r'File "(?P<file>[^"]*)", line (?P<line>\d+), in (?P<function>\S+)')


def find(model: nn.Module, batch: Any, loss: Callable[[], Tensor]) -> BadOp | None:
    """The first operator at fault in `loss()` and its backward; None if all is finite.

    `loss` runs `model` itself on `batch`. Gradients, buffers and the state of random numbers
    are left as they are.
    """
    origin = _bad_before(model, batch)
    if origin is not None:
        return origin
    watch = Watch()
    params = [p for p in model.parameters() if p.requires_grad]
    with ExitStack() as stack:
        stack.enter_context(kept_buffers(model))
        # Nodes then hold the stack of the forward pass that made them.
        stack.enter_context(torch.autograd.set_detect_anomaly(True, check_nan=False))
        stack.enter_context(watch.modules_of(model))
        stack.enter_context(watch)
        value = loss()
        if watch.found is None:
            torch.autograd.grad(value, params, allow_unused=True)
    return watch.found


def _bad_before(model: nn.Module, batch: Any) -> BadOp | None:
    for name, param in model.named_parameters():
        if bits := _bits([param]):
            return BadOp("parameter", name, "forward", _kind(bits), "")
    if bits := _bits(_leaves(batch)):
        return BadOp("batch", "", "forward", _kind(bits), "")
    return None


@contextmanager
def kept_buffers(model: nn.Module) -> Iterator[None]:
    """Statistics of normalization are not to count a batch twice."""
    before = [
        (module, name, buffer, buffer.clone())
        for module in model.modules()
        for name, buffer in module.named_buffers(recurse=False)
    ]
    try:
        yield
    finally:
        with torch.no_grad():
            for module, name, buffer, value in before:
                buffer.copy_(value)
                setattr(module, name, buffer)  # the forward may have put another one there


class Watch(_torch.TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Looks at the results of all operators until one is at fault."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: BadOp | None = None
        self._open: list[str] = []
        """Names of the modules that run, the innermost last."""
        self._first = _torch.next_autograd_node()
        self._modules: list[str] = []
        """The module that made each node of autograd, from number `_first` on."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if self.found is not None:
            return func(*args, **kwargs)
        given = _bits(_leaves([args, kwargs]))  # before: the operator may write into them
        result = func(*args, **kwargs)
        made = _bits(_leaves(result))
        is_new = made & _NAN & ~given or (made & _INF and not given)
        if is_new and "empty" not in func.__name__:
            self.found = self._blame(str(func), _kind(made))
        return result

    def _blame(self, op: str, kind: Literal["inf", "nan"]) -> BadOp:
        node = _torch.current_autograd_node()
        if node is None:
            frames = traceback.format_stack()
            module = self._open[-1] if self._open else ""
            return BadOp(op, module, "forward", kind, _line_of(frames))
        number = _torch.number_of_node(node) - self._first
        module = self._modules[number] if 0 <= number < len(self._modules) else ""
        frames = node.metadata.get("traceback_") or []
        return BadOp(op, module, "backward", kind, _line_of(frames))

    @contextmanager
    def modules_of(self, model: nn.Module) -> Iterator[None]:
        """Follow which module runs, in forward."""
        with ExitStack() as stack:
            for name, module in model.named_modules():
                for handle in self._hooks(name, module):
                    stack.callback(handle.remove)
            yield

    def _hooks(self, name: str, module: nn.Module) -> Iterable[Any]:
        yield module.register_forward_pre_hook(lambda *_: self.enter(name))
        yield module.register_forward_hook(lambda *_: self.leave(), always_call=True)

    def enter(self, name: str) -> None:
        """What runs next, in forward, is of `name`."""
        self._note_nodes()
        self._open.append(name)

    def leave(self) -> None:
        """What was entered last is over."""
        self._note_nodes()
        self._open.pop()

    def _note_nodes(self) -> None:
        """The nodes made since the last look are of the module that ran."""
        name = self._open[-1] if self._open else ""
        made = _torch.next_autograd_node() - self._first - len(self._modules)
        self._modules += [name] * made


def _leaves(value: Any) -> Iterator[Any]:
    """Tensors and numbers in nested lists and mappings."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, Tensor | float):
        yield value


def _bits(values: Iterable[Any]) -> int:
    """_INF and _NAN, as far as they are in dense tensors or are numbers."""
    bits = 0
    for value in values:
        if isinstance(value, float):
            bits |= _INF * math.isinf(value) | _NAN * math.isnan(value)
        elif value.layout is torch.strided and (value.is_floating_point() or value.is_complex()):
            value = value.detach()
            wide = value if value.element_size() > 1 else value.float()
            bits |= _INF * bool(wide.isinf().any()) | _NAN * bool(wide.isnan().any())
    return bits


def _kind(bits: int) -> Literal["inf", "nan"]:
    return "nan" if bits & _NAN else "inf"


def _line_of(frames: Iterable[str]) -> str:
    """The innermost line of a formatted stack that is neither PyTorch's nor ours."""
    line = ""
    for frame in frames:
        match = _FRAME.search(frame)
        if (
            match
            and match["file"][:1] != "<"
            and not any(p in Path(match["file"]).parents for p in _PACKAGES)
        ):
            line = f"{match['file']}:{match['line']} in {match['function']}"
    return line
