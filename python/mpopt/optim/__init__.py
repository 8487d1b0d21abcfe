"""Optimizers that unscale, check, clip, update, cast and clear in two sweeps over memory.

    optimizer = mpopt.optim.AdamW(model.parameters(), lr=1e-3)   # as torch.optim.AdamW
    optimizer = mpopt.optim.fuse(torch.optim.AdamW(...))         # an existing one, in place

State dictionaries are those of `torch.optim`, in both directions.
"""

from __future__ import annotations

from ._adam import Adam, AdamW
from ._fuse import fuse
from ._lion import Lion
from ._sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Lion", "fuse"]
