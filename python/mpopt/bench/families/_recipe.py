"""What a family is: a model, its loss and a batch, each made for one of four sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import nn

Size = Literal["large", "full", "quick", "tiny"]
SIZES: tuple[Size, ...] = get_args(Size)
Batch = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Recipe:
    """One family at one size.

    Attributes:
        model: the network, with random weights.
        batch: what a training step takes; floating-point tensors are fp32.
        loss: maps (model, *batch) to a scalar loss.
        logits: maps (model, *batch[:inputs]) to the network's output tensor.
        inputs: how many leading tensors of `batch` inference takes.
    """

    model: nn.Module
    batch: Batch
    loss: Callable[..., torch.Tensor]
    logits: Callable[..., torch.Tensor]
    inputs: int = 1


class Training(nn.Module):
    """A model with its loss, so that one compiled region holds both: (*batch) -> scalar."""

    def __init__(self, recipe: Recipe) -> None:
        super().__init__()
        self.model = recipe.model
        self.loss = recipe.loss

    def forward(self, *batch: torch.Tensor) -> torch.Tensor:
        """Return the scalar loss of one batch."""
        return self.loss(self.model, *batch)


class Inference(nn.Module):
    """A model whose output is one tensor: (*inputs) -> logits."""

    def __init__(self, recipe: Recipe) -> None:
        super().__init__()
        self.model = recipe.model
        self.logits = recipe.logits

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """Return the logits (the predicted noise for the diffusion family)."""
        return self.logits(self.model, *inputs)


def widen(x: torch.Tensor) -> torch.Tensor:
    """Return `x` in fp32 if it is in half precision; an fp64 reference stays fp64."""
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


def call(model: nn.Module, *inputs: torch.Tensor) -> torch.Tensor:
    """Return the output of a model that gives one tensor."""
    output: torch.Tensor = model(*inputs)
    return output


def token_batch(vocab: int, batch: int, length: int) -> Batch:
    """Return (ids, labels), both int64 [batch, length]."""
    ids = torch.randint(vocab, (batch, length))
    return ids, ids.clone()


def image_batch(classes: int, batch: int, pixels: int) -> Batch:
    """Return (fp32 images [batch, 3, pixels, pixels], int64 labels [batch])."""
    return torch.randn(batch, 3, pixels, pixels), torch.randint(classes, (batch,))


def next_token_loss(model: nn.Module, ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the cross entropy of each token given those before it."""
    logits = call(model, ids)
    return nn.functional.cross_entropy(widen(logits[:, :-1].flatten(0, 1)), labels[:, 1:].flatten())


def class_loss(model: nn.Module, x: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
    """Return the cross entropy of one label per image."""
    return nn.functional.cross_entropy(call(model, x), label)


Builder = Callable[[Size], Recipe]
Settings = dict[str, Any]
