"""What the host knows of a block of numbers on a GPU, without waiting for it.

After each step a copy to pinned memory is put on the stream; whoever reads gets the newest
copy that has arrived. On the CPU the mirror is the block itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

SLOTS = 4


class Slot(Protocol):
    """One copy of a block."""

    def copy(self, source: Tensor) -> None:
        """Put a copy of `source` on the stream."""

    def is_done(self) -> bool:
        """True if it has arrived."""

    def data(self) -> bytes:
        """What has arrived."""

    def wait(self) -> None:
        """Wait until it has arrived."""


class PinnedSlot:
    """In memory that a GPU writes by itself."""

    def __init__(self, like: Tensor) -> None:
        self._host = torch.empty(like.numel(), dtype=torch.uint8, pin_memory=True)
        event: Any = torch.cuda.Event
        self._event = event()

    def copy(self, source: Tensor) -> None:
        """See Slot."""
        self._host.copy_(source, non_blocking=True)
        self._event.record(torch.cuda.current_stream(source.device))

    def is_done(self) -> bool:
        """See Slot."""
        return bool(self._event.query())

    def data(self) -> bytes:
        """See Slot."""
        return bytes(self._host.numpy())

    def wait(self) -> None:
        """See Slot."""
        self._event.synchronize()


class Mirror:
    """The host's view of `source`, bytes on a device."""

    def __init__(self, source: Tensor, make_slot: Callable[[Tensor], Slot] | None = None) -> None:
        self._source = source
        self._is_itself = source.device.type == "cpu" and make_slot is None
        self._make_slot = make_slot or PinnedSlot
        self._free: deque[Slot] = deque()
        self._pending: deque[Slot] = deque()
        """On their way, the oldest first."""
        self._made = 0
        self._is_stale = False
        self._known: bytes | None = None

    def issue(self, is_capturing: bool = False) -> None:
        """Put a copy of the block as it will be here on the stream.

        A captured graph copies nothing by itself: its replays are nothing that the host could
        take note of. The next read issues a copy then.
        """
        if self._is_itself:
            return
        self._is_stale = is_capturing
        if is_capturing:
            return
        self._harvest()
        slot = self._slot()
        slot.copy(self._source)
        self._pending.append(slot)

    def _slot(self) -> Slot:
        if self._free:
            return self._free.popleft()
        if self._made < SLOTS:
            self._made += 1
            return self._make_slot(self._source)
        return self._pending.pop()  # the newest on its way: what comes is newer still

    def _harvest(self) -> None:
        for number in reversed(range(len(self._pending))):
            if self._pending[number].is_done():
                self._known = self._pending[number].data()
                # Those before it tell nothing new.
                self._free += (self._pending.popleft() for _ in range(number + 1))
                return

    def read(self) -> bytes | None:
        """The newest copy that is here; None before the first."""
        if self._is_itself:
            return bytes(self._source.numpy())
        if self._is_stale:
            self.issue()
            self._is_stale = True  # replays go on
        self._harvest()
        return self._known

    def wait(self) -> bytes | None:
        """The newest copy, when it has arrived."""
        if self._is_itself:
            return self.read()
        if self._is_stale or not (self._pending or self._known):
            is_stale = self._is_stale
            self.issue()
            self._is_stale = is_stale
        if self._pending:
            self._pending[-1].wait()
        self._harvest()
        return self._known
