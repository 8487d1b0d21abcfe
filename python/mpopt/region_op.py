"""The operator `mpopt::region`: a kernel of ours inside of PyTorch's graphs.

`region(Tensor[] inputs, str kernel, SymInt[] sizes) -> Tensor[]`. `kernel` is the text of a
module in the form of the backend contract (codegen/docs/BackendContract.md): with it a
compiled graph says all that a process needs to compile and run the kernel, also one that
takes the graph from a cache. `sizes` has the extent that stands for `?`, if there is one.

Inputs are dense; the tag has Inductor lay them out so. Results are dense as well.
"""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from . import _torch, kernels
from .errors import MpoptError

_SCHEMA = "region(Tensor[] inputs, str kernel, SymInt[] sizes) -> Tensor[]"
_LIBRARY = "_mpopt_torch.so"
_TENSOR = re.compile(r"tensor<([^>]*)>")
_FUNCTION = re.compile(r"@kernel\((?P<arguments>.*?)\)\s*(?:->(?P<results>[^{]*))?", re.DOTALL)
_DTYPES = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "i1": torch.bool,
    "i8": torch.int8,
    "i32": torch.int32,
    "i64": torch.int64,
}


@dataclass(frozen=True)
class TensorType:
    """A dense tensor; None is an extent that is known only at run time."""

    shape: tuple[int | None, ...]
    dtype: torch.dtype


@dataclass(frozen=True)
class Signature:
    """The types of a kernel's arguments and results."""

    arguments: tuple[TensorType, ...]
    results: tuple[TensorType, ...]

    @property
    def sized_by(self) -> tuple[int, int] | None:
        """Where a call finds the dynamic extent: an argument's number, and a dimension."""
        for number, argument in enumerate(self.arguments):
            if None in argument.shape:
                return number, argument.shape.index(None)
        return None


@functools.lru_cache(maxsize=4096)
def signature(kernel: str) -> Signature:
    """The types in a kernel's text. Raises MpoptError if it is no kernel."""
    found = _FUNCTION.search(kernel)
    if found is None:
        raise MpoptError("a kernel's text holds no function @kernel")
    results = _types(found["results"] or "")
    if not results:
        raise MpoptError("a kernel's function @kernel has no result")
    return Signature(_types(found["arguments"]), results)


def _types(text: str) -> tuple[TensorType, ...]:
    return tuple(_type(item) for item in _TENSOR.findall(text))


def _type(text: str) -> TensorType:
    *extents, element = text.split("x")
    if element not in _DTYPES or not all(e == "?" or e.isdigit() for e in extents):
        raise MpoptError(f"a kernel has a tensor<{text}>, which the contract does not know")
    return TensorType(tuple(None if e == "?" else int(e) for e in extents), _DTYPES[element])


@functools.cache
def load() -> Any:
    """The operator's overload, defined by the first call.

    Raises MpoptError if the library is missing or does not load.
    """
    path = Path(__file__).with_name(_LIBRARY)
    with _torch.defining_operator("mpopt", _SCHEMA, _fake) as target:
        try:
            # Local symbols: it needs those of libtorch_cpu.so, which it names.
            native = ctypes.CDLL(str(path))
        except OSError as error:
            text = f"cannot load the operators: {error}; run tools/dev.sh build"
            raise MpoptError(text) from error
    kernels.connect(native)
    return target


def _fake(
    inputs: Sequence[torch.Tensor], kernel: str, sizes: Sequence[int | torch.SymInt]
) -> list[torch.Tensor]:
    """Results without values, which say their types only."""
    like = inputs[0]
    results = []
    for result in signature(kernel).results:
        shape = [sizes[0] if extent is None else extent for extent in result.shape]
        results.append(like.new_empty(shape, dtype=result.dtype))
    return results
