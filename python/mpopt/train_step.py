"""A whole optimizer step with one call."""

from __future__ import annotations

import functools
import itertools
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from . import _torch, backend, bad_op, log, optim
from .callbacks import BadOp, Callback, NonFinite, StepMetrics
from .checkpointing import Checkpointing, Choice
from .errors import MpoptError, OptionError
from .grad_scaler import GradScaler
from .half_share import HalfShare
from .optim._fused import Fused
from .options import is_strict
from .step_gradients import StepGradients

LossFn = Callable[[Callable[..., Any], Any], Tensor]

_MANY = 8  # micro-batches from which on one bad one decides about the step
_TYPES = (torch.float32, torch.float16, torch.bfloat16)


class TrainStep:
    """Forward, backward, loss scale, clipping, update and callbacks of one optimizer step.

        step = mpopt.TrainStep(model, loss_fn, torch.optim.AdamW(model.parameters()), clip=1.0)
        for batch in loader:
            loss = step(batch)

    It does what this loop does, bit for bit:

        for batch in batches:                       # `accumulate` of them
            with torch.autocast(device, dtype):
                loss = loss_fn(model, batch)
            scaler.scale(loss / accumulate).backward()
        scaler.step(optimizer, clip=clip)
        scaler.update()
        optimizer.zero_grad()                       # set to None, so that halves stay halves

    Args:
        model: module with its parameters where they are to stay. A DistributedDataParallel one
            adds up gradients over processes in the last backward of a step.
        loss_fn: function of the (compiled) model and a batch that returns the loss, a scalar
            tensor, as `lambda model, batch: F.cross_entropy(model(batch[0]), batch[1])`.
        optimizer: one of `mpopt.optim`, or one of `torch.optim` for `mpopt.optim.fuse`.
        scaler: "auto" for a GradScaler in fp16 and none otherwise, None, or a GradScaler.
        clip: largest norm of all gradients together; 0 for none.
        accumulate: micro-batches per step.
        dtype: of autocast; None or float32 for none. "auto" is bf16 if the hardware has it,
            else fp16.
        checkpoint: which activations to compute again in backward: "full" (or True) for the
            members of the model's outermost ModuleLists, a list of module names and classes,
            or a function of name and module.
        offload: keep the optimizer's state on the CPU, where it is for parameters there.
        compile: compile the model with the backend of this package, with its `options`.
        callbacks: see `mpopt.callbacks`.
        count: function of a batch that says how much it counts for `throughput`; None for the
            first dimension of its first tensor (samples).
        find_bad_op: after gradients that are not finite, run the step again eagerly to name
            the operator. Eager random numbers are not those of compiled code.

    Raises:
        ValueError, TypeError: an argument that is none of these.
        MpoptError: an optimizer that cannot be fused, or none of whose parameters are the
            model's; `offload` for a model on another device.
    """

    def __init__(
        self,
        model: nn.Module,
        loss_fn: LossFn,
        optimizer: torch.optim.Optimizer,
        *,
        scaler: Literal["auto"] | torch.amp.GradScaler | None = "auto",
        clip: float = 0.0,
        accumulate: int = 1,
        dtype: Literal["auto"] | torch.dtype | None = "auto",
        checkpoint: Choice = None,
        offload: bool = False,
        compile: bool = True,  # noqa: A002, the name users know
        options: Mapping[str, Any] | None = None,
        callbacks: Iterable[Callback] = (),
        count: Callable[[Any], int] | None = None,
        find_bad_op: bool = False,
    ) -> None:
        _check_figures(clip, accumulate)
        if options and not compile:
            raise OptionError("options are for the backend, which compile=False leaves out")
        self.model, self.loss_fn = model, loss_fn
        self.clip, self.accumulate, self.find_bad_op = float(clip), accumulate, find_bad_op
        self.callbacks = _checked_callbacks(callbacks)
        self._device = _device_of(model)
        self.dtype = _checked_dtype(dtype, self._device)
        self.scaler = _checked_scaler(scaler, self.dtype, self._device)
        if offload and self._device.type != "cpu":
            raise MpoptError(f"offload is not supported yet for parameters on {self._device.type}")
        self.optimizer = _checked_optimizer(optimizer, model)
        if accumulate == 1 and "half_gradients" not in vars(self.optimizer):
            self.optimizer.half_gradients = True
        self.steps = 0
        """Steps so far, skipped ones included."""
        self._count = count or _samples
        self._share = HalfShare()
        self._checkpointing = Checkpointing(model, checkpoint)
        self._run = self._compiled(options) if compile else model
        self._is_closed = False

    def _compiled(self, options: Mapping[str, Any] | None) -> Callable[..., Any]:
        function: Any = self._share.counting(backend.mpopt)
        run: Any = torch.compile(self.model, backend=function, options=dict(options or {}) or None)
        return run  # type: ignore[no-any-return]

    # The step ---------------------------------------------------------------------

    def __call__(self, batch: Any) -> Tensor:
        """Take one step; return the mean loss, detached and unscaled, on its device.

        `batch` is what `loss_fn` takes. With `accumulate=k`, k > 1, it is an iterable of k such
        micro-batches: a list of k, or an iterator such as `zip(x.chunk(k), y.chunk(k))` or
        one over a loader, of which the next k are taken. The gradients are gone afterwards,
        also if the step fails.

        Raises:
            ValueError: another number of micro-batches, before anything is computed, or a
                loss that is no scalar.
            TypeError: no iterable of micro-batches, or a loss that is no tensor.
            MpoptError: after `close`.
        """
        if self._is_closed:
            raise MpoptError("this TrainStep is closed")
        batches = self._micro_batches(batch)
        start = time.perf_counter()
        try:
            states, loss = self._backward(batches)
            self._update(batches, states, loss, start)
        finally:
            self.optimizer.zero_grad(set_to_none=True)
        return loss

    def _micro_batches(self, batch: Any) -> Sequence[Any]:
        count = self.accumulate
        if count == 1:
            return [batch]
        if isinstance(batch, Tensor | Mapping | str) or not isinstance(batch, Iterable):
            raise TypeError(
                f"with accumulate={count}, the step takes an iterable of {count} micro-batches, "
                f"such as batch.chunk({count}), not one {type(batch).__name__}"
            )
        is_stream = isinstance(batch, Iterator)
        found = list(itertools.islice(batch, count) if is_stream else batch)
        if len(found) != count:
            raise ValueError(f"accumulate={count} takes {count} micro-batches, not {len(found)}")
        return found

    def _backward(self, batches: Sequence[Any]) -> tuple[list[_RandomState], Tensor]:
        """Gradients of the mean loss; random states before each micro-batch; the loss."""
        states: list[_RandomState] = []
        parts: list[Tensor] = []
        for number, batch in enumerate(batches, 1):
            if self.find_bad_op:
                states.append(_RandomState(self._device))
            with self._reducing(number == len(batches)):
                part = self._loss(self._run, batch)
                self._scaled(part).backward()  # type: ignore[no-untyped-call]
            parts.append(part.detach())
        return states, _sum(parts)

    def _reducing(self, is_last: bool) -> AbstractContextManager[Any]:
        """Processes add up their gradients once per step, in the last backward."""
        if is_last or not isinstance(self.model, DistributedDataParallel):
            return nullcontext()
        return self.model.no_sync()

    def _loss(self, model: Callable[..., Any], batch: Any) -> Tensor:
        """The part of the mean loss that is this micro-batch's."""
        half = None if self.dtype is torch.float32 else self.dtype
        with torch.autocast(self._device.type, half or torch.bfloat16, enabled=half is not None):
            loss = self.loss_fn(model, batch)
        if not isinstance(loss, Tensor):
            raise TypeError(f"loss_fn must return the loss alone, not {type(loss).__name__}")
        if loss.numel() != 1:
            raise ValueError(f"loss_fn must return a scalar, not shape {tuple(loss.shape)}")
        if not loss.requires_grad:
            raise ValueError("the loss does not depend on a parameter that requires a gradient")
        return loss if self.accumulate == 1 else loss / self.accumulate

    def _scaled(self, loss: Tensor) -> Tensor:
        return loss if self.scaler is None else self.scaler.scale(loss)

    # After backward -----------------------------------------------------------------

    def _update(
        self, batches: Sequence[Any], states: list[_RandomState], loss: Tensor, start: float
    ) -> None:
        self.steps += 1
        if not self.callbacks:
            self._step_optimizer()
            if self.scaler is not None:
                self.scaler.update()
            return
        metrics, gradients = self._metrics(batches, loss)
        try:
            metrics.seconds = time.perf_counter() - start
            self._tell("on_gradients", metrics)
            start = time.perf_counter()
            self._apply(metrics, gradients, lambda: self._find_bad_op(batches, states))
            metrics.seconds += time.perf_counter() - start
            self._tell("on_step", metrics)
        finally:
            gradients.close()

    def _metrics(self, batches: Sequence[Any], loss: Tensor) -> tuple[StepMetrics, StepGradients]:
        scale = known = None
        if self.scaler is not None and self.scaler.is_enabled():
            scale = self._scaled(torch.ones((), device=loss.device))
            if loss.device.type != "cpu" and isinstance(self.scaler, GradScaler):
                known = self.scaler.known_scale
        gradients = StepGradients(self.optimizer, self.model, scale)
        metrics = StepMetrics(
            step=self.steps,
            loss_tensor=loss,
            scale_tensor=scale,
            known_scale=known,
            optimizer=self.optimizer,
            gradients=gradients,
            count=lambda: sum(map(self._count, batches)),
            share=self._share.share,
        )
        return metrics, gradients

    def _apply(
        self, metrics: StepMetrics, gradients: StepGradients, find: Callable[[], BadOp | None]
    ) -> None:
        """The update, and what callbacks hear of gradients that are not finite."""
        watches = any(callback.overrides("on_nonfinite") for callback in self.callbacks)
        # PyTorch's clipping, which runs for what is not ours, does not skip.
        checks = metrics.scale_tensor is not None or (self.clip > 0 and gradients.is_ours)

        def tell_if_bad(skipped: bool) -> None:
            if watches and (bad := gradients.find_bad()):
                self._tell("on_nonfinite", NonFinite(self.steps, *bad, skipped, find()))

        if not checks:
            tell_if_bad(skipped=False)
        gradients.updating()
        before = self.optimizer.skipped_steps
        self._step_optimizer()
        if watches:
            self.optimizer.settle()
        metrics.skipped = self.optimizer.skipped_steps > before
        try:
            if metrics.skipped:
                tell_if_bad(skipped=True)
        finally:
            if self.scaler is not None:
                self.scaler.update()

    def _step_optimizer(self) -> None:
        if self.scaler is None:
            self.optimizer.step(clip=self.clip)
        else:
            self.scaler.step(self.optimizer, clip=self.clip)

    def _tell(self, method: str, what: Any) -> None:
        for callback in self.callbacks:
            getattr(callback, method)(what)

    def _find_bad_op(self, batches: Sequence[Any], states: list[_RandomState]) -> BadOp | None:
        """None also if it is not looked for. A failure of the search does not end the run."""
        try:
            return self._search(batches, states)
        except Exception as error:
            log.counters["fallbacks"] += 1
            log.counters["fallbacks.bad_op"] += 1
            if is_strict():
                raise
            log.warn(f"find_bad_op: the step fails when it is run eagerly: {error}")
            return None

    def _search(self, batches: Sequence[Any], states: list[_RandomState]) -> BadOp | None:
        model = self.model
        if isinstance(model, DistributedDataParallel):
            model = model.module  # a replica runs by itself; the others may have nothing to search
        for batch, state in zip(batches, states, strict=False):
            run = functools.partial(self._loss, model, batch)
            with state.again():
                found = bad_op.find(model, batch, lambda run=run: self._scaled(run()))  # type: ignore[misc]
            if found is not None:
                return found
        return None

    # The end, and a new beginning -----------------------------------------------------

    def close(self) -> None:
        """Tell the callbacks that no step follows, and undo activation checkpointing."""
        if self._is_closed:
            return
        self._is_closed = True
        with ExitStack() as stack:  # one that fails does not keep the others from their end
            stack.callback(self._checkpointing.remove)
            for callback in reversed(self.callbacks):
                stack.callback(callback.on_end)

    def __enter__(self) -> TrainStep:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs beside the model's own state and that of random numbers:
        "step", "optimizer" and, with a scaler, "scaler"."""
        state = {"step": self.steps, "optimizer": self.optimizer.state_dict()}
        if self.scaler is not None:
            state["scaler"] = self.scaler.state_dict()
        return state

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take over a state; the model's is to be loaded as well, before or after.

        Raises:
            ValueError: the state is none of a TrainStep, or only one of the two has a scaler.
        """
        expected = {"step", "optimizer"} | ({"scaler"} if self.scaler is not None else set())
        if set(state_dict) != expected:
            raise ValueError(
                f"this TrainStep's state has {', '.join(sorted(expected))}, "
                f"not {', '.join(sorted(map(str, state_dict)))}"
            )
        self.optimizer.load_state_dict(state_dict["optimizer"])
        if self.scaler is not None:
            self.scaler.load_state_dict(state_dict["scaler"])
        self.steps = int(state_dict["step"])


