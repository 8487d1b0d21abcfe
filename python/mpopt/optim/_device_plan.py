"""The update of one step on a GPU: kernels one after the other, and no read by the host.

measure (a sweep over the gradients) - total - with other ranks, one reduction - decide -
factors (step counts and bias corrections, per group) - update (one sweep). The launches are on
PyTorch's current stream; a warm step allocates nothing, so that a graph can capture it.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..errors import MpoptError
from ..mirror import Mirror
from . import _storage
from ._arrays import format_of, numbers_in
from ._device import Device, is_gpu, word
from ._distributed import INF, NAN, agree_on_device
from ._plan import Entry, Measured, Part, Plan
from ._tables import TOTALS, Line, Tables, layout_of

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

    from ._fused import Fused

_DECISION = 32
"""Bytes of a CudaDecision: multiplier, isSkipped, norm, applied, skipped."""
_DECOUPLED, _MAXIMIZED, _ADAM = 1, 2, 4
"""CudaOption."""


class Ledger:
    """What an optimizer keeps on its GPU from step to step."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.decision = torch.zeros(_DECISION, dtype=torch.uint8, device=device.device)
        self.zeros = torch.zeros(TOTALS, dtype=torch.float64, device=device.device)
        self.one = torch.ones((), dtype=torch.float32, device=device.device)
        self.mirror = Mirror(self.decision)
        self.ages: dict[Tensor, Tensor] = {}
        """Updates of a buffer of SGD since it was made; 1 for those that were loaded."""
        self.new_steps: dict[Tensor, Tensor] = {}
        """Counters of parameters that have no state yet."""
        self.tables: Tables | None = None
        self.captured: list[Tables] = []
        """Tables that graphs read, for as long as the optimizer lives."""

    @property
    def zero(self) -> Tensor:
        """A flag that is not set."""
        return self.zeros.view(torch.float32)[0]

    def counts(self) -> tuple[bool, float, int]:
        """Of the newest step that the host knows: whether it was skipped, the norm of its
        scaled gradients; and all skipped ones."""
        data = self.mirror.read()
        if data is None:
            return False, 0.0, 0
        _, is_skipped, norm, _, skipped = struct.unpack("<fIdQQ", data)
        return bool(is_skipped), norm, skipped

    def tables_for(self, lines: list[Line], spreads: int) -> Tables:
        """The tables of the last step, rewritten if tensors have moved, or new ones."""
        is_capturing = self.device.is_capturing()
        known = self.tables
        if known is not None and known.fits(lines):
            if is_capturing and not known.is_frozen:
                known.is_frozen = True
                self.captured.append(known)
            return known
        if is_capturing:
            # A graph owns what it reads; the tables of steps outside stay as they are.
            made = Tables(self.device, lines, spreads)
            made.is_frozen = True
            self.captured.append(made)
            return made
        if known is not None and not known.is_frozen and known.layout == layout_of(lines):
            known.write(lines)
            return known
        self.tables = Tables(self.device, lines, spreads)
        return self.tables


