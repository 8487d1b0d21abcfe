"""One family in one variant: build it, then run forward, backward and update."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from .families import Batch, Size, build
from .variants import Variant

_FP16_SCALE = 2.0**12  # keeps fp16 gradients of every family above underflow, below overflow


@dataclass(frozen=True)
class StepTimes:
    """Wall times of one training step in milliseconds."""

    forward: float
    backward: float
    update: float

    @property
    def step(self) -> float:
        """The whole step."""
        return self.forward + self.backward + self.update


@contextmanager
def every_variant_compiled() -> Iterator[None]:
    """Within, Dynamo compiles each variant, however many share their code, or raises.

    It counts the compilations of a function, whose backends and models may differ, and
    runs the function eagerly once there are 8: the figures would be eager's.
    """
    torch._dynamo.reset()
    with torch._dynamo.config.patch(recompile_limit=64, fail_on_recompile_limit_hit=True):
        yield


def compiled(
    model: nn.Module, variant: Variant, options: Mapping[str, Any] | None = None
) -> Callable[..., torch.Tensor]:
    """Return `model` as the variant runs it; `options` go to the mpopt backend only."""
    if variant.backend is None:
        return model
    backend: Any = variant.backend
    chosen: dict[str, Any] | None = None
    if variant.backend == "mpopt":
        # Passed as a function, so that a tree that is not installed (no entry point) works too.
        backend = importlib.import_module("mpopt").mpopt
        chosen = dict(options or {}) or None
    run: Callable[..., torch.Tensor] = torch.compile(
        model, backend=backend, dynamic=False, options=chosen
    )
    return run


def cast_batch(batch: Batch, dtype: torch.dtype) -> Batch:
    """Return the batch with its floating-point tensors in `dtype`."""
    return tuple(t.to(dtype) if t.is_floating_point() else t for t in batch)


def _update_of(
    variant: Variant, model: nn.Module, rate: float
) -> tuple[torch.optim.Optimizer, type[torch.amp.GradScaler]]:
    """AdamW and the scaler: mpopt's with mpopt, else PyTorch's fused one."""
    if variant.backend != "mpopt":
        return torch.optim.AdamW(model.parameters(), lr=rate, fused=True), torch.amp.GradScaler
    from .. import GradScaler, optim

    optimizer = optim.AdamW(model.parameters(), lr=rate)
    optimizer.half_gradients = True
    return optimizer, GradScaler


class Runner:
    """A model, its batch and its optimizer (AdamW), with fp16 loss scaling as users do it.

    Attributes:
        model: the module with parameters in the variant's dtype.
        batch: the one batch that every step uses.
        last_loss: loss of the last `step`.
    """

    def __init__(
        self,
        family: str,
        size: Size,
        variant: Variant,
        options: Mapping[str, Any] | None = None,
        seed: int = 0,
        rate: float = 1e-4,
    ) -> None:
        self.variant = variant
        self._recipe = family, size
        self._rate = rate
        model, batch = build(family, size, seed)
        self.model = model.to(variant.weights)
        self.batch = cast_batch(batch, variant.weights)
        self._run = compiled(self.model, variant, options)
        self.last_loss = float("nan")
        self._optimizer, scaler = _update_of(variant, self.model, rate)
        self._scaler = scaler(
            "cpu", init_scale=_FP16_SCALE, enabled=variant.autocast is torch.float16
        )

    def restart(self, seed: int) -> None:
        """Take the weights of another seed and a new optimizer; what is compiled stays."""
        model, batch = build(*self._recipe, seed)
        self.model.zero_grad(set_to_none=True)
        self.model.load_state_dict(model.to(self.variant.weights).state_dict())
        self.batch = cast_batch(batch, self.variant.weights)
        self._optimizer, _ = _update_of(self.variant, self.model, self._rate)

    def forward(self) -> torch.Tensor:
        """Return the scalar loss."""
        dtype = self.variant.autocast
        with torch.autocast("cpu", dtype or torch.bfloat16, enabled=dtype is not None):
            return self._run(*self.batch)

    def backward(self, loss: torch.Tensor) -> None:
        """Accumulate gradients, scaled if the variant scales its loss."""
        self._scaler.scale(loss).backward()  # type: ignore[no-untyped-call]

    def update(self) -> None:
        """Take the optimizer's step and drop the gradients."""
        self._scaler.step(self._optimizer)
        self._scaler.update()
        self._optimizer.zero_grad(set_to_none=True)

    def half_weights(self) -> list[torch.Tensor]:
        """Return the half copies of weights that the optimizer keeps."""
        copies = getattr(self._optimizer, "half_copies", None)
        return copies() if copies is not None else []

    def gradients(self) -> dict[str, torch.Tensor]:
        """Return the unscaled gradients of the last backward in fp64, by parameter name."""
        scale = self._scaler.get_scale()
        return {
            name: p.grad.double() / scale
            for name, p in self.model.named_parameters()
            if p.grad is not None
        }

    def step(self, clock: Callable[[], float] = time.perf_counter) -> StepTimes:
        """Run one training step and time its three parts."""
        start = clock()
        loss = self.forward()
        forward = clock()
        self.backward(loss)
        backward = clock()
        self.update()
        end = clock()
        self.last_loss = loss.item()
        return StepTimes(
            (forward - start) * 1e3, (backward - forward) * 1e3, (end - backward) * 1e3
        )
