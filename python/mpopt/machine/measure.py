"""Figures of this machine, in the form of a built-in cost model.

Classes, blocks and multiples are those of the built-in model; rates and times are
measured. Samples of all figures are taken in turn, round after round, so that a change of
the machine's speed meets all of them, and each figure is a median.
"""

from __future__ import annotations

import contextlib
import copy
import json
import math
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .. import native
from ..errors import MpoptError
from . import choice, probes
from .probes import Probe, Shape, Sizes

Model = dict[str, Any]
Key = tuple[str, ...]
LEAST_ROUNDS = 3
_LEAST_LAUNCH = 0.01
"""Of the time of a tiny product, that is its launch."""
_CALLS = 40
"""At least so many calls of each product must fit in the time."""
_SMALL = 64
"""A size that is not halved to save time."""
_LEAST_SHARE = 0.05
"""Of a time, that is left for the work when the launch is taken off."""


def measure(
    device: str,
    *,
    seconds: float,
    sizes: Sizes | None = None,
    say: Callable[[str, float], None] = lambda text, done: None,
) -> Model:
    """Measure for about `seconds` and return a model that loads.

    `say` gets what is measured now, and the share that is done.

    Raises:
        MpoptError: PyTorch has no such device.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise MpoptError("PyTorch sees no GPU here; measure the CPU with --device cpu")
    base = json.loads(native.load().cost_model_text(choice.auto_name(device)))
    with torch.no_grad(), _same_precision():
        run = _Run(base, device, sizes or Sizes.of(device), seconds, say)
        run.warm_up()
        run.sample()
    model = run.fit()
    native.load().CostModel.parse(json.dumps(model), model["name"])
    return model


class _Run:
    """The probes of one measurement and what became of them."""

    def __init__(
        self,
        base: Model,
        device: str,
        sizes: Sizes,
        seconds: float,
        say: Callable[[str, float], None],
    ) -> None:
        self.base, self.device, self.sizes = base, device, sizes
        self.seconds, self.say = seconds, say
        self.types = [name for name in base["types"] if name in probes.DTYPES]
        self.shapes: dict[Key, Shape] = {}
        self.probes: dict[Key, Probe] = {}

    def warm_up(self) -> None:
        """Make all probes; a product that would take too long becomes a smaller one."""
        self._add(("launch",), probes.sweep(self.device, 12 * 64))
        self._add(("bandwidth",), probes.sweep(self.device, self.sizes.sweep))
        for size in self.sizes.caches:
            self._add(("cache", str(size)), probes.read(self.device, size // 2))
        for pair in probes.CASTS:
            self._add(("cast", pair), probes.cast(self.device, pair, self.sizes.sweep))
        for name in self.types:
            self._add(("launch", name), probes.matmul(self.device, name, probes.TINY))
            self._add_products(name)

    def _add_products(self, name: str) -> None:
        rate = float("inf")
        for shape_class, shape in sorted(self._shapes(), key=lambda pair: _flops(pair[1])):
            while _flops(shape) / rate > self.seconds / _CALLS and max(shape[1:]) > _SMALL:
                shape = _half_as_large(shape)
            key = ("rate", name, shape_class["name"])
            spent = self._add(key, probes.matmul(self.device, name, shape))
            self.shapes[key] = shape
            rate = _flops(shape) / spent
        if self.base["types"][name].get("multiple", 1) > 1:
            odd = self.sizes.large - 1
            shape = (1, self.sizes.large, odd, odd)
            self._add(("misaligned", name), probes.matmul(self.device, name, shape))

    def _shapes(self) -> Iterator[tuple[Model, Shape]]:
        classes = self.base["classes"]
        for index, row in enumerate(classes):
            yield row, probes.shape_for(row, self.sizes, last=index == len(classes) - 1)

    def _tile(self, name: str) -> list[int]:
        return list(self.base["types"][name].get("tile", [1, 1, 1]))

    def _add(self, key: Key, probe: Probe) -> float:
        self.say("warming up: " + " ".join(key), 0)
        self.probes[key] = probe
        return probe.warm_up()

    def sample(self) -> None:
        """Rounds over all probes until the time is over."""
        start = time.perf_counter()
        rounds = 0
        while rounds < LEAST_ROUNDS or time.perf_counter() - start < self.seconds:
            for key, probe in self.probes.items():
                probe.sample()
                self.say(" ".join(key), (time.perf_counter() - start) / self.seconds)
            rounds += 1

    def _median(self, *key: str) -> float:
        return statistics.median(self.probes[key].samples)

    def _without(self, launch: float, *key: str) -> float:
        """Seconds of the work of a probe; a launch is never nearly all of it."""
        whole = self._median(*key)
        return max(whole - launch, _LEAST_SHARE * whole)

    def fit(self) -> Model:
        """The model whose times are the measured ones."""
        base, launch = self.base, self._median("launch")
        bandwidth = self.sizes.sweep / self._without(launch, "bandwidth")
        model: Model = {
            "schema": base["schema"],
            "name": f"{base['name']}-measured",
            "device": self.device,
            "source": self._source(),
            "bandwidth": _rounded(bandwidth),
            "launch": _rounded(launch),
        }
        if self.sizes.caches:
            model["caches"] = self._fit_caches(launch, bandwidth)
        model["casts"] = {
            pair: _rounded(self.sizes.sweep / self._without(launch, "cast", pair))
            for pair in probes.CASTS
        }
        model["classes"] = copy.deepcopy(base["classes"])
        model["types"] = {name: self._fit_type(name) for name in self.types}
        return model

    def _fit_caches(self, launch: float, slowest: float) -> list[Model]:
        """Levels that get slower, whatever noise makes of them."""
        found: list[Model] = []
        for size in reversed(self.sizes.caches):
            slowest = max(slowest, size // 2 / self._without(launch, "cache", str(size)))
            found.insert(0, {"bytes": size, "bandwidth": _rounded(slowest)})
        return found

    def _fit_launch(self, name: str) -> float:
        """Seconds of a tiny product without its work, at the rate of a large one."""
        whole = self._median("launch", name)
        work = probes.work(probes.TINY, {}, self._tile(name))
        launch = whole
        for _ in range(3):  # the rate depends on the launch, but little
            rate = self._rate(name, self.base["classes"][-1], launch)
            launch = max(whole - work / rate, _LEAST_LAUNCH * whole)
        return launch

    def _rate(self, name: str, row: Model, launch: float) -> float:
        key = ("rate", name, row["name"])
        amount = probes.work(self.shapes[key], row, self._tile(name))
        return amount / self._without(launch, *key)

    def _fit_type(self, name: str) -> Model:
        launch = self._fit_launch(name)
        classes = self.base["classes"]
        rates = {row["name"]: _rounded(self._rate(name, row, launch)) for row in classes}
        result = {"launch": _rounded(launch)}
        kept = ("multiple", "misaligned", "tile")
        result |= {key: value for key, value in self.base["types"][name].items() if key in kept}
        if ("misaligned", name) in self.probes:
            last = classes[-1]["name"]
            share = self._median("rate", name, last) / self._median("misaligned", name)
            result["misaligned"] = _rounded(min(1.0, share))
        return {**result, "rates": rates}

    def _source(self) -> dict[str, str]:
        threads = f", {torch.get_num_threads()} threads" if self.device == "cpu" else ""
        return {
            "chip": _chip(self.device),
            "figures": f"medians of eager calls, measured by mpopt calibrate with PyTorch "
            f"{torch.__version__}{threads}",
            "classes": f"limits, blocks and multiples of {self.base['name']}",
        }


def _flops(shape: Shape) -> int:
    return 2 * math.prod(shape)


def _half_as_large(shape: Shape) -> Shape:
    batch, *extents = shape
    m, n, k = (size // 2 if size > _SMALL else size for size in extents)
    return (batch, m, n, k)


@contextlib.contextmanager
def _same_precision() -> Iterator[None]:
    """Keep what the process says about f32 products."""
    before = torch.get_float32_matmul_precision()
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _chip(device: str) -> str:
    if device == "cuda":
        return torch.cuda.get_device_name()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _rounded(value: float) -> float:
    """Three digits: more would be noise."""
    return float(f"{value:.3g}")
