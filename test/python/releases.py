"""What this PyTorch does where its releases differ, found by trying it.

A test that asks says what holds in either case, so that no release skips it.
"""

from __future__ import annotations

import functools

import torch
from torch._subclasses.fake_tensor import FakeTensorMode


@functools.cache
def traced_product_checks_types() -> bool:
    """True if tracing refuses a batched product of two types, as eager does (2.12 and later)."""
    with FakeTensorMode():
        half, wide = torch.empty(1, 2, 2, dtype=torch.float16), torch.empty(1, 2, 2)
        try:
            torch.bmm(half, wide)
        except RuntimeError:
            return True
    return False
