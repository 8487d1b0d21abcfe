"""`mpopt.calibrate`: runs a model over some batches and measures its values."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from . import _torch_watch, log
from .bad_op import kept_buffers
from .calibration import Calibration
from .errors import MpoptError, OptionError
from .range_keys import Key
from .ranges import FORMATS, Range
from .recorder import Recorder


def calibrate(
    model: nn.Module,
    batches: Iterable[Any],
    *,
    loss_fn: Callable[[Any, Any], Tensor] | None = None,
    dtype: torch.dtype | None = torch.bfloat16,
    path: str | os.PathLike[str] | None = None,
) -> Calibration:
    """Measure the values of `model`, forward and backward, over `batches`.

    Args:
        model: runs in the mode that it is in (train or eval); parameters, gradients, buffers and
            the state of random numbers are left as they are.
        batches: each is given to the model: a mapping as keywords, a tuple or list as arguments.
        loss_fn: function of the compiled model and a batch that returns the loss, as for
            `TrainStep`. Without it, backward runs if the model returns a scalar or has one as
            `loss`.
        dtype: run under autocast to this half type; None for the autocast of the caller.
        path: also save the result there.

    Raises:
        OptionError: a bad argument.
        MpoptError: there is no batch, or the model was not compiled.
    """
    _check(model, batches, loss_fn, dtype)
    model = _torch_watch.uncompiled(model)
    recorder = Recorder()
    compiled = _torch_watch.compile_apart(model, recorder)
    params = {n: p for n, p in model.named_parameters() if p.requires_grad}
    count, has_loss = 0, False
    with _untouched(model), _autocast(model, dtype):
        for batch in batches:
            loss = _loss_of(compiled, batch, loss_fn)
            if loss is not None:
                has_loss = True
                _backward(loss, params, recorder.ranges)
            count += 1
    if not count:
        raise MpoptError("calibrate got no batch; pass at least one")
    if not recorder.ranges:
        raise MpoptError("calibrate saw no graph; is torch.compile disabled for this model?")
    log.counters["calibrations"] += 1
    result = Calibration(dict(recorder.ranges), dtype, count, has_loss)
    if path is not None:
        result.save(path)
    return result


def _check(model: Any, batches: Any, loss_fn: Any, dtype: Any) -> None:
    if not isinstance(model, nn.Module):
        raise OptionError(f"calibrate needs a module, not {type(model).__name__}")
    if isinstance(batches, Tensor | Mapping):
        kind = type(batches).__name__
        raise OptionError(f"batches must be several batches, as in [batch], not one {kind}")
    if loss_fn is not None and not callable(loss_fn):
        raise OptionError(f"loss_fn must be a function of model and batch, not {loss_fn!r}")
    if dtype is not None and dtype not in FORMATS:
        raise OptionError(f"dtype must be torch.bfloat16, torch.float16 or None, not {dtype}")


def _loss_of(model: Any, batch: Any, loss_fn: Callable[[Any, Any], Tensor] | None) -> Tensor | None:
    """The loss to go backward from, None if there is none."""
    if loss_fn is not None:
        loss = loss_fn(model, batch)
        if not isinstance(loss, Tensor) or loss.numel() != 1:
            raise OptionError(f"loss_fn must return a scalar tensor, not {_described(loss)}")
        return loss if loss.requires_grad else None
    if isinstance(batch, Mapping):
        result = model(**batch)
    elif isinstance(batch, list | tuple):
        result = model(*batch)
    else:
        result = model(batch)
    if isinstance(result, Mapping):
        result = result.get("loss", result)
    result = getattr(result, "loss", result)
    is_loss = isinstance(result, Tensor) and result.numel() == 1 and result.requires_grad
    return result if is_loss else None


def _described(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"one of shape {tuple(value.shape)}"
    return type(value).__name__


def _backward(loss: Tensor, params: Mapping[str, Tensor], ranges: dict[Key, Range]) -> None:
    """Go through the graphs of backward; gradients are measured and dropped."""
    grads = torch.autograd.grad(loss, list(params.values()), allow_unused=True)
    for name, grad in zip(params, grads, strict=True):
        if grad is not None and not grad.is_sparse and grad.is_floating_point():
            key = Key(name, "gradient", 0, "backward")
            ranges[key].dtype = str(grad.dtype).removeprefix("torch.")
            ranges[key].add(grad)


@contextmanager
def _untouched(model: nn.Module) -> Iterator[None]:
    devices = {p.device for p in model.parameters() if p.device.type == "cuda"}
    indices = [d.index for d in devices if d.index is not None]
    with ExitStack() as stack:
        stack.enter_context(torch.random.fork_rng(indices))
        stack.enter_context(kept_buffers(model))
        yield


def _autocast(model: nn.Module, dtype: torch.dtype | None) -> Any:
    if dtype is None:
        return nullcontext()
    first = next(model.parameters(), None)
    return torch.autocast("cpu" if first is None else first.device.type, dtype)
