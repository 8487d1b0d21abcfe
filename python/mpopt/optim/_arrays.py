"""Tensors as addresses, for the native update, and what it cannot take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ._distributed import PLAIN, local, why_misplaced

FORMATS = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}

HALF = (torch.float16, torch.bfloat16)

Row = tuple[Any, ...]

# A complex number is a pair of real ones.
_NUMBERS = {**{dtype: (name, 1) for dtype, name in FORMATS.items()}, torch.complex64: ("f32", 2)}


def is_plain(tensor: Tensor) -> bool:
    """True if `tensor` is memory itself and no wrapper around others, such as DTensor."""
    return type(tensor) in PLAIN


def is_dense(tensor: Tensor) -> bool:
    """True if the elements of `tensor` fill one piece of memory, in whatever order."""
    if tensor.is_contiguous():
        return True
    expected = 1
    dims = [(s, n) for n, s in zip(tensor.shape, tensor.stride(), strict=True) if n != 1]
    for stride, size in sorted(dims):
        if stride != expected:
            return False
        expected *= size
    return True


def why_unsupported(param: Tensor) -> str:
    """Why the native update cannot take a parameter and its gradient; "" if it can."""
    grad = param.grad
    if grad is None:
        return ""
    if type(param) in PLAIN and type(grad) in PLAIN:
        return "" if _is_usual(param, grad) else _why_unsupported(param, grad)
    return why_misplaced(param, grad) or _why_unsupported(local(param), local(grad))


def _is_usual(param: Tensor, grad: Tensor) -> bool:
    """True for what almost all parameters are; the answer for others takes longer."""
    return (
        param.dtype in FORMATS
        and grad.dtype in FORMATS
        and param.is_cpu
        and grad.layout is torch.strided
        and param.is_contiguous()
    )


def _why_unsupported(param: Tensor, grad: Tensor) -> str:
    for tensor in (param, grad):
        if not is_plain(tensor):
            return f"a tensor of class {type(tensor).__name__}"
    if param.device.type not in ("cpu", "cuda"):
        return f"a parameter on {param.device.type}"
    if grad.layout is not torch.strided or param.layout is not torch.strided:
        return f"a gradient of layout {grad.layout}"
    for what, dtype in (("parameter", param.dtype), ("gradient", grad.dtype)):
        if dtype not in _NUMBERS:
            return f"a {what} of {dtype}"
    if param.is_complex() != grad.is_complex():
        return f"a gradient of {grad.dtype} for a parameter of {param.dtype}"
    if not is_dense(param):
        return "a parameter with gaps or overlaps in memory"
    return ""


def aligned(tensor: Tensor, like: Tensor) -> Tensor:
    """`tensor`, copied only if its elements lie in another order than those of `like`."""
    if tensor.stride() == like.stride():
        return tensor
    return torch.empty_like(like, dtype=tensor.dtype).copy_(tensor)


def format_of(tensor: Tensor) -> str:
    """The format of the real numbers in a tensor."""
    return _NUMBERS[tensor.dtype][0]


def numbers_in(tensor: Tensor) -> int:
    """How many real numbers a tensor has."""
    return tensor.numel() * _NUMBERS[tensor.dtype][1]


def _address(tensor: Tensor | None) -> tuple[int, str]:
    """Where the elements of a dense tensor begin, 0 for none, and their format."""
    return (0, "") if tensor is None else (tensor.data_ptr(), format_of(tensor))


def row(
    param: Tensor,
    grad: Tensor,
    states: Sequence[Tensor | None],
    half: Tensor | None,
    group: int,
    step: float,
    is_first: bool,
    low: Tensor | None = None,
    stream: int = 0,
) -> Row:
    """What `_mpopt.Update` takes for one parameter."""
    size = numbers_in(param)
    arrays = [_address(tensor) for tensor in (param, grad, *states, half)]
    address = 0 if low is None else low.data_ptr()
    return size, address, group, step, is_first, *[part for pair in arrays for part in pair], stream
