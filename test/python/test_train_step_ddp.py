"""TrainStep in two processes with DistributedDataParallel."""

from __future__ import annotations

import tempfile
from pathlib import Path

import mpopt
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from mpopt import TrainStep, optim
from mpopt.callbacks import Callback
from torch import nn
from torch.nn.parallel import DistributedDataParallel

RANKS, MICRO, STEPS = 2, 2, 4


class Events(Callback):
    def __init__(self):
        self.events = []

    def on_nonfinite(self, event):
        self.events.append(event)


def batch(step, micro, rank):
    generator = torch.Generator().manual_seed(100 * step + 10 * micro + rank)
    x = torch.randn(4, 8, generator=generator)
    return x * 1e6 if (step, micro, rank) == (2, 0, 1) else x


def loss_of(model, x):
    return model(x).float().square().mean()


def make():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def step_of(model, heard, accumulate):
    return TrainStep(
        model,
        loss_fn=loss_of,
        optimizer=optim.SGD(model.parameters(), lr=0.1),
        scaler=mpopt.GradScaler("cpu", init_scale=64.0),
        dtype=torch.float16,
        accumulate=accumulate,
        compile=False,
        callbacks=[heard],
        find_bad_op=True,
    )


def work(rank, folder):
    """One process."""
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=RANKS
    )
    model, heard, sums = DistributedDataParallel(make()), Events(), []

    def count(state, bucket):
        sums.append(bucket)
        work = dist.all_reduce(bucket.buffer().div_(RANKS), async_op=True)
        return work.get_future().then(lambda future: future.value()[0])

    model.register_comm_hook(None, count)
    step = step_of(model, heard, MICRO)
    for i in range(STEPS):
        step([batch(i, micro, rank) for micro in range(MICRO)])
    weights = model.module.state_dict()
    torch.save((weights, heard.events, len(sums), step.scaler.get_scale()), f"{folder}/{rank}")
    dist.destroy_process_group()


def test_ranks_agree_and_sum_once_per_step():
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(work, (folder,), nprocs=RANKS)
        found = [torch.load(Path(folder) / str(r), weights_only=False) for r in range(RANKS)]
    (weights, events, sums, scale), (others, remote, _, _) = found
    assert sums == STEPS, "one bucket, and one sum per step"
    assert scale == 32.0
    for name, weight in weights.items():
        assert torch.equal(weight, others[name])
    # The inf reaches both, and one of them has made it.
    assert [event.step for event in events] == [event.step for event in remote] == [3]
    assert events[0].bad_op is None
    assert (remote[0].bad_op.module, remote[0].bad_op.op) == ("0", "aten._to_copy.default")

    model, heard = make(), Events()
    alone = step_of(model, heard, MICRO * RANKS)
    for i in range(STEPS):
        alone([batch(i, micro, rank) for micro in range(MICRO) for rank in range(RANKS)])
    assert len(heard.events) == 1
    for name, weight in model.state_dict().items():
        # The gradients are added in another order.
        torch.testing.assert_close(weights[name], weight, rtol=1e-5, atol=1e-6)