class DevicePlan(Plan):
    """`Plan` for parameters on a GPU. `decide` takes the place of numbers on the host."""

    keeps_rows = False  # tables keep what stays the same

    def _bind(self) -> None:
        first = next(iter(self.optimizer._params()))
        self.device = Device.of(first.device)
        self.ledger: Ledger = ledger_of(self.optimizer, self.device)
        if self.device.is_capturing() and any(states.is_new for states in self.states):
            raise MpoptError("take one step before a graph captures the next: states are not made")
        lines = [
            self._line(number, entry, self.params[place])
            for number, part in enumerate(self.parts.values())
            for place, entry in zip(part.numbers, part.entries, strict=True)
        ]
        lines.sort(key=lambda line: line.group)  # so that clocks of a group follow each other
        self.tables = self.ledger.tables_for(lines, len(self.parts))
        self.totals = self.ledger.zeros
        """What `measure_on_device` has found."""
        self.is_measured = False

    def _put(self, part: Part, entry: Entry) -> None:
        part.entries.append(entry)

    def _line(self, spread: int, entry: Entry, param: Tensor) -> Line:
        optimizer = self.optimizer
        group = optimizer.param_groups[entry.group]
        names = ("first", "second", "largest", "copy")
        arrays = (*entry.arrays, entry.half)
        kind = [optimizer.algorithm, f"weight={format_of(entry.weight)}"]
        kind += [f"gradient={format_of(entry.grad)}"]
        kind += [f"{n}={format_of(a)}" for n, a in zip(names, arrays, strict=True) if a is not None]
        options = {
            "split": entry.low is not None,
            "nesterov": group.get("nesterov", False),
            "stochastic": _storage.is_stochastic(group),
        }
        kind += [name for name, is_on in options.items() if is_on]
        tensors = (entry.weight, entry.low, entry.grad, *arrays)
        return Line(
            kind=" ".join(kind),
            gradient=format_of(entry.grad),
            spread=spread,
            group=entry.group,
            size=numbers_in(entry.weight),
            addresses=tuple(0 if t is None else t.data_ptr() for t in tensors),
            clock=(*self._counters(entry, param), entry.stream),
        )

    def _counters(self, entry: Entry, param: Tensor) -> tuple[int, int]:
        """Addresses of what counts the updates of a parameter."""
        steps = self._steps(param)
        needs_age = self.optimizer.algorithm == "sgd" and entry.arrays[0] is not None
        if steps is not None and not needs_age:
            return steps.data_ptr(), steps.data_ptr()
        age = self.ledger.ages.get(param)
        if age is None:
            age = self.ledger.ages[param] = torch.ones((), device=self.device.device)
        if entry.is_first:
            age.zero_()
        return (age if steps is None else steps).data_ptr(), age.data_ptr()

    def _steps(self, param: Tensor) -> Tensor | None:
        """The state that counts the updates, in float32 beside the parameter; None without."""
        state = self.optimizer.state.get(param, {})
        if "step" not in state:
            if not self.optimizer._has_steps(param):
                return None
            if param not in self.ledger.new_steps:
                self.ledger.new_steps[param] = torch.zeros((), device=self.device.device)
            return self.ledger.new_steps[param]
        known = state["step"]
        is_there = isinstance(known, Tensor) and known.device == self.device.device
        if not is_there or known.dtype is not torch.float32:
            state["step"] = torch.as_tensor(known, dtype=torch.float32).to(self.device.device)
        steps: Tensor = state["step"]
        return steps

    def _finish(self) -> None:
        for param in self.params:
            if (steps := self.ledger.new_steps.pop(param, None)) is not None:
                self.optimizer.state[param]["step"] = steps
        super()._finish()

    # Launches --------------------------------------------------------------------------

    def measure_on_device(self, scale: Tensor, group: ProcessGroup | None = None) -> Tensor:
        """Read the gradients once. Returns a CudaTotals that all ranks share."""
        launch, tables = self.device.launch, self.tables
        totals = tables.totals
        bounds: dict[int, tuple[int, int]] = {}
        for chunks in tables.launches:
            addresses = (tables.rows, tables.chunks_from(chunks.first), scale.data_ptr())
            parts = tables.parts_from(chunks.first)
            if chunks.blocks:
                launch(f"measure {chunks.gradient}", [*addresses, parts], [chunks.blocks])
            first, count = bounds.get(chunks.spread, (chunks.first, 0))
            bounds[chunks.spread] = first, count + chunks.blocks
        for number in range(len(self.parts)):
            first, count = bounds.get(number, (0, 0))
            target = totals[number].data_ptr()
            launch("total", [tables.parts_from(first), target], [count])
        self.totals = agree_on_device(totals, list(self.parts), group)
        self.is_measured = True
        return self.totals

    def decide(self, scale: Tensor | None, found: Tensor | None, clip: float) -> None:
        """Multiplier and whether to skip, for `apply_on_device`."""
        scale = self.ledger.one if scale is None else self._here(scale)
        found = self.ledger.zero if found is None else self._here(found)
        if clip and not self.is_measured:
            self.measure_on_device(scale)
        tensors = (self.totals, scale, found, self.ledger.decision)
        self.device.launch("decide", [t.data_ptr() for t in tensors], [word(clip)])

    def _here(self, value: Tensor) -> Tensor:
        return value.to(self.device.device, torch.float32, non_blocking=True)

    def apply_on_device(self, zero_grad: bool) -> None:
        """The update by the decision."""
        tables = self.tables
        decision = self.ledger.decision.data_ptr()
        for number, (first, count) in tables.clocks.items():
            self._launch_factors(number, first, count, decision)
        suffix = " clear" if zero_grad else ""
        for chunks in tables.launches:
            addresses = [tables.rows, tables.factors, tables.chunks_from(chunks.first), decision]
            if chunks.blocks:
                self.device.launch(f"update {chunks.kind}{suffix}", addresses, [chunks.blocks])
        if zero_grad:
            self._clear_copies()
        if self.params:
            self._finish()
        self.ledger.mirror.issue(self.device.is_capturing())

    def _launch_factors(self, number: int, first: int, count: int, decision: int) -> None:
        group = self.optimizer.param_groups[number]
        beta1, beta2 = group.get("betas", (0.0, 0.0))
        rate = group["lr"]
        is_read = isinstance(rate, Tensor) and is_gpu(rate.device)
        names = ("eps", "weight_decay", "momentum", "dampening")
        figures = [0.0 if is_read else rate, beta1, beta2, *(group.get(n, 0.0) for n in names)]
        decoupled = group.get("decoupled_weight_decay", self.optimizer.is_decoupled)
        options = _DECOUPLED * bool(decoupled) | _MAXIMIZED * bool(group["maximize"])
        options |= _ADAM * (self.optimizer.algorithm == "adam")
        seed = group.get("seed", 0)
        numbers = [count, *(word(float(f)) for f in figures), options, _signed(seed)]
        address = rate.data_ptr() if is_read else 0
        tables = self.tables
        addresses = [tables.clocks_from(first), tables.factors, decision, address]
        self.device.launch("factors rate" if is_read else "factors", addresses, numbers)

    def _count(self) -> None:
        """The device has counted."""

    # For the host, which waits ----------------------------------------------------------

    def measure(self, inverse: float, group: ProcessGroup | None = None) -> Measured:
        """As on the CPU; waits for the device."""
        scale = torch.tensor(1.0 / inverse if inverse else math.inf, device=self.device.device)
        total, infs, nans = self.measure_on_device(scale, group).tolist()
        flags = (INF if infs else 0) | (NAN if nans else 0)
        first_bad = self._first_bad() if flags else None
        return Measured(math.sqrt(total), flags, first_bad, self.is_empty())

    def _first_bad(self) -> Tensor | None:
        for param, grad in zip(self.params, self.grads, strict=True):
            if not bool(grad.isfinite().all()):
                return param
        return None


