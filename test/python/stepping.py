"""A small model, its batches and its step, for the tests of TrainStep."""

from __future__ import annotations

import torch
from mpopt import TrainStep, optim
from mpopt.callbacks import Callback
from torch import nn


class MLP(nn.Module):
    """Two layers, with a dropout and statistics between them."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(32, 64), nn.Linear(64, 16)
        self.norm, self.dropout = nn.BatchNorm1d(64), nn.Dropout(0.2)

    def forward(self, x):
        return self.second(self.dropout(torch.relu(self.norm(self.first(x)))))


def make(seed=0):
    torch.manual_seed(seed)
    return MLP()


def batch(seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(8, 32, generator=generator), torch.randn(8, 16, generator=generator)


def loss_of(model, batch):
    x, y = batch
    return (model(x).float() - y).square().mean()


def step_of(model, optimizer=None, loss_fn=loss_of, **kwargs):
    optimizer = optimizer or optim.AdamW(model.parameters(), lr=0.01)
    return TrainStep(model, loss_fn, optimizer, **{"compile": False, **kwargs})


def assert_equal(first, second):
    states = first.state_dict(), second.state_dict()
    assert states[0].keys() == states[1].keys()
    for key, value in states[0].items():
        assert torch.equal(value, states[1][key]), key


class Events(Callback):
    def __init__(self):
        self.events = []

    def on_nonfinite(self, event):
        self.events.append(event)


def lm_loss(model, batch):
    return model(*batch)
