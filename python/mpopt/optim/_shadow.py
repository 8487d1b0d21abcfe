"""Half copies of weights that the update writes as it goes.

A copy is current while its parameter has the memory and the version counter that it had
when the copy was written. Writes through `.data` move neither: whoever writes so calls
`Fused.refresh_half_copies`.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from .. import _torch
from ..errors import MpoptError
from ._arrays import HALF, is_dense, is_plain
from ._distributed import local

if TYPE_CHECKING:
    from ._fused import Fused

_owners: WeakTensorKeyDictionary = WeakTensorKeyDictionary()


def own(param: Tensor, optimizer: Fused) -> None:
    """Record that `optimizer` updates `param`; the last one that says so counts."""
    _owners[param] = weakref.ref(optimizer)


def owner_of(param: Tensor) -> Fused | None:
    """The optimizer of ours that updates `param`, if it is alive."""
    reference: weakref.ref[Fused] | None = _owners.get(param)  # type: ignore[no-untyped-call]
    return None if reference is None else reference()


def any_owner() -> bool:
    """True if a parameter may have an owner."""
    return len(_owners) > 0


@dataclass
class Stamp:
    """What a parameter was when something that follows from it was written."""

    version: int = -1
    address: int = 0

    def is_current(self, param: Tensor) -> bool:
        """True if nothing has changed `param` since, as far as PyTorch counts."""
        return (self.version, self.address) == _now(param)

    def stamp(self, param: Tensor) -> None:
        """Record that it is written."""
        self.version, self.address = _now(param)


def _now(param: Tensor) -> tuple[int, int]:
    """What moves when `param` changes. A DTensor counts writes to itself, its piece those that
    go past it."""
    piece = local(param)
    version = param._version + (0 if piece is param else piece._version)
    return version, piece.data_ptr()


@dataclass(kw_only=True)
class Shadow(Stamp):
    """The half copy of one parameter, and when it was written."""

    half: Tensor

    def refresh(self, param: Tensor) -> None:
        """Cast the whole parameter again."""
        with torch.no_grad():
            self.half.copy_(param)
        self.stamp(param)


def why_no_copy(param: Tensor, dtype: torch.dtype) -> str:
    """Why a parameter has no half copy in `dtype`; "" if it can have one."""
    if dtype not in HALF:
        return f"a half copy is of float16 or bfloat16, not {dtype}"
    if not is_plain(param):
        return f"a half copy is of a whole parameter, not of a {type(param).__name__}"
    if _torch.is_swapped_by_fsdp(param):
        return "nobody can tell whether a half copy is current in FullyShardedDataParallel"
    if param.dtype is not torch.float32 or not is_dense(param):
        return f"a half copy needs a dense parameter of float32, not {param.dtype}"
    return ""


def make_shadow(param: Tensor, dtype: torch.dtype) -> Shadow:
    """A current half copy. Raises MpoptError for what has none."""
    reason = why_no_copy(param, dtype)
    if reason:
        raise MpoptError(reason)
    shadow = Shadow(half=torch.empty_like(param, dtype=dtype, requires_grad=False))
    shadow.refresh(param)
    return shadow
