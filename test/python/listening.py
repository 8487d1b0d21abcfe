"""A small model with what makes events, and a callback that keeps them."""

from __future__ import annotations

import mpopt
import torch
from mpopt import TrainStep, optim
from mpopt.callbacks import Callback
from torch import nn


class MLP(nn.Module):
    """Two layers with a mask of -inf, a dropout and statistics on the way."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 4)

    def forward(self, x):
        y = nn.functional.dropout(self.norm(self.first(x)), 0.2)
        masked = y.masked_fill(torch.arange(16) > 7, float("-inf"))
        return self.second(y + masked.softmax(-1))


def make():
    torch.manual_seed(0)
    return MLP()


def batch(seed=0, factor=1.0):
    return torch.randn(4, 8, generator=torch.Generator().manual_seed(seed)) * factor


def loss_of(model, x):
    return model(x).float().square().mean()


def step_of(model, *heard, optimizer=None, loss_fn=loss_of, **kwargs):
    optimizer = optimizer or optim.AdamW(model.parameters(), lr=0.01)
    kwargs = {"dtype": torch.float16, "compile": False, **kwargs}
    if kwargs["dtype"] is torch.float16:
        kwargs.setdefault("scaler", mpopt.GradScaler("cpu", init_scale=1024.0))
    return TrainStep(model, loss_fn, optimizer, callbacks=heard, **kwargs)


class Recorder(Callback):
    """Keeps all that it hears, read."""

    def __init__(self):
        self.metrics, self.events, self.ends = [], [], 0

    def on_nonfinite(self, event):
        self.events.append(event)

    def on_step(self, metrics):
        self.metrics.append(metrics.as_dict())

    def on_end(self):
        self.ends += 1


OVERFLOW = {"factor": 1e6}


class Stops(Callback):
    def on_nonfinite(self, event):
        raise FloatingPointError(f"{event.kind} in {event.parameter}, skipped: {event.skipped}")
