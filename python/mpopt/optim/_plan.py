"""The native update of one step over the tensors of an optimizer."""

from __future__ import annotations

import ctypes
import itertools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from ..errors import MpoptError
from . import _native, _storage
from ._arrays import Row, aligned, row
from ._distributed import (
    INF,
    NAN,
    WHOLE,
    Spread,
    agree,
    is_dtensor,
    lie_together,
    local,
    settle,
    spread_of,
    spreads_of,
)
from ._shadow import Shadow
from ._slots import slot_for

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

    from ._fused import Fused


class States(NamedTuple):
    """What an update of one parameter reads and writes beside the weight."""

    first: Tensor | None = None
    second: Tensor | None = None
    largest: Tensor | None = None
    step: float = 1.0
    """Updates so far, the coming one included."""
    is_new: bool = False
    """Made for this update."""


@dataclass
class Measured:
    """What one read of the scaled gradients found."""

    norm: float
    """Of the gradients as they are, scaled; of all pieces of a DTensor."""
    flags: int
    """Bits INF and NAN; INF also for what overflows f32 when it is unscaled. Of all ranks."""
    first_bad: Tensor | None
    """The first parameter whose gradient is not finite on this rank."""
    is_empty: bool = False
    """There were no gradients."""


def inverse_of(scale: float) -> float:
    """fl32(1 / scale), by which gradients are unscaled; inf for a scale of 0."""
    return ctypes.c_float(1.0 / scale).value if scale else math.inf


def _figures(optimizer: Fused, group: dict[str, Any]) -> dict[str, Any]:
    """A group as `_mpopt.Update` takes it; a figure that it lacks is 0."""
    beta1, beta2 = group.get("betas", (0.0, 0.0))
    numbers = ("lr", "eps", "weight_decay", "momentum", "dampening")
    return {
        "algorithm": optimizer.algorithm,
        **{name: float(group.get(name, 0.0)) for name in numbers},
        "beta1": float(beta1),
        "beta2": float(beta2),
        "decoupled": group.get("decoupled_weight_decay", optimizer.is_decoupled),
        "maximize": group["maximize"],
        "nesterov": group.get("nesterov", False),
        "rounding": group.get("rounding", "nearest"),
        "seed": group.get("seed", 0),
    }


class Entry(NamedTuple):
    """One parameter's update: this rank's pieces, in the order of `row` in _arrays.py."""

    weight: Tensor
    grad: Tensor
    arrays: list[Tensor | None]
    half: Tensor | None
    group: int
    step: float
    is_first: bool
    low: Tensor | None
    stream: int


@dataclass
class Part:
    """The updates of parameters with the same spread, as rows on the CPU and entries on a GPU."""

    rows: list[Row] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    """Of each of these, its parameter's number in the plan."""
    native: Any = None


