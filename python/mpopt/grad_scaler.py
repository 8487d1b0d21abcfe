"""`mpopt.GradScaler`: torch.amp.GradScaler for any device, with the rules of other systems.

The scale is updated by the runtime's state machine, which counts inf and NaN apart: on the CPU,
and as a kernel on a GPU that ours run on, without a host read. On other devices the rule `torch`
runs as PyTorch's own operator.
"""

from __future__ import annotations

import math
from collections import defaultdict
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.amp.grad_scaler import OptState, _refresh_per_optimizer_state

from . import log, native
from .device_scaler import DeviceScaler
from .errors import MpoptError, did_you_mean
from .optim import _device, _distributed
from .optim._distributed import INF
from .optim._fused import Fused

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup


_LEAST_SCALE = 2.0**-126
"""Below it, 1 / scale overflows float32 sooner or later, and finite gradients become inf."""


class LossScaleError(MpoptError, FloatingPointError):
    """The scale is at its least and gradients are still not finite."""


class GradScaler(torch.amp.GradScaler):
    """Drop-in for torch.amp.GradScaler: the same methods, errors and state dictionary.

    `device` defaults to cuda where there is one, else to cpu. Figures that are left out are
    those of `rule`, a name in `GradScaler.rules()`; "torch" is PyTorch's.

    With an optimizer of `mpopt.optim`, `step` reads the gradients once, without writing
    them, and the optimizer unscales as it updates. Gradients in fp16 and bf16 are taken.

    Ranks that hold pieces of parameters (DTensor, as of FSDP2) skip together and keep the same
    scale. Under DistributedDataParallel gradients are equal on all ranks, and nothing is
    exchanged; where some are not (ignored parameters, `no_sync`), give `process_group`: what
    one of its ranks finds, all know before they decide. The norm for clipping stays that of
    this rank's parameters and, with pieces, of the ranks that hold the others. All ranks call
    `step` and `unscale_` together. A pickled scaler has no process group.

    On a GPU the state stays there. Counts, `status` and errors are of the newest state that the
    host has heard of, which may be a step or two behind; `get_scale` and `state_dict` wait.

    Raises:
        ValueError: unknown rule, or a figure out of range, here and in the setters.
        LossScaleError: from `update`, under `at_floor="fail"`, when the scale would fall
            below `min_scale`; under any rule when it falls below 2^-126.
    """

    def __init__(
        self,
        device: str | None = None,
        init_scale: float | None = None,
        growth_factor: float | None = None,
        backoff_factor: float | None = None,
        growth_interval: int | None = None,
        enabled: bool = True,
        *,
        rule: str = "torch",
        min_scale: float | None = None,
        max_scale: float | None = None,
        hysteresis: int | None = None,
        at_floor: str | None = None,
        floor_tolerance: int | None = None,
        process_group: ProcessGroup | None = None,
    ) -> None:
        if rule not in self.rules():
            raise ValueError(f"unknown rule {rule!r}{did_you_mean(rule, self.rules())}")
        given = {
            "init_scale": init_scale,
            "growth_factor": growth_factor,
            "backoff_factor": backoff_factor,
            "growth_interval": growth_interval,
            "min_scale": min_scale,
            "max_scale": max_scale,
            "hysteresis": hysteresis,
            "at_floor": at_floor,
            "floor_tolerance": floor_tolerance,
        }
        self.rule = rule
        self.process_group = process_group
        self.status = ""
        """Of the last `update`: "applied", "skipped" (at least one optimizer's gradients
        were not finite) or "no_grads" (there were none; scale and growth tracker are as they
        were)."""
        self._on_gpu: DeviceScaler | None = None
        given = {name: value for name, value in given.items() if value is not None}
        self._machine = native.load().LossScaler(rule, **given)
        figures = self._machine.figures()
        super().__init__(
            device or ("cuda" if torch.cuda.is_available() else "cpu"),
            init_scale=figures["init_scale"],
            growth_factor=figures["growth_factor"],
            backoff_factor=figures["backoff_factor"],
            growth_interval=figures["growth_interval"],
            enabled=enabled,
        )
        self._init_growth_tracker = self._machine.growth_tracker

    @staticmethod
    def rules() -> list[str]:
        """Names of the known rules."""
        return list(native.load().scaler_rules())

    # Figures ----------------------------------------------------------------------

    def set_growth_factor(self, new_factor: float) -> None:
        """Raises ValueError unless it is above 1."""
        self._machine.set(growth_factor=new_factor)
        super().set_growth_factor(new_factor)

    def set_backoff_factor(self, new_factor: float) -> None:
        """Raises ValueError unless it is between 0 and 1."""
        self._machine.set(backoff_factor=new_factor)
        super().set_backoff_factor(new_factor)

    def set_growth_interval(self, new_interval: int) -> None:
        """Raises ValueError unless it is at least 1."""
        self._machine.set(growth_interval=new_interval)
        super().set_growth_interval(new_interval)

    # The step -----------------------------------------------------------------------

    def _lazy_init_scale_growth_tracker(self, dev: torch.device) -> None:
        if not _device.is_gpu(dev):
            super()._lazy_init_scale_growth_tracker(dev)
            return
        device = _device.Device.of(dev)
        if device.why_not:
            log.counters["fallbacks.scaler"] += 1
            super()._lazy_init_scale_growth_tracker(dev)
            return
        left = self._machine.hysteresis_left
        block = DeviceScaler(device, self._init_scale, self._init_growth_tracker, left)
        self._on_gpu = block
        self._scale, self._growth_tracker = block.scale, block.growth_tracker

    def step(self, optimizer: torch.optim.Optimizer, *args: Any, **kwargs: Any) -> float | None:
        """As PyTorch's."""
        state = self._per_optimizer_states[id(optimizer)] if self._enabled else {}
        is_plain = state.get("stage") is OptState.READY and "closure" not in kwargs
        if not is_plain or not self._is_on_gpu_of(optimizer) or hasattr(optimizer, "grad_scale"):
            return super().step(optimizer, *args, **kwargs)
        scaled: Any = optimizer
        (found,) = self._check_inf_per_device(optimizer).values()
        scaled.grad_scale, scaled.found_inf = self._scale, found
        try:
            result: float | None = optimizer.step(*args, **kwargs)
        finally:
            del scaled.grad_scale, scaled.found_inf
        state["stage"] = OptState.STEPPED
        return result

    def _is_on_gpu_of(self, optimizer: torch.optim.Optimizer) -> bool:
        """True if scale and parameters are on the same GPU, and ours updates both."""
        if self._on_gpu is None or not isinstance(optimizer, Fused):
            return False
        return optimizer.gpu == self._on_gpu.device.device and not optimizer._why_unsupported()

    def _check_inf_per_device(self, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
        """Read the gradients once; ours are left as they are, scaled."""
        self._hold(optimizer)
        if not isinstance(optimizer, Fused) or optimizer._why_unsupported():
            return super()._check_inf_per_device(optimizer)
        scale, _ = self._check_scale_growth_tracker("_check_inf_per_device")
        state = self._per_optimizer_states[id(optimizer)]
        if optimizer.gpu is not None:
            if not self._is_on_gpu_of(optimizer):
                return super()._check_inf_per_device(optimizer)
            plan = optimizer.measure_on_device(scale, self.process_group)
            state["found_inf_per_device"] = {scale.device: plan.ledger.zero}
            state["totals"] = plan.totals
            state["no_grads"] = plan.is_empty() and self.process_group is None
            return found_of(state)
        measured = optimizer.measure_for_step(float(scale), self.process_group)
        found = torch.tensor(float(measured.flags != 0), device=scale.device)
        state["found_inf_per_device"] = {scale.device: found}
        state["flags"] = measured.flags
        state["no_grads"] = measured.is_empty and self.process_group is None
        return found_of(state)

    def _unscale_grads_(
        self,
        optimizer: torch.optim.Optimizer,
        inv_scale: Tensor,
        found_inf: Tensor,
        allow_fp16: bool,
    ) -> dict[torch.device, Tensor]:
        """PyTorch's, on the pieces of this rank; then what one rank found holds for all."""
        self._hold(optimizer)
        params = [param for group in optimizer.param_groups for param in group["params"]]
        read: Any = optimizer
        if not allow_fp16 and isinstance(optimizer, Fused):
            _refuse_fp16(params)
        if any(map(_distributed.needs_stand_in, params)):
            read = SimpleNamespace(param_groups=[{"params": _distributed.stand_ins(params)}])
        found = super()._unscale_grads_(read, inv_scale, found_inf, allow_fp16)
        spreads = _distributed.spreads_of(params)
        if self.process_group is None and all(spread.mesh is None for spread in spreads):
            return found
        flags = [flag.to(found_inf.device) for flag in found.values()]
        here = torch.stack(flags).amax(0) if flags else torch.zeros_like(found_inf)
        return {here.device: _distributed.agree_on_found(here, spreads, self.process_group)}

    def _hold(self, optimizer: torch.optim.Optimizer) -> None:
        """Until `update`: states go by the id of an optimizer, which a later one could have."""
        self._per_optimizer_states[id(optimizer)]["optimizer"] = optimizer

    # The scale ----------------------------------------------------------------------

    def update(self, new_scale: float | Tensor | None = None) -> None:
        """As PyTorch's. Raises LossScaleError; the state then is that after the update."""
        if self._enabled and new_scale is not None:
            _check_scale(new_scale)
        is_ours = self._on_gpu is not None or self._runs_machine()
        if not self._enabled or new_scale is not None or not is_ours:
            super().update(new_scale)
            return
        scale, growth_tracker = self._check_scale_growth_tracker("update")
        states = [s for s in self._per_optimizer_states.values() if found_of(s)]
        if not states:
            raise AssertionError("No inf checks were recorded prior to update.")
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)
        if all(state.get("no_grads") for state in states):
            self.status = "no_grads"
            return
        if self._on_gpu is not None:
            self._update_on_gpu(self._on_gpu, states)
            return
        flags = 0
        for state in states:
            flags |= _flags_of(state)
        self._update_machine(scale, growth_tracker, flags)
        self.status = "skipped" if flags else "applied"
        _report(self._machine)

    def _update_on_gpu(self, block: DeviceScaler, states: list[dict[str, Any]]) -> None:
        for state in states:
            if "totals" in state and state["stage"] is not OptState.UNSCALED:
                block.note(state["totals"], None)
                continue
            for found in found_of(state).values():
                block.note(None, found)
        block.advance(self.rule, self._machine.figures())
        seen = block.seen()
        if seen is not None and seen.applied + seen.skipped:
            self.status = "skipped" if seen.flags else "applied"
            _report(seen)

    def _runs_machine(self) -> bool:
        """Where the scale is on the host; elsewhere only what PyTorch's operator cannot do."""
        figures = self._machine.figures()
        plain = self.rule == "torch" and not figures["min_scale"] and not figures["max_scale"]
        return self._device == "cpu" or not plain

    def _update_machine(self, scale: Tensor, growth_tracker: Tensor, flags: int) -> None:
        machine = self._machine
        machine.scale = float(scale)
        machine.growth_tracker = int(growth_tracker)
        machine.update(flags)
        scale.fill_(machine.scale)
        growth_tracker.fill_(machine.growth_tracker)
        if scale.device.type != "cpu":
            log.counters["scaler_host_reads"] += 1

    # What it has seen -----------------------------------------------------------------

    @property
    def _seen(self) -> Any:
        """The state as far as the host knows it."""
        return (self._on_gpu and self._on_gpu.seen()) or self._machine

    @property
    def known_scale(self) -> float:
        """The newest scale that the host knows; without waiting, unlike `get_scale`."""
        if self._on_gpu is None:
            return self.get_scale()
        seen = self._on_gpu.seen()
        return self._init_scale if seen is None else seen.scale

    @property
    def applied_steps(self) -> int:
        """Clean steps so far."""
        return int(self._seen.applied)

    @property
    def skipped_steps(self) -> int:
        """Steps with gradients that were not finite."""
        return int(self._seen.skipped)

    @property
    def inf_steps(self) -> int:
        """Skipped steps that saw an inf."""
        return int(self._seen.inf_steps)

    @property
    def nan_steps(self) -> int:
        """Skipped steps that saw a NaN, which no loss scale mends; with optimizers of ours."""
        return int(self._seen.nan_steps)

    # Persistence ----------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """PyTorch's keys; with another rule also what is left of its hysteresis."""
        state = super().state_dict()
        if state and self.rule != "torch":
            state["_hysteresis_left"] = self._hysteresis_left()
        return state

    def _hysteresis_left(self) -> int:
        if self._on_gpu is None:
            return int(self._machine.hysteresis_left)
        return int(self._on_gpu.hysteresis_left)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state of this class or of PyTorch's.

        Raises ValueError for a figure out of range; nothing has changed then.
        """
        if not self._enabled or not state_dict:
            super().load_state_dict(state_dict)
            return
        _check_scale(state_dict["scale"])
        names = ("growth_factor", "backoff_factor", "growth_interval")
        self._machine.set(**{name: state_dict[name] for name in names})
        super().load_state_dict(state_dict)
        if "_hysteresis_left" in state_dict:
            self._machine.hysteresis_left = state_dict["_hysteresis_left"]
            if self._on_gpu is not None:
                self._on_gpu.hysteresis_left.fill_(state_dict["_hysteresis_left"])

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        state["process_group"] = None
        machine = self._machine
        left = self._hysteresis_left()
        state["_machine"] = (machine.figures(), machine.growth_tracker, left)
        state["_on_gpu"] = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        figures, growth_tracker, hysteresis_left = state["_machine"]
        self._machine = native.load().LossScaler(self.rule, **figures)
        self._machine.growth_tracker = growth_tracker
        self._machine.hysteresis_left = hysteresis_left


def _report(state: Any) -> None:
    """Raises LossScaleError if the scaler has come to an end."""
    if state.failed:
        raise LossScaleError(
            f"the loss scale is at its least, {state.scale}, and gradients are still not"
            f" finite after {state.skipped_in_a_row} steps in a row"
        )
    if state.scale < _LEAST_SCALE:
        raise LossScaleError(
            f"the loss scale has fallen to {state.scale}, which no float32 can undo, in"
            f" {state.skipped_in_a_row} steps in a row whose gradients were not finite;"
            " that is not the scale's doing. min_scale keeps it from falling so far"
        )


def _check_scale(scale: float | Tensor) -> None:
    """Raises ValueError for a scale that is not positive and finite, where the host knows."""
    if isinstance(scale, Tensor) and (scale.device.type != "cpu" or scale.numel() != 1):
        return
    value = float(scale)
    if not (value > 0.0 and math.isfinite(value)):
        raise ValueError(f"a loss scale must be positive and finite, not {value}")


def _refuse_fp16(params: list[Tensor]) -> None:
    """PyTorch's error, with what to do."""
    if any(param.grad is not None and param.grad.dtype is torch.float16 for param in params):
        raise ValueError(
            "Attempting to unscale FP16 gradients. In float16 small ones would become 0:"
            " leave out unscale_ and clip by scaler.step(optimizer, clip=...), which unscales"
            " in float32"
        )


def found_of(state: dict[str, Any]) -> dict[str, Any]:
    """The flags that an optimizer's gradients have left, by device."""
    found: dict[str, Any] = state["found_inf_per_device"]
    return found


def _flags_of(state: dict[str, Any]) -> int:
    """Bits INF and NAN. PyTorch's own check does not tell which."""
    known = state.get("flags")
    if known is not None and state["stage"] is not OptState.UNSCALED:
        return int(known)
    return INF if any(bool(flag != 0) for flag in found_of(state).values()) else 0
