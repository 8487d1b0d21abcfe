"""An optimizer of torch.optim becomes ours where it stands."""

from __future__ import annotations

import functools
from typing import Any, TypeVar

import torch

from ..errors import MpoptError, OptionError, did_you_mean
from . import _storage
from ._adam import Adam, AdamW
from ._fused import Fused
from ._sgd import SGD

_FUSED: dict[type, type[Fused]] = {
    torch.optim.Adam: Adam,
    torch.optim.AdamW: AdamW,
    torch.optim.SGD: SGD,
}

Optimizer = TypeVar("Optimizer", bound=torch.optim.Optimizer)


def fuse(optimizer: Optimizer, **options: Any) -> Optimizer:
    """Let `optimizer` take mpopt's steps from now on, and return it.

    It stays the same object with its groups, state and hooks, so that schedulers and
    scalers that hold it go on. One that is ours already is returned as it is. `options`:
    `master`, `rounding`, `seed` and `state_dtype`, see `Fused`; for all groups.

    Raises:
        OptionError: a bad option; the optimizer is left as it was.
        MpoptError: the optimizer is none of Adam, AdamW and SGD of torch.optim itself; it
            is left as it was.
    """
    _check_options(optimizer, options)
    if isinstance(optimizer, Fused):
        return _with_options(optimizer, options)
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
    return _with_options(optimizer, options)


def _check_options(optimizer: torch.optim.Optimizer, options: dict[str, Any]) -> None:
    for name in options:
        if name not in _storage.DEFAULTS:
            known = did_you_mean(name, _storage.DEFAULTS)
            raise OptionError(f"fuse has no option {name!r}{known}")
    for group in optimizer.param_groups:
        _storage.check({**group, **options})


def _with_options(optimizer: Optimizer, options: dict[str, Any]) -> Optimizer:
    chosen = _storage.given(options)
    if chosen:
        optimizer.defaults.update(chosen)
        for group in optimizer.param_groups:
            group.update(chosen)
        _storage.restore(optimizer, optimizer.state_dict())
    return optimizer


def _follow_schedulers(optimizer: Any, ours: type[Fused]) -> None:
    """A scheduler has put a `step` on the object that calls the former class's."""

    @functools.wraps(ours.step)
    def step(*args: Any, **kwargs: Any) -> Any:
        optimizer._opt_called = True
        return ours.step(optimizer, *args, **kwargs)

    step._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    optimizer.step = step