class Plan:
    """The native update of one step, and the tensors that it points to."""

    keeps_rows = True
    """Rows of one step serve the next; see `Slot`."""

    def __init__(self, optimizer: Fused) -> None:
        self.optimizer = optimizer
        self.params: list[Tensor] = []
        self.states: list[States] = []
        self.given: list[tuple[Tensor, Tensor, int]] = []
        """Gradients as they were found, their pieces on this rank and the counters of these."""
        self.grads: list[Tensor] = []
        """The pieces in the order of the parameters' elements."""
        self.shadows: list[Shadow | None] = []
        self.lows: list[Tensor | None] = []
        settle(optimizer._params())
        self.parts: dict[Spread, Part] = {s: Part() for s in spreads_of(optimizer._params())}
        self._whole = self.parts[WHOLE]
        self._shadows = optimizer._shadows()
        self._slots = optimizer._slots()
        streams = itertools.count()
        for number, group in enumerate(optimizer.param_groups):
            if _storage.is_split(group):
                for param in group["params"]:
                    self._slots.pop(param, None)
            for param, stream in zip(group["params"], streams, strict=False):
                if param.grad is not None:
                    self._add(param, group, number, stream)
        self._bind()

    def _bind(self) -> None:
        """Hand what was put down to who updates it."""
        figures = [_figures(self.optimizer, group) for group in self.optimizer.param_groups]
        for part in self.parts.values():
            part.native = _native.update(part.rows, figures)

    def _add(self, param: Tensor, group: dict[str, Any], number: int, stream: int) -> None:
        given = param.grad
        assert given is not None
        states = self.optimizer._states(param, group)
        place = number, stream
        if self._add_as_before(param, given, states, place):
            return
        weight, piece = local(param), local(given)
        arrays = [_state_array(state, param, weight) for state in states[:3]]
        grad = aligned(piece, weight)
        shadow = self._shadows.get(param)
        half = None if shadow is None else shadow.half
        given_low = self.optimizer._low_half(param) if _storage.is_split(group) else None
        if weight.numel():  # a rank may have no piece of a parameter
            part = self.parts[spread_of(param)]
            low = None if given_low is None else local(given_low)
            entry = (weight, grad, arrays, half, number, states.step, states.is_new, low, stream)
            self._put(part, Entry(*entry))
            part.numbers.append(len(self.params))
            if self.keeps_rows and low is None:
                slot = slot_for(param, given, states, shadow, place)
                if slot is not None:
                    self._slots[param] = slot
        self.params.append(param)
        self.states.append(states)
        self.given.append((given, piece, piece._version))
        self.grads.append(grad)
        self.shadows.append(shadow)
        self.lows.append(given_low)

    def _put(self, part: Part, entry: Entry) -> None:
        part.rows.append(row(*entry))

    def _add_as_before(
        self, param: Tensor, given: Tensor, states: States, place: tuple[int, int]
    ) -> bool:
        """Add a parameter of which nothing has changed since the last step but its gradient."""
        slot = self._slots.get(param) if self.keeps_rows else None
        if slot is None:
            return False
        shadow = self._shadows.get(param)
        made = slot.row(param, given, states, shadow, place)
        if made is None:
            del self._slots[param]
            return False
        self._whole.rows.append(made)
        self._whole.numbers.append(len(self.params))
        self.params.append(param)
        self.states.append(states)
        self.given.append((given, given, given._version))
        self.grads.append(given)
        self.shadows.append(shadow)
        self.lows.append(None)
        return True

    def is_empty(self) -> bool:
        """True if there is nothing to update and no other rank to answer."""
        return not self.params and all(spread.mesh is None for spread in self.parts)

    def is_current(self) -> bool:
        """True if the gradients are still those that were found."""
        return all(
            param.grad is grad and piece._version == version
            for param, (grad, piece, version) in zip(self.params, self.given, strict=True)
        )

    def measure(self, inverse: float, group: ProcessGroup | None = None) -> Measured:
        """Together with the ranks that hold the other pieces, and those of `group`."""
        sums: dict[Spread, float] = {}
        flags, bad = 0, len(self.params)
        for spread, part in self.parts.items():
            sums[spread], infs, nans, first = part.native.measure(inverse)
            flags |= (INF if infs else 0) | (NAN if nans else 0)
            if first < len(part.numbers):
                bad = min(bad, part.numbers[first])
        total, flags = agree(sums, flags, group)
        first_bad = self.params[bad] if bad < len(self.params) else None
        return Measured(math.sqrt(total), flags, first_bad, self.is_empty())

    def apply(self, multiplier: float, is_skipped: bool, zero_grad: bool) -> None:
        for part in self.parts.values():
            overflows, stalled, first = part.native.apply(multiplier, is_skipped, zero_grad)
            first_stalled = self.params[part.numbers[first]] if stalled else None
            self.optimizer._note(overflows, stalled, first_stalled)
        if zero_grad:
            self._clear_copies()
        if self.params and not is_skipped:
            self._finish()

    def _finish(self) -> None:
        for param, states in zip(self.params, self.states, strict=True):
            if states.is_new:
                self.optimizer._keep(param, states)
        self._count()
        # Autograd and other holders of copies must see that the values changed.
        torch.autograd.graph.increment_version(self.params)
        pieces = [local(param) for param in self.params if is_dtensor(param)]
        torch.autograd.graph.increment_version(pieces)
        halves = [shadow.half for shadow in self.shadows if shadow is not None]
        torch.autograd.graph.increment_version(halves)
        for param, shadow in zip(self.params, self.shadows, strict=True):
            if shadow is not None:
                shadow.stamp(param)
        for param, low in zip(self.params, self.lows, strict=True):
            if low is not None:
                self.optimizer.state[param][_storage.LOW] = low
                self.optimizer._lows().stamp(param)

    def _count(self) -> None:
        self.optimizer._count(self.params)

    def _clear_copies(self) -> None:
        for (_, piece, _), grad in zip(self.given, self.grads, strict=True):
            if piece is not grad:
                piece.zero_()


def _state_array(state: Tensor | None, param: Tensor, weight: Tensor) -> Tensor | None:
    """The piece of a state that belongs to `weight`, this rank's piece of `param`."""
    if state is None:
        return None
    array = local(state)
    is_whole = array is state and weight is param
    if not is_whole and not lie_together(state, param):
        raise MpoptError(
            f"a state of class {type(state).__name__} for a parameter of class"
            f" {type(param).__name__}, or placed otherwise; load it with"
            " torch.distributed.checkpoint.state_dict.set_state_dict"
        )
    if array.shape != weight.shape:
        raise MpoptError(
            f"a state of shape {tuple(array.shape)} does not fit its parameter of shape"
            f" {tuple(weight.shape)}"
        )
    if array.stride() != weight.stride():
        raise MpoptError(
            f"a state of shape {tuple(array.shape)} lies in another order than its parameter:"
            f" strides {array.stride()}, not {weight.stride()}"
        )
    return array
