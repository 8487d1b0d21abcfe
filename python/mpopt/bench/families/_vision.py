"""ResNet-50 of torchvision and ViT-small of timm, with random weights."""

from __future__ import annotations

from .._errors import require
from ._recipe import Recipe, Size, call, class_loss, image_batch

# (blocks per stage, classes, batch, pixels)
_RESNET = {
    "large": ([3, 4, 6, 3], 1000, 64, 224),
    "full": ([3, 4, 6, 3], 1000, 8, 224),
    "quick": ([1, 1, 1, 1], 100, 4, 96),
    "tiny": ([1, 1, 1, 1], 10, 4, 32),
}
# (depth, width, heads, classes, batch, pixels)
_VIT = {
    "large": (12, 768, 12, 1000, 64, 224),
    "full": (6, 384, 6, 1000, 8, 224),
    "quick": (2, 192, 3, 100, 4, 96),
    "tiny": (1, 64, 2, 10, 2, 32),
}


def resnet50(size: Size) -> Recipe:
    """Bottleneck residual network with BatchNorm in training mode (in-place module state)."""
    vision = require("torchvision", "family 'resnet50'").models.resnet
    blocks, classes, batch, pixels = _RESNET[size]
    model = vision.ResNet(vision.Bottleneck, blocks, num_classes=classes)
    return Recipe(model, image_batch(classes, batch, pixels), class_loss, call)


def vit(size: Size) -> Recipe:
    """Vision transformer: timm's vit_small_patch16_224, cut to a few blocks."""
    timm = require("timm", "family 'vit'")
    depth, width, heads, classes, batch, pixels = _VIT[size]
    model = timm.create_model(
        "vit_small_patch16_224",
        depth=depth,
        embed_dim=width,
        num_heads=heads,
        num_classes=classes,
        img_size=pixels,
    )
    return Recipe(model, image_batch(classes, batch, pixels), class_loss, call)
