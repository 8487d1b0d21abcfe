"""Optimizers that unscale, check, clip, update, cast and clear in two sweeps over memory.

    optimizer = mpopt.optim.AdamW(model.parameters(), lr=1e-3)   # as torch.optim.AdamW
    optimizer = mpopt.optim.fuse(torch.optim.AdamW(...))         # an existing one, in place

State dictionaries are those of `torch.optim`, in both directions. How weights in a half type
and moments are stored: `master`, `rounding`, `seed` and `state_dtype`, see _storage.py.
"""

from __future__ import annotations

from ._adam import Adam, AdamW
from ._fuse import fuse
from ._lion import Lion
from ._sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Lion", "fuse"]
