"""The update on the device: bits beside those of the CPU, captures, waits, and its rate."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from .. import GradScaler, log, optim
from ..bench.update import shapes
from .checks import Report, WrongError
from .speed import race

SHAPES = ((7,), (33, 40), (1,), (2 * 32768 + 21,), (513, 512))
BF16, FP16, FP32 = torch.bfloat16, torch.float16, torch.float32
CASES: dict[str, tuple[Any, dict[str, Any], torch.dtype, torch.dtype]] = {
    "adamw": (optim.AdamW, {}, FP32, FP32),
    "adamw, bf16 gradients": (optim.AdamW, {"betas": (0.8, 0.95)}, FP32, BF16),
    "adam, amsgrad": (optim.Adam, {"amsgrad": True, "weight_decay": 0.2}, FP32, FP16),
    "adamw, split": (optim.AdamW, {"master": "split"}, BF16, BF16),
    "adamw, stochastic": (optim.AdamW, {"rounding": "stochastic", "seed": 5}, BF16, BF16),
    "sgd": (optim.SGD, {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}, FP32, FP32),
    "sgd, nesterov": (optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True}, FP16, FP16),
    "lion": (optim.Lion, {"weight_decay": 0.1}, FP32, BF16),
}
_SCALE = 1024.0
_STEPS = 4


def check_update(report: Report, device: str) -> None:
    """Values against the CPU's; what a GPU alone has; then times."""
    for name, case in CASES.items():
        report.run("update", name, functools.partial(_bits, case, device))
    report.run("update", "overflows", functools.partial(_overflows, device))
    report.run("update", "clip", functools.partial(_clip, device))
    report.run("update", "torch.optim", functools.partial(_beside_torch, device))
    if device == "cuda":
        report.run("update", "no wait", _no_wait)
        report.run("update", "captured graph", _captured)
    millions = 124 if device == "cuda" else 4
    for dtype in (BF16, FP16, FP32):
        name = f"{millions} M elements, {str(dtype).removeprefix('torch.')} gradients"
        report.run("update rate", name, functools.partial(_rate, millions, dtype, device))


class _Run:
    """Parameters on a device with an optimizer, gradients and a scaler; equal on all devices."""

    def __init__(self, kind: Any, options: Any, dtype: torch.dtype, device: str) -> None:
        generator = torch.Generator().manual_seed(0)
        values = [torch.randn(shape, generator=generator).to(dtype) for shape in SHAPES]
        self.params = [torch.nn.Parameter(value.to(device)) for value in values]
        self.optimizer = kind(self.params, **options)
        self.scaler = GradScaler(device, init_scale=_SCALE, growth_interval=2)
        self.scaler.scale(torch.ones((), device=device))
        self.device = device

    def give(self, seed: int, dtype: torch.dtype, bad: float = 0.0) -> None:
        """Gradients of a step, in place once they are there."""
        generator = torch.Generator().manual_seed(seed)
        for number, param in enumerate(self.params):
            grad = torch.randn(param.shape, generator=generator) * 64
            if bad and number == 1:
                grad.view(-1)[9] = bad
            grad = grad.to(self.device, dtype)
            if param.grad is None:
                param.grad_dtype = dtype
                param.grad = grad
            else:
                param.grad.copy_(grad)

    def step(self, **kwargs: Any) -> None:
        """One step with the scaler."""
        self.scaler.step(self.optimizer, **kwargs)
        self.scaler.update()

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """All that an update writes, on the host."""
        for number, param in enumerate(self.params):
            yield f"parameter {number}", param.detach().cpu()
            for key, value in self.optimizer.state[param].items():
                yield f"{key} of parameter {number}", value.cpu()


def _same(ours: _Run, theirs: _Run) -> None:
    for (name, mine), (_, other) in zip(ours.tensors(), theirs.tensors(), strict=True):
        if not torch.equal(mine, other):
            wrong = int((mine != other).sum())
            raise WrongError(f"{wrong} of {mine.numel()} numbers of {name} have other bits")


@contextlib.contextmanager
def _no_fallback() -> Iterator[None]:
    before = log.counters["fallbacks.update"]
    yield
    if log.counters["fallbacks.update"] != before:
        raise WrongError("PyTorch's update ran instead of ours")


def _bits(case: Any, device: str) -> dict[str, Any]:
    kind, options, dtype, grad_dtype = case
    runs = [_Run(kind, options, dtype, where) for where in (device, "cpu")]
    with _no_fallback():
        for run in runs:
            for step in range(_STEPS):
                run.give(step, grad_dtype)
                run.step()
    _same(*runs)
    return {"steps": _STEPS}


def _overflows(device: str) -> dict[str, Any]:
    runs = [_Run(optim.AdamW, {}, FP32, where) for where in (device, "cpu")]
    scales: list[list[float]] = []
    for run in runs:
        seen = []
        for step, bad in enumerate((math.inf, 0.0, 0.0, math.nan, 0.0, 0.0, 0.0)):
            run.give(step, FP16, bad)
            run.step()
            seen.append(run.scaler.get_scale())
        run.optimizer.settle()
        scales.append(seen)
    _same(*runs)
    skipped = [run.optimizer.skipped_steps for run in runs]
    if scales[0] != scales[1] or skipped != [2, 2]:
        raise WrongError(f"scales {scales[0]} where {scales[1]} is right; skipped {skipped}")
    return {"scales": scales[0]}


