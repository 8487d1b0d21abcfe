"""What `mpopt calibrate` runs: one small piece of work for each figure."""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

DTYPES = {
    "f32": torch.float32,
    "tf32": torch.float32,
    "bf16": torch.bfloat16,
    "f16": torch.float16,
}
"""Types that are measured: fp8 products have no public operator in PyTorch."""
CASTS = ("f32-bf16", "bf16-f32", "f32-f16", "f16-f32")
TINY = (1, 32, 32, 32)
"""A product that takes no time but its launch. Below 16 x 16 x 16, PyTorch multiplies half
types by another path, whose launch is not that of other products."""
_LEAST_SAMPLE = 2e-3
_MIB = 2**20
Shape = tuple[int, int, int, int]


@dataclasses.dataclass(frozen=True)
class Sizes:
    """How large the work is."""

    side: int
    """The other two sizes of products with one small one; the near cache holds them."""
    large: int
    """Side of a large product."""
    sweep: int
    """Bytes of a sweep over memory, more than the caches hold."""
    caches: tuple[int, ...] = ()
    """Bytes that caches hold, the nearest first; none where that is not known."""

    @classmethod
    def of(cls, device: str) -> Sizes:
        """Sizes for a real measurement."""
        if device == "cuda":
            return cls(side=4096, large=8192, sweep=2048 * _MIB)
        near, last = _cache_bytes(2) * torch.get_num_threads(), _cache_bytes(3)
        sweep = min(max(2 * last, 256 * _MIB), 1024 * _MIB)
        # The last cache is shared, with other machines if this one is virtual.
        caches = (near, min(last // 2, 16 * _MIB))
        known = caches if 0 < 2 * near <= caches[1] else caches[:1] if near else ()
        return cls(side=512, large=1024, sweep=sweep, caches=known)


def _cache_bytes(level: int) -> int:
    """Size of a data cache of the first processor as Linux tells it, else 0."""
    for folder in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            at, size = (folder / "level").read_text(), (folder / "size").read_text()
        except OSError:
            continue
        found = re.fullmatch(r"(\d+)K\s*", size)
        if int(at) == level and found:
            return int(found[1]) * 1024
    return 0


class Probe:
    """One piece of work, sampled again and again."""

    def __init__(self, once: Callable[[], object], synchronize: Callable[[], object]) -> None:
        self._once, self._synchronize = once, synchronize
        self._repeats = 1
        self.samples: list[float] = []

    def warm_up(self) -> float:
        """Seconds of one call; so many calls from now on that a sample can be timed."""
        self._once()
        seconds = self._time()
        self._repeats = max(1, min(10_000, round(_LEAST_SAMPLE / max(seconds, 1e-7))))
        return seconds

    def sample(self) -> None:
        """Add the seconds of one call, warm: another probe had the caches before."""
        if self._repeats > 1:
            self._once()
        self.samples.append(self._time())

    def _time(self) -> float:
        self._synchronize()
        start = time.perf_counter()
        for _ in range(self._repeats):
            self._once()
        self._synchronize()
        return (time.perf_counter() - start) / self._repeats


def matmul(device: str, type_name: str, shape: Shape) -> Probe:
    """A product with its result in place, as compiled code calls it."""
    batch, m, n, k = shape
    lead = (batch,) if batch > 1 else ()
    dtype = DTYPES[type_name]
    # Real values: zeros would save power, and denormals take longer.
    a = torch.randn(*lead, m, k, device=device).to(dtype)
    b = torch.randn(*lead, k, n, device=device).to(dtype)
    out = torch.empty(*lead, m, n, dtype=dtype, device=device)
    product = torch.bmm if lead else torch.mm
    if device == "cpu":
        return _probe(device, lambda: product(a, b, out=out))
    precision = "high" if type_name == "tf32" else "highest"

    def once() -> None:
        torch.set_float32_matmul_precision(precision)
        product(a, b, out=out)

    return _probe(device, once)


def sweep(device: str, total: int) -> Probe:
    """Two reads and a write of f32, `total` bytes in all."""
    count = max(1, total // 12)
    a, b = torch.ones(count, device=device), torch.ones(count, device=device)
    out = torch.empty_like(a)
    return _probe(device, lambda: torch.add(a, b, out=out))


def read(device: str, total: int) -> Probe:
    """Two reads of f32, `total` bytes in all: what products do with memory."""
    a = torch.ones(max(1, total // 8), device=device)
    b, out = torch.ones_like(a), torch.empty((), device=device)
    return _probe(device, lambda: torch.dot(a, b, out=out))


def cast(device: str, pair: str, total: int) -> Probe:
    """A conversion, `total` bytes in all."""
    source, target = (DTYPES[name] for name in pair.split("-"))
    count = max(1, total // 6)
    a = torch.ones(count, dtype=source, device=device)
    out = torch.empty(count, dtype=target, device=device)
    return _probe(device, lambda: out.copy_(a))


def _probe(device: str, once: Callable[[], object]) -> Probe:
    return Probe(once, torch.cuda.synchronize if device == "cuda" else lambda: None)


def shape_for(shape_class: Mapping[str, Any], sizes: Sizes, *, last: bool) -> Shape:
    """The product at the limits of a class: the model keeps its rate within them."""
    batch = int(shape_class.get("batch", 1))
    if last:
        return (1, sizes.large, sizes.large, sizes.large)
    if "least" in shape_class:
        return (batch, int(shape_class["least"]), sizes.side, sizes.side)
    side = round((shape_class["flops"] / 2) ** (1 / 3))
    return (4 * batch if batch > 1 else 1, side, side, side)


def work(shape: Shape, shape_class: Mapping[str, Any], tile: Sequence[int]) -> float:
    """The operations that the model counts: blocks filled up, within the class's limits."""
    batch, *extents = shape
    filled = [-(-size // block) * block for size, block in zip(extents, tile, strict=True)]
    flops = 2.0 * filled[0] * filled[1] * filled[2]
    flops *= min(1.0, float(shape_class.get("least", min(filled))) / min(filled))
    limit = float(shape_class.get("flops", float("inf")))
    return batch * min(flops, limit) if "batch" in shape_class else min(batch * flops, limit)
