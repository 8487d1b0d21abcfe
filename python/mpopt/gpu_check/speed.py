"""Times on the device: kernels against PyTorch's libraries, and a step against stock."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn import functional as F

from ..bench.families import build
from .checks import Report, WrongError, call, compare
from .texts import Matmul, Rows

Function = Callable[[], Any]
PRODUCTS = (
    (4096, 4096, 4096),
    (8192, 8192, 8192),
    (8192, 3072, 768),
    (8192, 768, 3072),
    (4096, 14336, 4096),
    (1024, 1024, 1024),
    (64, 4096, 4096),
)
ROWS = ((8192, 4096), (8192, 1024), (2048, 50257))
_ROUNDS = 15


def check_speed(report: Report, device: str) -> None:
    """Products and row kernels against cuBLASLt and Inductor."""
    scale = 1 if device == "cuda" else 32
    for m, n, k in PRODUCTS:
        for epilogue in ("cast", "bias_gelu"):
            kernel = Matmul(m // scale, n // scale, k // scale, epilogue=epilogue)
            run = functools.partial(_product, kernel, device)
            report.run("gemm", kernel.name, run)
    for rows, columns in ROWS:
        for kind in ("rms_norm", "softmax"):
            rows_kernel = Rows(kind, rows // scale, columns)
            report.run("rows", rows_kernel.name, functools.partial(_rows, rows_kernel, device))


def _product(kernel: Matmul, device: str) -> dict[str, Any]:
    sample = kernel.sample(device)
    lhs, rhs, *extra = sample.inputs
    figures = compare(sample, call(sample))
    bias = extra[0].to(lhs.dtype) if extra else None

    def theirs() -> Any:
        value = F.linear(lhs, rhs, bias)
        return F.gelu(value) if extra else value

    stock = torch.compile(theirs, dynamic=False) if extra else theirs
    figures |= race({"ours": lambda: call(sample), "torch": stock}, device)
    operations = 2 * kernel.m * kernel.n * kernel.k
    for name in ("ours", "torch"):
        figures[f"{name}_tflops"] = operations / figures[f"{name}_ms"] / 1e9
    return figures


def _rows(kernel: Rows, device: str) -> dict[str, Any]:
    sample = kernel.sample(device)
    x, w = sample.inputs
    figures = compare(sample, call(sample))

    def theirs() -> Any:
        if kernel.kind == "softmax":
            return (x.float().softmax(-1) * w).to(x.dtype)
        rate = (x.float().square().mean(-1, keepdim=True) + 1e-5).rsqrt()
        return (x.float() * rate * w).to(x.dtype)

    stock = torch.compile(theirs, dynamic=False)
    figures |= race({"ours": lambda: call(sample), "torch": stock}, device)
    for name in ("ours", "torch"):
        figures[f"{name}_gb_per_s"] = 2 * x.numel() * x.element_size() / figures[f"{name}_ms"] / 1e6
    return figures


def race(functions: dict[str, Function], device: str) -> dict[str, Any]:
    """Milliseconds of each, and how many times as fast as PyTorch's ours is.

    They take turns; the ratio is the median over rounds.
    """
    for function in functions.values():
        for _ in range(3):
            function()
    times: dict[str, list[float]] = {name: [] for name in functions}
    for number in range(_ROUNDS):
        names = list(functions)[:: 1 if number % 2 else -1]
        for name in names:
            times[name].append(_milliseconds(functions[name], device))
    ratios = [b / a for a, b in zip(times["ours"], times["torch"], strict=True)]
    result: dict[str, Any] = {f"{n}_ms": statistics.median(t) for n, t in times.items()}
    return {**result, "ratio": statistics.median(ratios)}


def _milliseconds(function: Function, device: str, calls: int = 5) -> float:
    if device != "cuda":
        start = time.perf_counter()
        for _ in range(calls):
            function()
        return (time.perf_counter() - start) / calls * 1e3
    event: Any = torch.cuda.Event
    before, after = event(enable_timing=True), event(enable_timing=True)
    before.record()
    for _ in range(calls):
        function()
    after.record()
    after.synchronize()
    return float(before.elapsed_time(after)) / calls


def check_training(report: Report, device: str) -> None:
    """Steps of models against stock autocast and Inductor with fused AdamW."""
    size = "full" if device == "cuda" else "tiny"
    for family in ("gpt2", "llama"):
        report.run("training", family, functools.partial(_train, family, size, device))


def _train(family: str, size: Any, device: str) -> dict[str, Any]:
    import mpopt

    from .. import log

    stock = _Step(family, size, device, "inductor", None)
    before = log.counters["regions"]
    ours = _Step(family, size, device, mpopt.mpopt, {"regions": "auto"})
    losses = [[step() for _ in range(5)] for step in (stock, ours)]
    figures: dict[str, Any] = {"regions": log.counters["regions"] - before}
    figures |= {"losses_torch": losses[0], "losses_ours": losses[1]}
    for theirs, own in zip(*losses, strict=True):
        if not abs(own - theirs) <= 0.02 * abs(theirs):
            raise WrongError(f"the losses part: {losses[1]} where stock has {losses[0]}")
    return figures | race({"ours": ours, "torch": stock}, device)


class _Step:
    """A training step, compiled."""

    def __init__(self, family: str, size: Any, device: str, backend: Any, options: Any) -> None:
        model, batch = build(family, size, 0)
        self.device = device
        self.model = model.to(device)
        self.batch = [tensor.to(device) for tensor in batch]
        self.run = torch.compile(self.model, backend=backend, options=options, dynamic=False)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)

    def __call__(self) -> float:
        self.optimizer.zero_grad()
        with torch.autocast(self.device, torch.bfloat16):
            loss = self.run(*self.batch)
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())


def geometric_means(report: Report) -> Iterator[tuple[str, float]]:
    """Of the ratios of each section that has some."""
    for section in ("gemm", "rows", "training", "update rate"):
        ratios = [r["ratio"] for r in report.results if r["section"] == section and "ratio" in r]
        if ratios:
            yield section, statistics.geometric_mean(ratios)
