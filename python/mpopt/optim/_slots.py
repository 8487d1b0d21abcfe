"""What the native update is told of a parameter, kept from step to step.

From one step to the next, as a rule, nothing changes but the gradient and the number of the
step. A slot holds the rest of a row and what it was made from; a few comparisons say
whether it still holds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ._arrays import FORMATS, Row, row
from ._distributed import PLAIN

if TYPE_CHECKING:
    from ._plan import States
    from ._shadow import Shadow


class Slot:
    """The row of a parameter of one process, whose gradient lies as it does.

    Not for a parameter with a master of its own or with new states: see `slot_for`.
    """

    __slots__ = ("_arrays", "_form", "_half", "_head", "_place", "_states", "_tail", "_weight")

    def __init__(
        self,
        param: Tensor,
        grad: Tensor,
        states: States,
        shadow: Shadow | None,
        place: tuple[int, int],
    ) -> None:
        number, stream = place
        self._half = None if shadow is None else shadow.half
        self._states = states[:3]
        self._place = place
        self._form = param.dtype, param.shape, param.stride()
        made = row(param, grad, self._states, self._half, number, 1.0, False, None, stream)
        self._head, self._weight, self._tail = made[:3], made[5:7], made[9:]
        arrays = (param, *self._states, self._half)
        self._arrays = [(array, array.data_ptr()) for array in arrays if array is not None]

    def row(
        self,
        param: Tensor,
        grad: Tensor,
        states: States,
        shadow: Shadow | None,
        place: tuple[int, int],
    ) -> Row | None:
        """The row of the coming step; None if something else has changed."""
        if type(grad) not in PLAIN or grad.layout is not torch.strided:
            return None
        dtype, shape, stride = self._form
        if grad.stride() != stride or param.stride() != stride or param.shape != shape:
            return None
        if param.dtype is not dtype or grad.dtype not in FORMATS or place != self._place:
            return None
        first, second, largest = self._states
        if states[0] is not first or states[1] is not second or states[2] is not largest:
            return None
        if (None if shadow is None else shadow.half) is not self._half:
            return None
        for array, address in self._arrays:
            if array.data_ptr() != address:
                return None
        gradient = grad.data_ptr(), FORMATS[grad.dtype]
        return (*self._head, states[3], False, *self._weight, *gradient, *self._tail)


def slot_for(
    param: Tensor,
    grad: Tensor,
    states: States,
    shadow: Shadow | None,
    place: tuple[int, int],
) -> Slot | None:
    """A slot for the steps to come; None where rows have to be made anew.

    Args:
        param: with elements, and without a master of its own.
        grad: its gradient, as it was found.
        states: of this step.
        shadow: its half copy.
        place: number of its group, and of its stream of random numbers.
    """
    is_simple = type(param) in PLAIN and param.dtype in FORMATS and not states.is_new
    if not is_simple or type(grad) not in PLAIN or grad.stride() != param.stride():
        return None
    return Slot(param, grad, states, shadow, place)
