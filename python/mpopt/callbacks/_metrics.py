"""What callbacks are told. A figure is computed, and read on the host, when it is asked for."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import torch
from torch import Tensor

if TYPE_CHECKING:
    from ._histogram import Histogram

FIGURES = (
    "step",
    "loss",
    "loss_scale",
    "skipped",
    "lr",
    "grad_norm",
    "throughput",
    "seconds",
    "memory",
    "half_share",
)
"""The figures of every step, in the order in which writers write them."""


@dataclass(frozen=True)
class BadOp:
    """The first operator that made an inf or NaN out of finite numbers."""

    op: str
    """As "aten.mm.default"; "parameter" or "batch" if it was there before any operator."""
    module: str
    """Qualified name of the innermost module around it, or of the parameter."""
    phase: Literal["forward", "backward"]
    kind: Literal["inf", "nan"]
    line: str
    """The line of the forward pass, as "model.py:12 in forward"; "" if there is none."""


@dataclass(frozen=True)
class NonFinite:
    """A gradient that is not finite."""

    step: int
    """Counted from 1."""
    parameter: str
    """Qualified name of the first such parameter of the optimizer."""
    kind: Literal["inf", "nan"]
    """ "nan" if that gradient holds a NaN, which no loss scale mends."""
    skipped: bool
    """The step changes no weight. Without a scaler and clipping it is applied all the same."""
    bad_op: BadOp | None = None
    """Under `TrainStep(find_bad_op=True)`, where it came from; None if it was not found."""


@dataclass(frozen=True)
class Memory:
    """Memory of this process on the CPU, or of PyTorch's allocator on the device; in bytes."""

    resident: int | None
    """Now in use; None where the system does not say."""
    peak: int | None
    """The most since the start of the process, or the last reset of the allocator's peak."""
    fragmentation: float | None = None
    """1 - allocated / reserved of the device's allocator; None on the CPU, which has none."""


class Gradients(Protocol):
    """The gradients of the step that is under way."""

    def unscaled(self) -> Iterator[tuple[str, Tensor]]:
        """Names of parameters, and gradients in fp32 (or fp64) without the loss scale.

        Only in `on_gradients`; the tensors are copies. Raises MpoptError afterwards.
        """

    def norm(self) -> float:
        """Norm of all gradients without the loss scale, before clipping. Raises MpoptError
        once the gradients are gone."""


@dataclass(eq=False)
class StepMetrics:
    """The figures of one step. Each costs nothing before it is read.

    `grad_norm` and `gradients` are there during the callbacks only.
    """

    step: int
    """Calls of the TrainStep so far, this one and skipped ones included."""
    loss_tensor: Tensor
    """Mean loss over the micro-batches, unscaled, on its device."""
    scale_tensor: Tensor | None
    """The loss scale of this step; None without a scaler."""
    optimizer: torch.optim.Optimizer
    gradients: Gradients
    count: Callable[[], int] = field(repr=False)
    """Counts what `throughput` is about."""
    share: Callable[[], float | None] = field(repr=False)
    known_scale: float | None = None
    """On a GPU the newest scale that the host has heard of, so that nobody waits for it."""
    skipped: bool = False
    """The gradients were not finite and nothing was changed. Without a callback for
    `on_nonfinite`, on a GPU the host may hear of that a step or two later."""
    seconds: float = 0.0
    """Wall time of the step without its callbacks. A device may have work left to do."""
    gradient_histogram: Histogram | None = None
    """Of a `GradientHistogram` among the callbacks, in the steps that it looks at."""

    @functools.cached_property
    def loss(self) -> float:
        """Mean loss over the micro-batches."""
        return float(self.loss_tensor)

    @functools.cached_property
    def loss_scale(self) -> float:
        """What the loss was multiplied with; 1 without a scaler. On a GPU `known_scale`."""
        if self.known_scale is not None:
            return self.known_scale
        return 1.0 if self.scale_tensor is None else float(self.scale_tensor)

    @functools.cached_property
    def lr(self) -> float:
        """Learning rate of the first parameter group."""
        return float(self.optimizer.param_groups[0]["lr"])

    @functools.cached_property
    def grad_norm(self) -> float:
        """Norm of all gradients without the loss scale, before clipping."""
        return self.gradients.norm()

    @functools.cached_property
    def samples(self) -> int:
        """Samples of the step, or what `TrainStep(count=...)` counts."""
        return self.count()

    @property
    def throughput(self) -> float:
        """`samples` per second of `seconds`."""
        return self.samples / self.seconds if self.seconds else 0.0

    @functools.cached_property
    def memory(self) -> Memory:
        """Memory at the first look."""
        return memory_of(self.loss_tensor.device)

    @functools.cached_property
    def half_share(self) -> float | None:
        """Of the operators in the forward graphs as captured that compute floating-point
        numbers, the share that computes fp16 or bf16; None if nothing was compiled. Views and
        conversions do not count."""
        return self.share()

    def as_dict(self) -> dict[str, Any]:
        """All figures, read now; `memory` and `gradient_histogram` as they are."""
        found = {name: getattr(self, name) for name in FIGURES}
        if self.gradient_histogram is not None:
            found["gradient_histogram"] = self.gradient_histogram
        return found


def memory_of(device: torch.device) -> Memory:
    """Memory of the process, or of PyTorch's allocator where `device` is a CUDA one."""
    if device.type == "cuda":
        allocated = torch.cuda.memory_allocated(device)
        reserved = torch.cuda.memory_reserved(device)
        fragmentation = 1.0 - allocated / reserved if reserved else 0.0
        return Memory(allocated, torch.cuda.max_memory_allocated(device), fragmentation)
    resident, peak = _resident(), _peak()
    # The kernel counts pages in batches: the two may come out in the wrong order.
    return Memory(resident, max(peak, resident) if peak and resident else peak)


def _resident() -> int | None:
    try:
        import resource

        pages = Path("/proc/self/statm").read_text().split()[1]
    except (ImportError, OSError):
        return None
    return int(pages) * resource.getpagesize()


def _peak() -> int | None:
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
