"""`casts`: what Inductor schedules for one training step, and how exact the step is."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import torch

from . import instrument
from ._errors import BenchError
from .families import Size
from .instrument import Kernel, Phase, Role
from .reference import reference
from .rows import Row
from .runner import Runner
from .variants import Variant


@dataclass(frozen=True)
class CastReport:
    """The rows of one family in one variant, and the kernels that they count."""

    rows: list[Row]
    kernels: list[Kernel]


class _SavedStorages:
    """Storages that autograd keeps between forward and backward, each counted once."""

    def __init__(self, runner: Runner) -> None:
        given = [*runner.model.parameters(), *runner.model.buffers(), *runner.batch]
        given += runner.half_weights()
        self._given = {t.untyped_storage().data_ptr() for t in given}
        self._seen: dict[int, torch.UntypedStorage] = {}  # held, so that no address is reused

    def pack(self, tensor: torch.Tensor) -> torch.Tensor:
        """Note the storage of a saved tensor."""
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in self._given:
            self._seen[storage.data_ptr()] = storage
        return tensor

    @property
    def bytes(self) -> int:
        """Total so far."""
        return sum(storage.nbytes() for storage in self._seen.values())


def saved_bytes(runner: Runner) -> int:
    """Return the bytes that one forward saves for backward, parameters and inputs left out.

    Half weights that an optimizer keeps are such inputs: they live as long as it does.

    The model must have run before, so that nothing is compiled under the hooks.
    """
    storages = _SavedStorages(runner)
    disable: Callable[..., Callable[[torch.Tensor], torch.Tensor]] = torch.compiler.disable
    pack, unpack = disable(storages.pack), disable(lambda tensor: tensor)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        loss = runner.forward()
    total = storages.bytes
    del loss
    return total


def kernel_metrics(kernels: Sequence[Kernel], phase: Phase) -> dict[str, tuple[float, str]]:
    """Return {metric: (value, unit)} of one phase's kernels."""
    mine = [k for k in kernels if k.phase == phase]
    casts = [k for k in mine if k.role is not None]
    metrics: dict[str, tuple[float, str]] = {
        "cast_only_kernels": (len(casts), "kernels"),
        "cast_only_bytes": (sum(k.bytes for k in casts), "bytes"),
    }
    for role in get_args(Role):
        part = [k for k in casts if k.role == role]
        metrics[f"cast_only_kernels.{role}"] = (len(part), "kernels")
        metrics[f"cast_only_bytes.{role}"] = (sum(k.bytes for k in part), "bytes")
    loops = [k for k in mine if not k.extern]
    metrics["pointwise_kernels"] = (len(loops), "kernels")
    metrics["pointwise_bytes"] = (sum(k.bytes for k in loops), "bytes")
    return metrics


def measure_casts(
    family: str, size: Size, variant: Variant, options: Mapping[str, Any] | None = None
) -> CastReport:
    """Compile and run one training step and report its kernels, saved bytes and errors.

    Raises:
        BenchError: a compiled variant never reached Inductor.
    """
    exact = reference(family, size)
    instrument.reset()
    runner = Runner(family, size, variant, options)
    with instrument.record_kernels() as kernels:
        loss = runner.forward()
        runner.backward(loss)
    if variant.backend is not None and not kernels:
        raise BenchError(f"{family}, {variant.name}: Inductor scheduled no kernel")

    rows: list[Row] = []

    def add(phase: str, metric: str, value: float, unit: str) -> None:
        rows.append(Row("casts", family, variant.name, phase, metric, value, unit))

    if variant.backend is not None:
        for phase in get_args(Phase):
            for metric, (value, unit) in kernel_metrics(kernels, phase).items():
                add(phase, metric, value, unit)
        add("forward", "graphs", instrument.graph_count(), "graphs")
    add("forward", "loss_error", exact.loss_error(loss.item()), "ratio")
    add("backward", "grad_error", exact.grad_error(runner.gradients()), "ratio")
    del loss
    add("forward", "saved_bytes", saved_bytes(runner), "bytes")
    halves = sum(half.untyped_storage().nbytes() for half in runner.half_weights())
    add("update", "half_weight_bytes", halves, "bytes")
    gc.collect()
    return CastReport(rows, list(kernels))