class _RandomState:
    """The state of random numbers at one point."""

    def __init__(self, device: torch.device) -> None:
        self._cuda = device if device.type == "cuda" else None
        self._cpu_state = torch.get_rng_state()
        self._cuda_state = torch.cuda.get_rng_state(device) if self._cuda else None

    @contextmanager
    def again(self) -> Iterator[None]:
        """Random numbers from that point on, and afterwards those that come next."""
        with torch.random.fork_rng([self._cuda] if self._cuda else []):
            torch.set_rng_state(self._cpu_state)
            if self._cuda is not None and self._cuda_state is not None:
                torch.cuda.set_rng_state(self._cuda_state, self._cuda)
            yield


# Arguments ------------------------------------------------------------------------


def _check_figures(clip: float, accumulate: int) -> None:
    if not clip >= 0.0:
        raise ValueError(f"clip must not be negative, not {clip}")
    if isinstance(accumulate, bool) or not isinstance(accumulate, int) or accumulate < 1:
        raise ValueError(f"accumulate must be a number of micro-batches, not {accumulate!r}")
    if accumulate > _MANY and not clip:
        warnings.warn(
            f"accumulate={accumulate} without clipping: one bad micro-batch decides about the "
            "whole step; give clip=1.0 or so",
            stacklevel=3,
        )


