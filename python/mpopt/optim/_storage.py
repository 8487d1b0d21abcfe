"""How an optimizer stores weights and states: its options beside those of torch.optim.

`master`: "split" keeps the lower 16 bits of an fp32 master beside each weight in bfloat16.
`rounding`: "stochastic" rounds weights in a half type, and moments in bfloat16, up or down at
random, so that the mean is the value in fp32; `seed` says how. `state_dtype`: the type of the
moments, float32 or bfloat16; None is that of the parameter, as in torch.optim, and float32
with one of the options above.

They are options of a parameter group, and are in it only where they are not the default:
groups without them are those of torch.optim.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from ..errors import OptionError
from ._arrays import HALF

DEFAULTS: dict[str, Any] = {"master": None, "rounding": "nearest", "seed": 0, "state_dtype": None}

LOW = "weight_low"
"""The state with the low half of a split master: int16, shaped like its parameter."""

_MOMENTS = (torch.float32, torch.bfloat16)


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options in `options` that are not the default."""
    return {k: options[k] for k, v in DEFAULTS.items() if k in options and options[k] != v}


def is_split(group: Mapping[str, Any]) -> bool:
    """True if the weights of a group have low halves."""
    return group.get("master") is not None


def is_stochastic(group: Mapping[str, Any]) -> bool:
    """True if a group is rounded at random."""
    rounding: str = group.get("rounding", "nearest")
    return rounding != "nearest"


def state_dtype(param: Tensor, group: Mapping[str, Any]) -> torch.dtype:
    """The type of the moments of a parameter."""
    chosen = group.get("state_dtype")
    if chosen is not None:
        return chosen  # type: ignore[no-any-return]
    is_wide = param.dtype in HALF and (is_split(group) or is_stochastic(group))
    return torch.float32 if is_wide else param.dtype


# Checks ---------------------------------------------------------------------------------


def check(group: Mapping[str, Any]) -> None:
    """Raises OptionError for an option without meaning, or for a parameter without use for it."""
    options = {**DEFAULTS, **given(group)}
    _check_values(options)
    names = group.get("param_names")
    for index, param in enumerate(group["params"]):
        reason = _why_not(param, options)
        if reason:
            name = repr(names[index]) if names else f"{index} of its group"
            shape = tuple(param.shape)
            raise OptionError(f"{reason}, not for parameter {name}: {param.dtype} of shape {shape}")


def _check_values(options: Mapping[str, Any]) -> None:
    master, rounding, seed = options["master"], options["rounding"], options["seed"]
    if master not in (None, "split"):
        raise OptionError(f'master must be None or "split", not {master!r}')
    if rounding not in ("nearest", "stochastic"):
        raise OptionError(f'rounding must be "nearest" or "stochastic", not {rounding!r}')
    if not isinstance(seed, int) or not 0 <= seed < 2**64:
        raise OptionError(f"seed must be a whole number from 0 to 2**64 - 1, not {seed!r}")
    if options["state_dtype"] not in (None, *_MOMENTS):
        raise OptionError(
            f"state_dtype must be torch.float32 or torch.bfloat16, not {options['state_dtype']}"
        )


def _why_not(param: Tensor, options: Mapping[str, Any]) -> str:
    if options["master"] and param.dtype is not torch.bfloat16:
        return 'master="split" is for parameters in bfloat16'
    if options["state_dtype"] is not None and not param.is_floating_point():
        return "state_dtype is for real parameters"
    if options["rounding"] == "stochastic":
        if options["master"]:
            return 'rounding="stochastic" is for parameters without a master'
        if param.dtype not in HALF and options["state_dtype"] is not torch.bfloat16:
            return 'rounding="stochastic" is for parameters or moments in a half type'
    return ""


# Where they come from ---------------------------------------------------------------------


def takes_options(init: Callable[..., None]) -> Callable[..., None]:
    """`init` of an optimizer, with these options as further keywords."""

    @functools.wraps(init)
    def wrapper(
        self: Any,
        *args: Any,
        master: str | None = None,
        rounding: str = "nearest",
        seed: int = 0,
        state_dtype: torch.dtype | None = None,
        **kwargs: Any,
    ) -> None:
        options = (master, rounding, seed, state_dtype)
        self.__dict__["_options"] = given(dict(zip(DEFAULTS, options, strict=True)))
        init(self, *args, **kwargs)

    further = inspect.signature(wrapper, follow_wrapped=False).parameters
    signature = inspect.signature(init)
    parameters = [*signature.parameters.values(), *(further[name] for name in DEFAULTS)]
    wrapper.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return wrapper


def restore(optimizer: torch.optim.Optimizer, saved: Mapping[str, Any]) -> None:
    """Take states from `saved` in the types that they are kept in.

    torch.optim has loaded them, and has cast them to the types of their parameters.
    """
    numbers = [number for group in saved["param_groups"] for number in group["params"]]
    params = [(param, group) for group in optimizer.param_groups for param in group["params"]]
    for number, (param, group) in zip(numbers, params, strict=True):
        for key, value in saved["state"].get(number, {}).items():
            dtype = torch.int16 if key == LOW else state_dtype(param, group)
            is_array = isinstance(value, Tensor) and key != "step"
            if is_array and optimizer.state[param][key].dtype is not dtype:
                optimizer.state[param][key] = value.to(param.device, dtype, copy=True)