def _signed(number: int) -> int:
    """A word of 64 bits as ctypes takes it."""
    return number - 2**64 if number >= 2**63 else number


def ledger_of(optimizer: Fused, device: Device) -> Ledger:
    """The optimizer's, made by its first step."""
    ledger: Ledger | None = optimizer.__dict__.get("_gpu_ledger")
    if ledger is None or ledger.device is not device:
        if device.is_capturing():
            raise MpoptError("take one step before a graph captures the next: tables are not made")
        ledger = optimizer.__dict__["_gpu_ledger"] = Ledger(device)
    return ledger


def step(optimizer: Fused, clip: float, zero_grad: bool) -> None:
    """One step of an optimizer whose parameters are on a GPU."""
    plan: Any = optimizer.__dict__.pop("_measured", (None, None))[0]
    totals = plan.totals if isinstance(plan, DevicePlan) and plan.is_measured else None
    if not isinstance(plan, DevicePlan) or not plan.is_current():
        plan = DevicePlan(optimizer)
        if totals is not None:  # the gradients are others now, the decision is made
            plan.totals, plan.is_measured = totals, True
    if plan.is_empty():
        return
    plan.decide(given(optimizer, "grad_scale"), given(optimizer, "found_inf"), clip)
    plan.apply_on_device(zero_grad)


def given(optimizer: Fused, name: str) -> Tensor | None:
    """What a GradScaler left for this step."""
    value = getattr(optimizer, name, None)
    if value is None or isinstance(value, Tensor):
        return value
    return torch.tensor(float(value))