def _checked_callbacks(callbacks: Iterable[Callback]) -> tuple[Callback, ...]:
    if isinstance(callbacks, Callback):
        raise TypeError("callbacks is a list: give callbacks=[...]")
    found = tuple(callbacks)
    for callback in found:
        if not isinstance(callback, Callback):
            raise TypeError(f"a callback derives from mpopt.callbacks.Callback, not {callback!r}")
    return found


def _device_of(model: nn.Module) -> torch.device:
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, not {type(model).__name__}")
    first = next(model.parameters(), None)
    if first is None:
        raise ValueError("the model has no parameters")
    return first.device


def _checked_dtype(dtype: Any, device: torch.device) -> torch.dtype:
    if dtype == "auto":
        return torch.bfloat16 if _torch.has_bf16(device.type) else torch.float16
    if dtype is None:
        return torch.float32
    if dtype not in _TYPES:
        names = ", ".join(map(str, _TYPES))
        raise ValueError(f'dtype must be "auto", None, {names}, not {dtype!r}')
    return dtype  # type: ignore[no-any-return]


def _checked_scaler(
    scaler: Any, dtype: torch.dtype, device: torch.device
) -> torch.amp.GradScaler | None:
    if scaler == "auto":
        return GradScaler(device.type) if dtype is torch.float16 else None
    if scaler is not None and not isinstance(scaler, torch.amp.GradScaler):
        raise TypeError(f'scaler must be "auto", None or a GradScaler, not {scaler!r}')
    return scaler


def _checked_optimizer(optimizer: torch.optim.Optimizer, model: nn.Module) -> Fused:
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise TypeError(f"optimizer must be a torch.optim.Optimizer, not {optimizer!r}")
    fused: Any = optim.fuse(optimizer)
    known = set(map(id, model.parameters()))
    if not any(id(param) in known for group in fused.param_groups for param in group["params"]):
        raise MpoptError(
            "the optimizer updates no parameter of the model; make it from model.parameters(), "
            "after the model has moved to its device"
        )
    return fused  # type: ignore[no-any-return]


def _sum(parts: list[Tensor]) -> Tensor:
    """Of losses, at least in fp32 if there is something to add."""
    if len(parts) == 1:
        return parts[0]
    total = parts[0].to(torch.promote_types(parts[0].dtype, torch.float32))
    for part in parts[1:]:
        total = total + part
    return total


def _samples(batch: Any) -> int:
    """The first dimension of the first tensor in a batch; 0 without one."""
    if isinstance(batch, Tensor):
        return batch.shape[0] if batch.dim() else 1
    parts = batch.values() if isinstance(batch, Mapping) else batch
    if isinstance(parts, Iterable) and not isinstance(parts, str):
        return next(filter(None, map(_samples, parts)), 0)
    return 0
