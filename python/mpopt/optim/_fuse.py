"""An optimizer of torch.optim becomes ours where it stands."""

from __future__ import annotations

import functools
from typing import Any, TypeVar

import torch

from ..errors import MpoptError
from ._adam import Adam, AdamW
from ._fused import Fused
from ._sgd import SGD

_FUSED: dict[type, type[Fused]] = {
    torch.optim.Adam: Adam,
    torch.optim.AdamW: AdamW,
    torch.optim.SGD: SGD,
}

Optimizer = TypeVar("Optimizer", bound=torch.optim.Optimizer)


def fuse(optimizer: Optimizer) -> Optimizer:
    """Let `optimizer` take mpopt's steps from now on, and return it.

    It stays the same object with its groups, state and hooks, so that schedulers and
    scalers that hold it go on. One that is ours already is returned as it is.

    Raises:
        MpoptError: the optimizer is none of Adam, AdamW and SGD of torch.optim itself; it
            is left as it was.
    """
    if isinstance(optimizer, Fused):
        return optimizer
    ours = _FUSED.get(type(optimizer))
    if ours is None:
        name = f"{type(optimizer).__module__}.{type(optimizer).__qualname__}"
        known = ", ".join(sorted(known.__name__ for known in _FUSED))
        raise MpoptError(f"cannot fuse {name}; torch.optim's {known} can be fused")
    optimizer.__class__ = ours  # type: ignore[assignment]
    optimizer._patch_step_function()
    optimizer._own()  # type: ignore[attr-defined]
    if "step" in optimizer.__dict__:
        _follow_schedulers(optimizer, ours)
    return optimizer


def _follow_schedulers(optimizer: Any, ours: type[Fused]) -> None:
    """A scheduler has put a `step` on the object that calls the former class's."""

    @functools.wraps(ours.step)
    def step(*args: Any, **kwargs: Any) -> Any:
        optimizer._opt_called = True
        return ours.step(optimizer, *args, **kwargs)

    step._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    optimizer.step = step
