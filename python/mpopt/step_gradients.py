"""What the gradients of one step are, for as long as they are there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from .errors import MpoptError
from .optim._distributed import NAN
from .optim._fused import Fused
from .optim._plan import Measured, inverse_of


class Bad(NamedTuple):
    """A gradient that is not finite."""

    parameter: str
    kind: Literal["inf", "nan"]


class StepGradients:
    """Gradients of `optimizer`, multiplied with `scale` (None for 1).

    `model` names its parameters. They are open for reading from the last
    backward until `close`, and as they were made until `updating`.
    """

    def __init__(self, optimizer: Fused, model: nn.Module, scale: Tensor | None) -> None:
        self._optimizer, self._model, self._scale = optimizer, model, scale
        self.is_ours = not optimizer._why_unsupported()
        """The native update takes all of them, and leaves them as they are."""
        self._norm: Tensor | None = None
        """Of the scaled gradients, where PyTorch's update will unscale and clip them in place."""
        self._is_updated = self._is_closed = False

    def unscaled(self) -> Iterator[tuple[str, Tensor]]:
        """Names and unscaled gradients, in fp32 or wider; copies."""
        if self._is_updated:
            raise MpoptError("gradients can be read in on_gradients only, before the update")
        inverse, names = inverse_of(self._scale_value()), self._names()
        for param, grad in self._pairs():
            wide = torch.promote_types(grad.dtype, torch.float32)
            yield names.get(param, ""), grad.detach().to(wide) * inverse

    def norm(self) -> float:
        """Norm of the unscaled gradients, before clipping."""
        if self._is_closed:
            raise MpoptError("grad_norm can be read in the callbacks only: the gradients are gone")
        inverse = inverse_of(self._scale_value())
        if self.is_ours:
            return self._measured().norm * inverse
        return float(self._total() if self._norm is None else self._norm) * inverse

    def find_bad(self) -> Bad | None:
        """The first gradient that is not finite. Before the update, its read is the update's."""
        if self.is_ours:
            if not self._is_updated:
                measured = self._optimizer.measure_for_step(self._scale_value())
            else:
                measured = self._measured()
            if not measured.flags:
                return None
            if measured.first_bad is None:  # finite, but not unscaled
                return Bad("", "nan" if measured.flags & NAN else "inf")
            return self._bad(measured.first_bad)
        pairs = self._pairs()
        return next((self._bad(p) for p, grad in pairs if not grad.isfinite().all()), None)

    def updating(self) -> None:
        """The update comes next."""
        if not self.is_ours and not self._is_updated:
            self._norm = self._total()
        self._is_updated = True

    def close(self) -> None:
        """The gradients are released."""
        self._is_closed = True

    def _bad(self, param: Tensor) -> Bad:
        has_nan = param.grad is not None and bool(param.grad.isnan().any())
        return Bad(self._names().get(param, ""), "nan" if has_nan else "inf")

    def _names(self) -> dict[Tensor, str]:
        return {param: name for name, param in self._model.named_parameters()}

    def _measured(self) -> Measured:
        """What the update read, or would have; ours leaves the gradients as they were."""
        known = self._optimizer.measured if self._is_updated else None
        return known or self._optimizer.measure(self._scale_value())

    def _total(self) -> Tensor:
        return torch.nn.utils.get_total_norm([grad for _, grad in self._pairs()])

    def _pairs(self) -> Iterator[tuple[Tensor, Tensor]]:
        for param in self._optimizer._params():
            if param.grad is not None:
                yield param, param.grad

    def _scale_value(self) -> float:
        return 1.0 if self._scale is None else float(self._scale)
