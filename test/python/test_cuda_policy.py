"""The emulated autocast policy is CUDA's, and is gone afterwards."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from mpopt.bench.cuda_policy import cuda_policy

BF16, F32 = torch.bfloat16, torch.float32
# (expression, result dtype on CUDA, result dtype on the CPU)
POLICY = {
    "rms_norm": (lambda x: F.rms_norm(x, (8,), x[0, :8]), F32, BF16),
    "layer_norm": (lambda x: F.layer_norm(x, (8,)), F32, BF16),
    "softmax": (lambda x: torch.softmax(x, -1), F32, BF16),
    "softmax to a dtype": (lambda x: torch.softmax(x, -1, dtype=BF16), BF16, BF16),
    "sum": (lambda x: x.sum(), F32, BF16),
    "sum over a dimension": (lambda x: x.sum(-1, keepdim=True), F32, BF16),
    "exp": (lambda x: x.exp(), F32, BF16),
    "pow": (lambda x: x.pow(2), F32, BF16),
    "mm": (lambda x: torch.mm(x.float(), x.float().t()), BF16, BF16),
    "add": (lambda x: x + x, BF16, BF16),
    "addcmul of mixed": (lambda x: torch.addcmul(x.float(), x, x), F32, F32),
    "fp64 stays": (lambda x: x.double().exp(), torch.float64, torch.float64),
}


@pytest.mark.parametrize("name", POLICY)
def test_policy_is_cudas_inside_and_the_cpus_outside(name: str) -> None:
    function, on_cuda, on_cpu = POLICY[name]
    x = torch.randn(4, 8, dtype=BF16)
    with torch.autocast("cpu", BF16):
        assert function(x).dtype == on_cpu
        with cuda_policy():
            assert function(x).dtype == on_cuda
        assert function(x).dtype == on_cpu


def test_mixed_halves_are_refused_by_promote() -> None:
    x = torch.randn(4)
    with cuda_policy(), torch.autocast("cpu", BF16), pytest.raises(RuntimeError, match="promote"):
        torch.dot(x.half(), x.bfloat16())
