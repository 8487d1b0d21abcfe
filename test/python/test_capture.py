"""Without a pass, Inductor generates the code that it generates without us."""

from __future__ import annotations

import pytest
import torch
from generated import code_of, normalized
from models import ConvNet, Transformer, images, words
from mpopt.backend import mpopt as backend
from test_backend import CASES, fresh

NAMES = (
    "gpt",
    "llama",
    "conv",
    "gpt-dynamic",
    "gpt-dropout",
    "gpt-tied-checkpointed",
    "gpt-inference",
    "conv-inference",
    "outputs",
    "mutation",
    "cond",
)


@pytest.mark.parametrize("name", NAMES)
def test_identical_code(name):
    make, inputs, how = CASES[name]
    stock = code_of(make, fresh(inputs), "inductor", **how)
    ours = code_of(make, fresh(inputs), backend, options={"pipeline": ""}, **how)
    assert stock
    assert ours == stock


@pytest.mark.parametrize("make", [Transformer, ConvNet])
def test_identical_code_without_half_precision(make):
    """Here with all passes on."""
    inputs = images() if make is ConvNet else words()
    stock = code_of(make, inputs, "inductor", autocast=None)
    assert code_of(make, inputs, backend, autocast=None) == stock


def test_comparison_sees_a_difference():
    def scaled(factor):
        return code_of(
            lambda: lambda x: x.sin() * factor, (torch.ones(8),), "inductor", train=False
        )

    assert scaled(2) == scaled(2)
    assert scaled(2) != scaled(3)
    assert normalized("mul_1 = buf2 + mul_1") == normalized("mul_4 = buf0 + mul_4")
    assert normalized("mul_1 = buf2 + mul_1") != normalized("mul_4 = buf0 + buf0")
    assert normalized("log, mul = args\nf(log, x.log())") == normalized(
        "log_2, mul_3 = args\nf(log_2, x.log())"
    )
    assert normalized("tmp1 = tmp0.sin()") != normalized("tmp1 = tmp0.cos()")
    assert normalized("bfloat16 x") != normalized("float x")
