"""What the optimizers share: `step` in two sweeps over memory.

The first reads the gradients: finite or not, and their norm. It is left out when nobody
asks: no loss scale and no clipping. The second updates. A step whose gradients are not
finite is skipped: parameters, state and step count keep their bits.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .. import log
from ..errors import MpoptError
from ..options import is_strict
from . import _device, _device_plan, _native, _storage
from ._arrays import why_unsupported
from ._device_plan import DevicePlan
from ._distributed import INF
from ._plan import Measured, Plan, States, inverse_of
from ._shadow import Shadow, make_shadow, own, why_no_copy
from ._slots import Slot
from ._split import SplitMasters

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

Closure = Callable[[], Any] | None


class Fused(SplitMasters):
    """Base of the optimizers. Subclasses say which states an update reads and writes.

    All take further options, for all parameters or for a group: `master="split"`,
    `rounding="stochastic"` with `seed`, and `state_dtype`; see _storage.py.

    Raises:
        OptionError: a bad option, or a parameter that is of no type for it.
    """

    # PyTorch's GradScaler then leaves unscaling and skipping to `step`.
    _step_supports_amp_scaling = True

    algorithm = ""
    is_decoupled = False
    """Weight decay is no part of the gradient, where the groups do not say."""
    torch_class: type[torch.optim.Optimizer] | None = None
    """The optimizer of `torch.optim` that computes the same."""

    half_gradients = False
    """Under the backend, leave the gradient of a half weight in the type that backward made,
    where this PyTorch has `Tensor.grad_dtype`. A second backward before the step widens it to
    float32 and adds there. Without effect under DistributedDataParallel, which reduces in
    the parameters' type."""

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """As PyTorch's; the parameters are this optimizer's from now on."""
        self.defaults.update(self.__dict__.pop("_options", {}))
        super().add_param_group(param_group)
        try:
            _storage.check(self.param_groups[-1])
        except MpoptError:
            self.param_groups.pop()
            raise
        self._own()

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._own()

    def _own(self) -> None:
        for param in self._params():
            own(param, self)

    # What subclasses say -------------------------------------------------------

    def _states(self, param: Tensor, group: dict[str, Any]) -> States:
        """The arrays of an update. Missing ones are made, but are nobody's before `_keep`."""
        raise NotImplementedError

    def _keep(self, param: Tensor, states: States) -> None:
        """Record states that were made for an update that was applied."""
        raise NotImplementedError

    def _count(self, params: list[Tensor]) -> None:
        """Count an update that was applied, where a state does: here for random bits only."""
        groups = filter(_storage.is_stochastic, self.param_groups)
        counted = {id(param) for group in groups for param in group["params"]}
        for param in params:
            if id(param) in counted:
                self.state[param].setdefault("step", torch.tensor(0.0)).add_(1.0)

    def _next_step(self, param: Tensor) -> float:
        """The number of the coming update, where a state counts them; 1 elsewhere, also on a
        GPU, which counts by itself."""
        if _device.is_gpu(param.device):
            return 1.0
        return float(self.state.get(param, {}).get("step", 0.0)) + 1.0

    def _has_steps(self, param: Tensor) -> bool:
        """True if the state of a parameter counts its updates: here for random bits only."""
        groups = filter(_storage.is_stochastic, self.param_groups)
        return any(param is other for group in groups for other in group["params"])

    # The step --------------------------------------------------------------------

    @torch.no_grad()
    def step(self, closure: Closure = None, *, clip: float = 0.0, zero_grad: bool = False) -> Any:
        """Update all parameters that have a gradient; return what `closure` returns.

        `clip`: the largest norm of all gradients together, as `clip_grad_norm_`; 0 for
        none. `zero_grad`: store zeros in the gradients, also in a skipped step. With `clip`, all
        ranks that hold pieces of the parameters (DTensor) call this together.

        Raises:
            ValueError: `clip` is negative.
            MpoptError: under MPOPT_STRICT=1, what the native update does not take.
        """
        if not clip >= 0.0:
            raise ValueError(f"clip must not be negative, not {clip}")
        if any(group.get("differentiable") for group in self.param_groups):
            raise ValueError("mpopt's optimizers are not differentiable; use torch.optim")
        loss = self.measured = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        reason = self._why_unsupported()
        if reason:
            self._fall_back(reason, clip, zero_grad)
        else:
            self._update(clip, zero_grad)
        return loss

    def measure(self, scale: float = 1.0) -> Measured:
        """Read all gradients once; `scale` is what the loss was multiplied with.

        All ranks that hold pieces of the parameters call it together.
        """
        return self._plan().measure(inverse_of(scale))

    def measure_for_step(self, scale: float, group: ProcessGroup | None = None) -> Measured:
        """The same for the `step` that comes next, which does not read them again. Flags are
        shared over `group`, too."""
        plan = self._plan()
        measured = plan.measure(inverse_of(scale), group)
        self.__dict__["_measured"] = plan, measured
        return measured

    def measure_on_device(self, scale: Tensor, group: ProcessGroup | None = None) -> DevicePlan:
        """The same on a GPU, without a wait: the plan has what was found as `totals`."""
        plan = DevicePlan(self)
        plan.measure_on_device(scale, group)
        self.__dict__["_measured"] = plan, None
        return plan

    def _plan(self) -> Plan:
        return Plan(self) if self.gpu is None else DevicePlan(self)

    @property
    def gpu(self) -> torch.device | None:
        """The GPU that has the parameters; None if they are on the CPU."""
        return _device.device_of(self._params())

    def _why_unsupported(self) -> str:
        reason = next(filter(None, map(why_unsupported, self._params())), "")
        if reason or self.gpu is None:
            return reason or self._why_mixed()
        return _device.why_not(self._params(), self.param_groups)

    def _why_mixed(self) -> str:
        is_mixed = any(_device.is_gpu(param.device) for param in self._params())
        return "parameters on several devices" if is_mixed else ""

    def _params(self) -> Iterator[Tensor]:
        for group in self.param_groups:
            yield from group["params"]

    def _update(self, clip: float, zero_grad: bool) -> None:
        if self.gpu is not None:
            _device_plan.step(self, clip, zero_grad)
            return
        plan, measured = self.__dict__.pop("_measured", (None, None))
        if plan is None or not plan.is_current():
            plan, measured = Plan(self), None
        if plan.is_empty():
            return
        inverse = inverse_of(float(self._given("grad_scale", 1.0)))
        is_bad = self._given("found_inf", 0.0) != 0  # NaN, or a sum over devices, too
        factor = 1.0
        if clip and not is_bad:
            measured = measured or plan.measure(inverse)
            is_bad = measured.flags != 0
            if not is_bad:
                factor = _native.clip_factor(measured.norm * inverse, clip)
        plan.apply(inverse * factor, bool(is_bad), zero_grad)
        self.measured = measured
        self.skipped_steps = self.skipped_steps + bool(is_bad)

    def _given(self, name: str, default: float) -> Any:
        """What GradScaler left for this step."""
        value = getattr(self, name, None)
        if value is None:
            return default
        return value.item() if isinstance(value, Tensor) else value

    @property
    def skipped_steps(self) -> int:
        """Steps that changed nothing, because gradients were not finite. On a GPU those that
        the host has heard of, which may be a step or two behind; `settle` waits for the rest."""
        ledger = self._ledger()
        known: int = self.__dict__.get("_skipped_steps", 0)
        return known if ledger is None else known + ledger.counts()[2]

    @skipped_steps.setter
    def skipped_steps(self, value: int) -> None:
        self.__dict__["_skipped_steps"] = value

    @property
    def measured(self) -> Measured | None:
        """What the last `step` or its GradScaler read of the gradients; None if they read
        nothing. On a GPU as `skipped_steps`, and without the first bad parameter."""
        known: Measured | None = self.__dict__.get("_measured_last")
        ledger = self._ledger()
        if ledger is None:
            return known
        is_skipped, norm, _ = ledger.counts()
        is_read = is_skipped or norm != 0.0
        return Measured(norm, INF if is_skipped else 0, None) if is_read else None

    @measured.setter
    def measured(self, value: Measured | None) -> None:
        self.__dict__["_measured_last"] = value

    def settle(self) -> None:
        """Wait until `skipped_steps` and `measured` are those of the last step."""
        ledger = self._ledger()
        if ledger is not None:
            ledger.mirror.wait()

    def _ledger(self) -> _device_plan.Ledger | None:
        return self.__dict__.get("_gpu_ledger")

    cast_overflows = 0
    """Finite weights beyond 65504 that steps wrote as inf to their copies in float16."""

    def _note(self, overflows: int, stalled: int, first: Tensor | None) -> None:
        """What a step has seen: overflows of copies, and weights that it could not move."""
        if overflows:
            self.cast_overflows = self.cast_overflows + overflows
            if not log.counters["half_copy_overflows"]:
                log.warn("weights beyond 65504 are inf in their copies in float16; use bfloat16")
            log.counters["half_copy_overflows"] += overflows
        if first is not None:
            if not log.counters["stalled_weights"]:
                log.warn(
                    f"a step was too small for a weight of {first.dtype} and shape"
                    f" {tuple(first.shape)}, which did not change; use fp32 weights,"
                    ' master="split" or rounding="stochastic"'
                )
            log.counters["stalled_weights"] += stalled

    # Half copies -------------------------------------------------------------------

    def half_copy(self, param: Tensor, dtype: torch.dtype = torch.bfloat16) -> Tensor:
        """The weight in `dtype`, current now; every later step writes it, too.

        Not a leaf of autograd: a gradient with respect to it is the caller's to hand on.

        Raises:
            MpoptError: `param` is not one of this optimizer's, is not in float32, or has a
                copy in another type.
        """
        shadows = self._shadows()
        shadow = shadows.get(param)
        if shadow is None:
            if all(param is not other for other in self._params()):
                raise MpoptError("a half copy of a parameter that this optimizer does not update")
            shadow = shadows[param] = make_shadow(param, dtype)
        if shadow.half.dtype is not dtype:
            raise MpoptError(f"this parameter's half copy is in {shadow.half.dtype}, not {dtype}")
        if not shadow.is_current(param):
            log.counters["half_copies_cast_again"] += 1
            shadow.refresh(param)
        return shadow.half

    def half_copies(self) -> list[Tensor]:
        """The half copies that exist, current or not."""
        return [shadow.half for shadow in self._shadows().values()]

    def can_copy(self, param: Tensor, dtype: torch.dtype) -> bool:
        """True if `half_copy` takes these."""
        shadow = self._shadows().get(param)
        if shadow is not None:
            return shadow.half.dtype is dtype
        return not why_no_copy(param, dtype)

    def refresh_half_copies(self) -> None:
        """Cast all again, after writes through `.data`, which PyTorch does not count."""
        for param, shadow in self._shadows().items():
            shadow.refresh(param)

    def _shadows(self) -> dict[Tensor, Shadow]:
        found: dict[Tensor, Shadow] = self.__dict__.setdefault("_half_copies", {})
        return found

    def _slots(self) -> dict[Tensor, Slot]:
        found: dict[Tensor, Slot] = self.__dict__.setdefault("_rows", {})
        return found

    def __getstate__(self) -> dict[str, Any]:
        own = ("_half_copies", "_rows")
        return {k: v for k, v in super().__getstate__().items() if k not in own}

    # What the native update does not take ----------------------------------------

    def _fall_back(self, reason: str, clip: float, zero_grad: bool) -> None:
        """The same with PyTorch's own update."""
        text = f"{type(self).__name__} cannot update {reason} itself"
        options = {name for group in self.param_groups for name in _storage.given(group)}
        if options:
            raise MpoptError(f"{text}, and PyTorch's update has no {' and '.join(sorted(options))}")
        if is_strict():
            raise MpoptError(f"{text}; use torch.optim, or unset MPOPT_STRICT")
        log.counters["fallbacks"] += 1
        log.counters["fallbacks.update"] += 1
        if log.counters["fallbacks.update"] == 1:
            log.warn(f"{text}; PyTorch's update runs instead")
        self._unscale_and_clip(clip)
        if self._given("found_inf", 0.0) == 0:
            names = {"grad_scale", "found_inf"} & self.__dict__.keys()  # None, once unscaled
            saved = {name: self.__dict__.pop(name) for name in names}
            self._torch_step()
            self.__dict__.update(saved)
        else:
            self.skipped_steps = self.skipped_steps + 1
        if zero_grad:
            self.zero_grad(set_to_none=False)

    def _unscale_and_clip(self, clip: float) -> None:
        inverse = inverse_of(float(self._given("grad_scale", 1.0)))
        grads = [p.grad for p in self._params() if p.grad is not None]
        if inverse != 1.0:
            for grad in grads:
                grad.mul_(inverse)
        if clip:
            torch.nn.utils.clip_grad_norm_(list(self._params()), clip)

    def _torch_step(self) -> None:
        base = self.torch_class
        if base is None:
            raise MpoptError(f"PyTorch has no {type(self).__name__} to fall back on")
        inspect.unwrap(base.step)(self)  # without the hooks, which ran for this step

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """As PyTorch's. Options of `Fused` that a saved group lacks stay as they are."""
        saved = [_storage.given(group) for group in state_dict["param_groups"]]
        options = [
            {**_storage.given(group), **other}
            for group, other in zip(self.param_groups, saved, strict=False)
        ]
        for group, chosen in zip(self.param_groups, options, strict=False):
            _storage.check({**group, **chosen})
        super().load_state_dict(state_dict)
        for group, chosen in zip(self.param_groups, options, strict=True):
            group.update(chosen)
        _storage.restore(self, state_dict)
        self.__dict__.pop("_measured", None)
        if (ledger := self._ledger()) is not None:
            ledger.ages.clear()