def _clip(device: str) -> dict[str, Any]:
    runs = [_Run(optim.SGD, {"lr": 1.0}, FP32, where) for where in (device, "cpu")]
    for run in runs:
        run.give(0, FP32)
        run.step(clip=0.01)
    worst = _farthest(runs[0].params, runs[1].params)
    if not worst <= 1e-6:
        raise WrongError(f"clipped weights differ by {worst} of their size")
    return {"relative_difference": worst}


def _farthest(mine: Sequence[Tensor], theirs: Sequence[Tensor]) -> float:
    pairs = [
        (a.detach().cpu().double(), b.detach().cpu().double())
        for a, b in zip(mine, theirs, strict=True)
    ]
    return max(float(((a - b).norm() / b.norm()).nan_to_num(math.inf)) for a, b in pairs)


def _beside_torch(device: str) -> dict[str, Any]:
    ours = _Run(optim.AdamW, {}, FP32, device)
    stock = _Run(torch.optim.AdamW, {"fused": True}, FP32, device)
    for run in (ours, stock):
        for step in range(_STEPS):
            run.give(step, FP32)
            run.step()
    worst = _farthest(ours.params, stock.params)
    if not worst <= 1e-6:
        raise WrongError(f"weights differ from those of torch.optim by {worst} of their size")
    return {"relative_difference": worst}


def _no_wait() -> dict[str, Any]:
    run = _Run(optim.AdamW, {}, FP32, "cuda")
    for step in range(2):
        run.give(step, FP32)
        run.step(clip=1.0)
    torch.cuda.synchronize()
    allocated = torch.cuda.memory_stats()["allocation.all.allocated"]
    torch.cuda.set_sync_debug_mode("error")
    try:
        run.step(clip=1.0)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    made = torch.cuda.memory_stats()["allocation.all.allocated"] - allocated
    if made:
        raise WrongError(f"a warm step made {made} tensors")
    return {}


def _captured() -> dict[str, Any]:
    runs = [_Run(optim.AdamW, {}, FP32, "cuda") for _ in range(2)]
    for run in runs:
        run.give(0, FP32)
        run.step(clip=1.0)
        run.give(1, FP32)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        runs[0].step(clip=1.0)
    for _ in range(3):
        graph.replay()
        runs[1].step(clip=1.0)
    torch.cuda.synchronize()
    _same(*runs)
    if runs[0].scaler.get_scale() != runs[1].scaler.get_scale():
        raise WrongError("the scale of the captured steps is another")
    return {"replays": 3}


# Times ------------------------------------------------------------------------------------


def _rate(millions: float, dtype: torch.dtype, device: str) -> dict[str, Any]:
    """Scaled gradients to new weights and half copies, beside torch.optim with fused=True; and
    the share of the rate that a sweep in place over as many bytes reaches."""
    sizes = shapes(millions)
    elements = sum(math.prod(size) for size in sizes)
    ours, stock = _ours(sizes, dtype, device), _stock(sizes, dtype, device)
    bytes_moved = elements * (26 + 2 * dtype.itemsize)
    sweep = torch.ones(bytes_moved // 8, device=device)
    with _no_fallback():
        figures = race({"ours": ours, "torch": stock, "sweep": lambda: sweep.mul_(1.0)}, device)
    figures["ours_gb_per_s"] = bytes_moved / figures["ours_ms"] / 1e6
    figures["sweep_gb_per_s"] = bytes_moved / figures["sweep_ms"] / 1e6
    figures["share_of_sweep"] = figures["sweep_ms"] / figures["ours_ms"]
    return figures


def _make(sizes: Any, dtype: torch.dtype, device: str) -> tuple[list[Tensor], list[Tensor]]:
    params = [torch.nn.Parameter(torch.full(size, 0.02, device=device)) for size in sizes]
    return [*params], [
        torch.full(size, 1e-3 * _SCALE, dtype=dtype, device=device) for size in sizes
    ]


def _ours(sizes: Any, dtype: torch.dtype, device: str) -> Callable[[], Any]:
    params, grads = _make(sizes, dtype, device)
    optimizer = optim.AdamW(params, lr=1e-5)
    scaler = GradScaler(device, init_scale=_SCALE, growth_interval=10**9)
    scaler.scale(torch.ones((), device=device))
    half = BF16 if dtype is FP32 else dtype
    for param, grad in zip(params, grads, strict=True):
        optimizer.half_copy(param, half)
        param.grad_dtype = dtype
        param.grad = grad

    def step() -> None:
        scaler.step(optimizer, clip=1.0)
        scaler.update()

    return step


def _stock(sizes: Any, dtype: torch.dtype, device: str) -> Callable[[], Any]:
    """The recipe of PyTorch's documentation."""
    params, grads = _make(sizes, dtype, device)
    copies = [torch.empty_like(p, dtype=BF16 if dtype is FP32 else dtype) for p in params]
    optimizer = torch.optim.AdamW(params, lr=1e-5, fused=True)
    scaler = torch.amp.GradScaler(device, init_scale=_SCALE, growth_interval=10**9)
    scaler.scale(torch.ones((), device=device))

    for param in params:
        param.grad = torch.empty_like(param)

    def step() -> None:
        torch._foreach_copy_([p.grad for p in params if p.grad is not None], grads)
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(params, 1.0, foreach=True)
        scaler.step(optimizer)
        scaler.update()
        torch._foreach_copy_(copies, [p.detach() for p in params])

    return step
