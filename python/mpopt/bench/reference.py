"""Loss and gradients in fp64, the yardstick of every variant's error."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from .families import Size, build
from .runner import cast_batch


class _StayDouble(TorchFunctionMode):
    """Turns every request for fp32 into one for fp64.

    Model code computes norms, rotary angles and losses in fp32 by name, which
    would leave the reference no better than fp32.
    """

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func is torch.Tensor.float:
            func = torch.Tensor.double
        swapped = tuple(torch.float64 if a is torch.float32 else a for a in args)
        named = {k: torch.float64 if v is torch.float32 else v for k, v in (kwargs or {}).items()}
        return func(*swapped, **named)


@dataclass(frozen=True)
class Reference:
    """An fp64 loss and the fp64 gradients by parameter name."""

    loss: float
    gradients: dict[str, torch.Tensor]

    def loss_error(self, loss: float) -> float:
        """Return |loss − reference| / |reference|."""
        return abs(loss - self.loss) / abs(self.loss)

    def grad_error(self, gradients: Mapping[str, torch.Tensor]) -> float:
        """Return the relative L2 norm of the difference over all parameters at once.

        Raises:
            KeyError: `gradients` misses a parameter that has one here.
        """
        square = torch.zeros((), dtype=torch.float64)
        total = torch.zeros((), dtype=torch.float64)
        for name, exact in self.gradients.items():
            square += (gradients[name].double() - exact).square().sum()
            total += exact.square().sum()
        return float((square / total).sqrt())


@functools.lru_cache(maxsize=1)
def reference(family: str, size: Size, seed: int = 0) -> Reference:
    """Run one eager forward and backward of the family in fp64 (cached for the last family)."""
    model, batch = build(family, size, seed)
    model = model.double()
    batch = cast_batch(batch, torch.float64)
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with _StayDouble():
            loss = model(*batch)
        loss.backward()
    finally:
        torch.set_default_dtype(default)
    gradients = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
    narrow = [n for n, g in gradients.items() if g.dtype is not torch.float64]
    assert loss.dtype is torch.float64, loss.dtype
    assert not narrow, narrow
    return Reference(loss.item(), gradients)
