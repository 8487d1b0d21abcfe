"""Tensors as addresses, for the native update, and what it cannot take."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

FORMATS = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}

HALF = (torch.float16, torch.bfloat16)

Address = tuple[int, str]


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
    if param.device.type != "cpu":
        return f"a parameter on {param.device.type}"
    if grad.layout is not torch.strided or param.layout is not torch.strided:
        return f"a gradient of layout {grad.layout}"
    real = torch.view_as_real(param).dtype if param.is_complex() else param.dtype
    if real not in FORMATS:
        return f"a parameter of {param.dtype}"
    if param.is_complex() != grad.is_complex():
        return f"a gradient of {grad.dtype} for a parameter of {param.dtype}"
    if not is_dense(param):
        return "a parameter with gaps or overlaps in memory"
    return ""


def real_view(tensor: Tensor) -> Tensor:
    """Complex numbers as pairs of real ones; any other tensor as it is."""
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def aligned(tensor: Tensor, like: Tensor) -> Tensor:
    """`tensor`, copied only if its elements lie in another order than those of `like`."""
    if tensor.stride() == like.stride():
        return tensor
    return torch.empty_like(like, dtype=tensor.dtype).copy_(tensor)


def address(tensor: Tensor | None) -> Address | None:
    """Where the elements of a dense tensor begin, and their format."""
    return None if tensor is None else (tensor.data_ptr(), FORMATS[tensor.dtype])


def row(param: Tensor, grad: Tensor, arrays: dict[str, Any]) -> dict[str, Any]:
    """What `_mpopt.Update` takes for one parameter."""
    low = arrays.pop("low", None)
    states = {name: address(arrays.pop(name, None)) for name in STATES}
    return {
        "size": param.numel(),
        "weight": address(param),
        "low": 0 if low is None else low.data_ptr(),
        "gradient": address(grad),
        **states,
        **arrays,
    }


STATES = ("first", "second", "largest", "copy")
