"""Activation checkpointing of modules: forget what is inside one, compute it again in backward.

A checkpointed module gets a subclass of its class as its class, until `Checkpointing.remove`.
Its parameters, buffers, hooks and state dictionary are those that it had; a copy of it, or
what is pickled, is of the former class.
"""

from __future__ import annotations

import copyreg
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from .errors import did_you_mean

_MARK = "_mpopt_checkpointed"

Choice = bool | str | Callable[[str, nn.Module], bool] | Iterable[str | type[nn.Module]] | None


class Checkpointing:
    """Checkpoints modules of `model` (non-reentrant, with the random state of the first pass).

    `choice` is "full" or True for each member of the outermost `nn.ModuleList`s, or of the
    outermost `nn.Sequential`s if there are none; a list of qualified names and module classes;
    or a function of name and module. None and False choose nothing.

    Raises:
        ValueError: nothing in the model is meant by `choice` or by a part of it.
        TypeError: `choice` is none of these.
    """

    def __init__(self, model: nn.Module, choice: Choice) -> None:
        self.modules: list[nn.Module] = []
        chosen = _chosen(model, choice)
        for name, module in chosen:
            if reason := _why_not(module):
                raise ValueError(f"cannot checkpoint {name!r}: {reason}")
        for _, module in chosen:
            if module not in self.modules:
                module.__class__ = _checkpointed(type(module))  # type: ignore[arg-type]
                self.modules.append(module)

    def remove(self) -> None:
        """Give the modules their classes back."""
        while self.modules:
            module = self.modules.pop()
            module.__class__ = type(module).__bases__[0]


def _why_not(module: nn.Module) -> str:
    """Why a module cannot be checkpointed; "" if it can."""
    if "forward" in vars(module):
        return "something has put a forward of its own on it"
    if hasattr(type(module), _MARK):
        return "it is checkpointed already; close the TrainStep that did it"
    if type(module).forward is nn.Module.forward:
        return f"a {type(module).__name__} is never called; name the modules inside"
    return ""


def _chosen(model: nn.Module, choice: Choice) -> list[tuple[str, nn.Module]]:
    if choice is None or choice is False:
        return []
    if choice is True or choice == "full":
        return _members(model)
    if isinstance(choice, str):
        raise ValueError(f'checkpoint must be "full" or a list of names, not {choice!r}')
    if isinstance(choice, type):
        return _listed(model, [choice])
    if not callable(choice):
        return _listed(model, choice)
    found = [(name, module) for name, module in model.named_modules() if choice(name, module)]
    if not found:
        raise ValueError("checkpoint chooses no module of the model")
    return found


def _members(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """The repeated parts of a model."""
    for kind in (nn.ModuleList, nn.Sequential):
        found = list(_members_of(model, kind))
        if found:
            return found
    raise ValueError(
        'checkpoint="full" looks for an nn.ModuleList or nn.Sequential, and the model has none; '
        "list the names or classes of modules instead"
    )


def _members_of(
    module: nn.Module, kind: type[nn.Module], prefix: str = "", inside: bool = False
) -> Iterator[tuple[str, nn.Module]]:
    """The modules that the outermost containers of a kind hold, nested ones opened."""
    inside = inside or isinstance(module, kind)
    for key, child in module.named_children():
        if inside and not isinstance(child, nn.ModuleList | nn.ModuleDict):
            yield f"{prefix}{key}", child
        else:
            yield from _members_of(child, kind, f"{prefix}{key}.", inside)


def _listed(
    model: nn.Module, choice: Iterable[str | type[nn.Module]]
) -> list[tuple[str, nn.Module]]:
    named = dict(model.named_modules())
    found: dict[str, nn.Module] = {}
    for item in choice:
        if isinstance(item, str):
            if item not in named:
                raise ValueError(f"checkpoint: no module {item!r}{did_you_mean(item, named)}")
            found[item] = named[item]
        elif isinstance(item, type) and issubclass(item, nn.Module):
            of_class = {name: m for name, m in named.items() if isinstance(m, item)}
            if not of_class:
                raise ValueError(f"checkpoint: the model has no module of class {item.__name__}")
            found |= of_class
        else:
            raise TypeError(f"checkpoint takes names and classes of modules, not {item!r}")
    return list(found.items())


def _new(cls: Any) -> Any:
    return cls.__new__(cls)


@functools.cache
def _checkpointed(base: type[nn.Module]) -> type[nn.Module]:
    """A subclass of `base` whose forward is checkpointed."""

    def forward(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        if not torch.is_grad_enabled():
            return base.forward(self, *args, **kwargs)
        run = functools.partial(base.forward, self)
        return checkpoint(run, *args, use_reentrant=False, **kwargs)

    def reduce(self: nn.Module, protocol: Any) -> Any:
        """A copy is of the former class: nobody would remove its checkpointing."""
        reduced: Any = base.__reduce_ex__(self, protocol)
        function, args, *rest = reduced
        # pickle insists that what __newobj__ makes is of the object's own class.
        function = _new if function is copyreg.__newobj__ else function  # type: ignore[attr-defined]
        return function, tuple(base if a is type(self) else a for a in args), *rest

    # Not by `class`, so that names and places in reports are those of the module's own class.
    names = {"__module__": base.__module__, "__qualname__": base.__qualname__}
    body = {"forward": forward, "__reduce_ex__": reduce, _MARK: True}
    return type(base.__name__, (base,), {**names, **body})
