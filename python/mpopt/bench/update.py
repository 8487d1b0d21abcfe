"""`update`: from scaled half gradients to new weights and their half copies.

Four ways to unscale, check, clip, update with AdamW and cast the weights, on the tensors of
a transformer, interleaved in one process:

- foreach, fused: torch.amp.GradScaler, clip_grad_norm_, AdamW, a loop that copies;
- compiled: the same arithmetic under torch.compile, tensor by tensor;
- mpopt: mpopt.GradScaler and mpopt.optim.AdamW.

Beside them runs a sweep in place over the same arrays, for the rate that memory gives.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ._errors import BenchError
from .rows import Row
from .step import Say, spread

LEARNING_RATE, BETA1, BETA2, EPSILON, DECAY, MAX_NORM = 1e-4, 0.9, 0.999, 1e-8, 0.01, 1.0
SCALE = 1024.0
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
FAMILY = "transformer"
_ROUNDS_CHECKED = 3


def shapes(millions: float) -> list[tuple[int, ...]]:
    """The 148 parameters of a GPT-2 of 12 layers with about that many million elements."""
    width = 768 if millions >= 100 else 512
    layer = [
        (width,),
        (width,),
        (width, 3 * width),
        (3 * width,),
        (width, width),
        (width,),
        (width,),
        (width,),
        (width, 4 * width),
        (4 * width,),
        (4 * width, width),
        (width,),
    ]
    rest = sum(torch.Size(shape).numel() for shape in 12 * layer) + 1026 * width
    words = max(1, int((millions * 1e6 - rest) // width))
    return [(words, width), (1024, width), *(12 * layer), (width,), (width,)]


@dataclass
class Way:
    """One variant with arrays of its own."""

    name: str
    half: torch.dtype
    sizes: list[tuple[int, ...]]
    params: list[Tensor] = field(default_factory=list)
    grads: list[Tensor] = field(default_factory=list)
    copies: list[Tensor] = field(default_factory=list)
    """The half copies of the weights."""

    def __post_init__(self) -> None:
        generator = torch.Generator().manual_seed(0)
        for size in self.sizes:
            values = torch.randn(size, generator=generator)
            self.params.append(torch.nn.Parameter(values * 0.02))
            self.grads.append((values.sin() * (1e-3 * SCALE)).to(self.half))

    def _empty_copies(self) -> list[Tensor]:
        return [torch.empty_like(p, dtype=copy_type(self.half)) for p in self.params]

    def prepare(self) -> None:
        """Fresh gradients, as backward leaves them. Not timed."""

    def step(self) -> None:
        """One update. Timed."""
        raise NotImplementedError


@dataclass
class Amp(Way):
    """The recipe of PyTorch's documentation for half gradients of fp32 weights."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.copies = self._empty_copies()
        self.optimizer = torch.optim.AdamW(
            self.params,
            lr=LEARNING_RATE,
            betas=(BETA1, BETA2),
            eps=EPSILON,
            weight_decay=DECAY,
            **{self.name: True},
        )
        self.scaler = torch.amp.GradScaler("cpu", init_scale=SCALE, growth_interval=10**9)
        self.scaler.scale(torch.zeros(()))  # makes the scale

    def prepare(self) -> None:
        """See `Way`."""
        for param, grad in zip(self.params, self.grads, strict=True):
            param.grad = grad.clone() if self.half is torch.float32 else None

    def step(self) -> None:
        """See `Way`."""
        if self.half is not torch.float32:
            for param in self.params:
                param.grad = torch.empty_like(param)
            torch._foreach_copy_([p.grad for p in self.params if p.grad is not None], self.grads)
        self.scaler.unscale_(self.optimizer)
        torch.nn.utils.clip_grad_norm_(self.params, MAX_NORM, foreach=True)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        torch._foreach_copy_(self.copies, [p.detach() for p in self.params])


