"""The native update on the threads of PyTorch."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from .. import log, native

if TYPE_CHECKING:
    from .._mpopt import Update
    from ._arrays import Row


@functools.cache
def _library() -> Any:
    """The extension module, told of PyTorch's thread pool."""
    library = native.load()
    path = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"
    try:
        function = ctypes.CDLL(str(path)).torch_parallel_for
    except (OSError, AttributeError) as error:
        log.counters["fallbacks.threads"] += 1
        log.warn(f"updates run on one thread: no thread pool in {path.name} ({error})")
    else:
        library.set_parallel_for(ctypes.cast(function, ctypes.c_void_p).value)
    return library


def update(rows: list[Row], groups: list[dict[str, Any]], kernels: str = "") -> Update:
    """One step over tensors that the caller keeps alive."""
    return _library().Update(rows, groups, kernels)  # type: ignore[no-any-return]


def clip_factor(norm: float, limit: float) -> float:
    """min(1, limit / (norm + 1e-6)) in f32; 1 if `limit` is 0."""
    return float(_library().clip_factor(norm, limit))
