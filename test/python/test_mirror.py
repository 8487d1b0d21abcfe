"""The host's view of a block on a GPU: never waited for, never torn, the newest that is there."""

from __future__ import annotations

import pickle
from typing import ClassVar

import mpopt
import pytest
import torch
from emulated_gpu import machine
from mpopt import mirror
from mpopt.mirror import Mirror


class LateSlot:
    """A copy that arrives when the test says so."""

    made: ClassVar[list[LateSlot]] = []

    def __init__(self, like):
        self.arriving = self.here = None
        self.waits = 0
        LateSlot.made.append(self)

    def copy(self, source):
        self.arriving, self.here = bytes(source.numpy()), None

    def arrive(self):
        self.here = self.arriving

    def is_done(self):
        return self.here is not None

    def data(self):
        assert self.here is not None
        return self.here

    def wait(self):
        self.waits += 1
        self.arrive()


@pytest.fixture
def block():
    LateSlot.made = []
    return torch.zeros(4, dtype=torch.uint8)


def step(block, view, **kwargs):
    block += 1
    view.issue(**kwargs)


def test_on_the_cpu_it_is_the_state_itself(block):
    view = Mirror(block)
    assert view.read() == bytes(4)
    block.fill_(7)
    assert view.read() == view.wait() == bytes([7] * 4)


def test_reads_get_the_newest_copy_that_has_arrived(block):
    view = Mirror(block, LateSlot)
    assert view.read() is None
    step(block, view)
    step(block, view)
    assert view.read() is None
    first, second = LateSlot.made
    first.arrive()
    assert view.read() == bytes([1] * 4)
    second.arrive()
    assert view.read() == bytes([2] * 4)
    assert first.waits == second.waits == 0


def test_a_host_far_ahead_neither_waits_nor_allocates(block):
    view = Mirror(block, LateSlot)
    for _ in range(20):
        step(block, view)
    assert len(LateSlot.made) == mirror.SLOTS
    assert all(slot.waits == 0 for slot in LateSlot.made)
    for slot in LateSlot.made:
        slot.arrive()
    assert view.read() == bytes([20] * 4)
    step(block, view)
    assert view.read() == bytes([20] * 4) and len(LateSlot.made) == mirror.SLOTS


def test_wait_gives_the_last_state(block):
    view = Mirror(block, LateSlot)
    step(block, view)
    step(block, view)
    assert view.wait() == bytes([2] * 4)
    assert LateSlot.made[1].waits == 1
    fresh = Mirror(block, LateSlot)
    assert fresh.wait() == bytes([2] * 4)


def test_replays_of_a_graph_are_seen_by_copies_that_reads_ask_for(block):
    view = Mirror(block, LateSlot)
    step(block, view, is_capturing=True)
    assert not LateSlot.made  # nothing of the mirror is in the graph
    block.fill_(9)  # a replay
    assert view.read() is None
    LateSlot.made[0].arrive()
    assert view.read() == bytes([9] * 4)
    block.fill_(11)
    assert view.wait() == bytes([11] * 4)


def test_counts_of_scaler_and_optimizer_may_be_late_and_settle(monkeypatch):
    machine().install(monkeypatch)
    LateSlot.made = []
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = mpopt.optim.SGD([weight], lr=0.1)
    scaler = mpopt.GradScaler("cpu", init_scale=8.0)
    scaler.scale(torch.ones(()))
    scaler._on_gpu.mirror._is_itself = False
    scaler._on_gpu.mirror._make_slot = LateSlot
    for value in (1.0, float("inf"), float("nan")):
        weight.grad = torch.full((3,), value)
        if optimizer._ledger() is not None:
            optimizer._ledger().mirror._is_itself = False
            optimizer._ledger().mirror._make_slot = LateSlot
        scaler.step(optimizer)
        scaler.update()
    assert scaler.known_scale == 8.0 and scaler.skipped_steps == 0 and scaler.status == ""
    assert optimizer.skipped_steps == 0
    assert scaler.get_scale() == 2.0  # waits, as PyTorch's
    optimizer.settle()
    assert optimizer.skipped_steps == 2 and optimizer.measured.flags
    for slot in LateSlot.made:
        slot.arrive()
    assert scaler.known_scale == 2.0
    assert (scaler.skipped_steps, scaler.inf_steps, scaler.nan_steps) == (2, 1, 1)


def test_a_pickled_scaler_has_the_state_of_the_device(monkeypatch):
    machine().install(monkeypatch)
    scaler = mpopt.GradScaler("cpu", rule="megatron", init_scale=64.0)
    scaler.scale(torch.ones(()))
    scaler._on_gpu.scale.fill_(32.0)
    scaler._on_gpu.hysteresis_left.fill_(1)
    other = pickle.loads(pickle.dumps(scaler))
    assert other.state_dict()["_hysteresis_left"] == 1
    assert float(other.scale(torch.ones(()))) == 32.0
    assert int(other._on_gpu.hysteresis_left) == 1
    other.load_state_dict({**other.state_dict(), "scale": 4.0, "_hysteresis_left": 2})
    assert float(other._on_gpu.scale) == 4.0 and int(other._on_gpu.hysteresis_left) == 2