@dataclass
class Compiled(Way):
    """The arithmetic under torch.compile; the decision to skip is read on the host."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.copies = self._empty_copies()
        self.weights = [p.detach() for p in self.params]
        self.means = [torch.zeros_like(w) for w in self.weights]
        self.squares = [torch.zeros_like(w) for w in self.weights]
        self.inverse = torch.tensor(1 / SCALE)
        self.applied = 0
        self.norm = torch.compile(_norm, dynamic=False)
        self.update = torch.compile(_update, dynamic=False)

    def step(self) -> None:
        """See `Way`."""
        total = self.norm(self.grads, self.inverse)
        if not torch.isfinite(total):
            return
        self.applied += 1
        factor = self.inverse * (MAX_NORM / (total + 1e-6)).clamp(max=1.0)
        corrections = [torch.tensor(1 - beta**self.applied) for beta in (BETA1, BETA2)]
        self.update(
            self.weights, self.grads, self.means, self.squares, self.copies, factor, *corrections
        )


def _norm(grads: list[Tensor], inverse: Tensor) -> Tensor:
    return torch.stack([(g.float() * inverse).square().sum() for g in grads]).sum().sqrt()


def _update(
    weights: list[Tensor],
    grads: list[Tensor],
    means: list[Tensor],
    squares: list[Tensor],
    copies: list[Tensor],
    factor: Tensor,
    correction1: Tensor,
    correction2: Tensor,
) -> None:
    for p, g, m, v, half in zip(weights, grads, means, squares, copies, strict=True):
        grad = g.float() * factor
        mean = m + (1 - BETA1) * (grad - m)
        square = v * BETA2 + (1 - BETA2) * grad * grad
        scale = (square / correction2).sqrt() + EPSILON
        new = p * (1 - LEARNING_RATE * DECAY) - LEARNING_RATE / correction1 * mean / scale
        p.copy_(new)
        m.copy_(mean)
        v.copy_(square)
        half.copy_(new)


@dataclass
class Ours(Way):
    """Two sweeps: one reads the gradients, one updates."""

    def __post_init__(self) -> None:
        from .. import GradScaler, optim

        super().__post_init__()
        self.optimizer = optim.AdamW(
            self.params,
            lr=LEARNING_RATE,
            betas=(BETA1, BETA2),
            eps=EPSILON,
            weight_decay=DECAY,
        )
        self.scaler = GradScaler("cpu", init_scale=SCALE, growth_interval=10**9)
        self.scaler.scale(torch.zeros(()))
        half = copy_type(self.half)
        self.copies = [self.optimizer.half_copy(p, half) for p in self.params]
        for param, grad in zip(self.params, self.grads, strict=True):
            if self.half is not torch.float32:
                param.grad_dtype = self.half
            param.grad = grad

    def step(self) -> None:
        """See `Way`."""
        self.scaler.step(self.optimizer, clip=MAX_NORM)
        self.scaler.update()


def copy_type(gradient: torch.dtype) -> torch.dtype:
    """The type of the half copies: that of the gradients, bf16 beside fp32 ones."""
    return torch.bfloat16 if gradient is torch.float32 else gradient


WAYS: dict[str, type[Way]] = {"foreach": Amp, "fused": Amp, "compiled": Compiled, "mpopt": Ours}


def floor_bytes(gradient: torch.dtype) -> int:
    """Bytes per parameter that no update with exact clipping can save: two reads of the
    gradient, read and write of weight and two moments, write of the half copy."""
    return 2 * gradient.itemsize + 6 * 4 + 2


class _Sweep:
    """In place over one weight, one mean and one square: 24 bytes per parameter."""

    def __init__(self, way: Ours) -> None:
        self.arrays: list[Tensor] = []
        for param in way.params:
            state = way.optimizer.state[param]
            self.arrays += [param.detach(), state["exp_avg"], state["exp_avg_sq"]]

    def step(self) -> None:
        torch._foreach_mul_(self.arrays, 1.0)


def measure_update(
    millions: float, dtype: str, *, rounds: int, compiled: bool, say: Say
) -> list[Row]:
    """Return milliseconds of each way, its ratio to ours, and how near we are to the floor.

    Raises:
        BenchError: the ways do not compute the same.
    """
    half, sizes = DTYPES[dtype], shapes(millions)
    ways: dict[str, Way] = {}
    for name, way in WAYS.items():
        if name != "compiled" or compiled:
            say(f"{name}: making {len(sizes)} tensors")
            ways[name] = way(name, half, sizes)
    say("checking that all compute the same")
    errors = _check(ways)
    ours = ways["mpopt"]
    assert isinstance(ours, Ours)
    bodies: dict[str, Callable[[], None]] = {name: way.step for name, way in ways.items()}
    bodies["sweep"] = _Sweep(ours).step
    times = _interleave(ways, bodies, rounds, say)
    elements = sum(p.numel() for p in ours.params)
    return [*errors, *_rows(dtype, times, elements, half)]


def _check(ways: dict[str, Way]) -> list[Row]:
    """Steps before the timing, compared with AdamW in fp64."""
    rows = []
    expected = _reference(next(iter(ways.values())))
    for name, way in ways.items():
        for _ in range(_ROUNDS_CHECKED):
            way.prepare()
            way.step()
        error = max(
            float((p.detach().double() - e).abs().max() / e.abs().max())
            for p, e in zip(way.params, expected, strict=True)
        )
        exact = all(
            torch.equal(h, p.detach().to(h.dtype))
            for h, p in zip(way.copies, way.params, strict=True)
        )
        if error > 1e-6 or not exact:
            raise BenchError(f"{name} computes something else: error {error:.2e}")
        rows.append(Row("update", FAMILY, name, "update", "weight_error", error, "ratio"))
    return rows


def _reference(way: Way) -> list[Tensor]:
    """The weights after the checked steps, in fp64."""
    grads = [g.double() / SCALE for g in way.grads]
    norm = float(torch.stack([g.square().sum() for g in grads]).sum().sqrt())
    factor = min(1.0, MAX_NORM / (norm + 1e-6))
    result = []
    for param, grad in zip(way.params, grads, strict=True):
        p, g = param.detach().double(), grad * factor
        m, v = torch.zeros_like(p), torch.zeros_like(p)
        for t in range(1, _ROUNDS_CHECKED + 1):
            m, v = BETA1 * m + (1 - BETA1) * g, BETA2 * v + (1 - BETA2) * g * g
            scale = (v / (1 - BETA2**t)).sqrt() + EPSILON
            p = p * (1 - LEARNING_RATE * DECAY) - LEARNING_RATE / (1 - BETA1**t) * m / scale
        result.append(p)
    return result


def _interleave(
    ways: dict[str, Way], bodies: dict[str, Callable[[], None]], rounds: int, say: Say
) -> dict[str, list[float]]:
    """Seconds of each body, one per round, in an order that rotates."""
    times: dict[str, list[float]] = {name: [] for name in bodies}
    names = list(bodies)
    gc.collect()
    for index in range(rounds + 1):
        say(f"round {index} of {rounds}")
        shift = index % len(names)
        for name in names[shift:] + names[:shift]:
            if name in ways:
                ways[name].prepare()
            start = time.perf_counter()
            bodies[name]()
            if index > 0:
                times[name].append(time.perf_counter() - start)
    return times


def _rows(dtype: str, times: dict[str, list[float]], elements: int, half: torch.dtype) -> list[Row]:
    def row(name: str, metric: str, value: float, unit: str, n: int = 1) -> Row:
        return Row("update", FAMILY, f"{name}-{dtype}", "update", metric, value, unit, n)

    medians = {name: spread(samples)[""] for name, samples in times.items()}
    rate = 24 * elements / medians["sweep"]
    floor = floor_bytes(half) * elements / rate
    rows: list[Row] = []
    for name, samples in times.items():
        for suffix, value in spread(samples).items():
            rows.append(row(name, f"update_ms{suffix}", value * 1e3, "ms", len(samples)))
        if name == "sweep":
            rows.append(row(name, "update_bytes_per_s", rate, "bytes/s", len(samples)))
            continue
        moved = floor_bytes(half) * elements / medians[name]
        rows.append(row(name, "update_bytes_per_s", moved, "bytes/s", len(samples)))
        rows.append(row(name, "share_of_floor", floor / medians[name], "ratio"))
        rows.append(row(name, "ratio_to_mpopt", medians[name] / medians["mpopt"], "ratio"))
    return rows
