"""A small diffusion UNet: residual blocks with GroupNorm and SiLU, attention at the bottom."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from ._recipe import Recipe, Size, call, widen

# (channels, channel multipliers, batch, pixels)
_SIZES = {
    "large": (128, (1, 2, 4), 32, 64),
    "full": (64, (1, 2, 4), 8, 64),
    "quick": (32, (1, 2), 4, 32),
    "tiny": (16, (1,), 2, 8),  # one level: neither strided convolution nor upsampling
}
_GROUPS = 8
_HEADS = 4
_FREQUENCIES = 64
_TIME_WIDTH = 256


class ResBlock(nn.Module):
    """Two convolutions around a time embedding: [b, cin, h, w] -> [b, cout, h, w]."""

    def __init__(self, cin: int, cout: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(_GROUPS, cin), nn.Conv2d(cin, cout, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(_GROUPS, cout), nn.Conv2d(cout, cout, 3, padding=1)
        self.time = nn.Linear(_TIME_WIDTH, cout)
        self.skip: nn.Module = nn.Conv2d(cin, cout, 1) if cin != cout else nn.Identity()

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        """Add the block's output to its input."""
        h = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(time))[:, :, None, None]
        y: torch.Tensor = self.skip(x) + self.conv2(F.silu(self.norm2(h)))
        return y


class Attention(nn.Module):
    """Residual self-attention over pixels: [b, c, h, w] -> same."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(_GROUPS, channels)
        self.qkv = nn.Conv2d(channels, 3 * channels, 1)
        self.proj = nn.Conv2d(channels, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Attend among all pixels of an image."""
        b, c, h, w = x.shape
        packed = self.qkv(self.norm(x)).view(b, 3, _HEADS, c // _HEADS, h * w)
        q, k, v = packed.transpose(-1, -2).unbind(1)
        y = F.scaled_dot_product_attention(q, k, v).transpose(-1, -2)
        projected: torch.Tensor = self.proj(y.reshape(b, c, h, w))
        return x + projected


class UNet(nn.Module):
    """Predicts noise: (images [b, 3, h, w], times [b]) -> [b, 3, h, w]."""

    def __init__(self, channels: int, multipliers: tuple[int, ...]) -> None:
        super().__init__()
        widths = [channels * m for m in multipliers]
        self.embed = nn.Sequential(
            nn.Linear(2 * _FREQUENCIES, _TIME_WIDTH),
            nn.SiLU(),
            nn.Linear(_TIME_WIDTH, _TIME_WIDTH),
        )
        self.stem = nn.Conv2d(3, channels, 3, padding=1)
        enter = [channels, *widths[:-1]]
        self.down = nn.ModuleList(ResBlock(a, b) for a, b in zip(enter, widths, strict=True))
        self.shrink = nn.ModuleList(nn.Conv2d(c, c, 3, 2, 1) for c in widths[:-1])
        self.attend = Attention(widths[-1])
        self.middle = ResBlock(widths[-1], widths[-1])
        above = [widths[-1], *widths[:0:-1]]
        skips = widths[::-1]
        self.up = nn.ModuleList(ResBlock(a + c, c) for a, c in zip(above, skips, strict=True))
        self.norm, self.out = nn.GroupNorm(_GROUPS, channels), nn.Conv2d(channels, 3, 3, padding=1)

    def _time(self, time: torch.Tensor) -> torch.Tensor:
        frequency = torch.exp(torch.arange(_FREQUENCIES, device=time.device) * -0.15)
        angle = time[:, None] * frequency.to(time.dtype)
        embedded: torch.Tensor = self.embed(torch.cat([angle.sin(), angle.cos()], -1))
        return embedded

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        """Return the predicted noise."""
        t = self._time(time)
        h, skips = self.stem(x), []
        for level, block in enumerate(self.down):
            h = block(h, t)
            last = level == len(self.down) - 1
            h = self.attend(h) if last else h
            skips.append(h)
            h = h if last else self.shrink[level](h)
        h = self.middle(h, t)
        for level, block in enumerate(self.up):
            skip = skips.pop()
            h = F.interpolate(h, size=skip.shape[-2:]) if level else h
            h = block(torch.cat([h, skip], 1), t)
        noise: torch.Tensor = self.out(F.silu(self.norm(h)))
        return noise


def _noise_loss(
    model: nn.Module, x: torch.Tensor, time: torch.Tensor, noise: torch.Tensor
) -> torch.Tensor:
    return F.mse_loss(widen(call(model, x, time)), widen(noise))


def unet(size: Size) -> Recipe:
    """Diffusion UNet with GroupNorm, SiLU, skip concatenation and one attention block."""
    channels, multipliers, batch, pixels = _SIZES[size]
    shape = (batch, 3, pixels, pixels)
    model = UNet(channels, multipliers)
    data = (torch.randn(shape), torch.rand(batch) * 1000, torch.randn(shape))
    return Recipe(model, data, _noise_loss, call, inputs=2)
