"""Eight model families with random weights and fixed seeds, each in four sizes.

`large` is for what only looks at graphs, `full` takes seconds per step on a
laptop, `quick` compiles in well under a minute, `tiny` in a few seconds (for
tests).  transformers, timm and torchvision are imported only by the families
that need them.
"""

from __future__ import annotations

import torch
from torch import nn

from .._errors import check_name
from ._lstm import lstm
from ._moe import moe
from ._recipe import SIZES, Batch, Builder, Inference, Recipe, Size, Training
from ._text import bert, gpt2, llama
from ._unet import unet
from ._vision import resnet50, vit

FAMILIES: dict[str, Builder] = {
    builder.__name__: builder for builder in (gpt2, llama, bert, vit, resnet50, moe, lstm, unet)
}


def _recipe(family: str, size: Size, seed: int) -> Recipe:
    check_name("family", family, FAMILIES)
    check_name("size", size, SIZES)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return FAMILIES[family](size)


def build(family: str, size: Size = "full", seed: int = 0) -> tuple[nn.Module, Batch]:
    """Return a module in training mode that maps a batch to a scalar loss, and the batch.

    Weights and floating-point inputs are fp32 on the CPU; the caller's random
    state is left as it was.

    Raises:
        UsageError: unknown family or size.
        BenchError: the family needs a package that is not installed.
    """
    recipe = _recipe(family, size, seed)
    return Training(recipe).train(), recipe.batch


def build_inference(family: str, size: Size = "full", seed: int = 0) -> tuple[nn.Module, Batch]:
    """Return a module in evaluation mode that maps inputs to logits, and the inputs.

    The weights equal those of `build` with the same arguments.

    Raises:
        UsageError: unknown family or size.
        BenchError: the family needs a package that is not installed.
    """
    recipe = _recipe(family, size, seed)
    return Inference(recipe).eval(), recipe.batch[: recipe.inputs]


__all__ = ["FAMILIES", "SIZES", "Batch", "Size", "build", "build_inference"]
