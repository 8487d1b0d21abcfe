"""Small models with the parts of large ones."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

WIDTH, HEADS, WORDS, LENGTH = 32, 2, 48, 16


class Block(nn.Module):
    """A transformer block: GPT's (LayerNorm, GELU) or Llama's (RMSNorm, SwiGLU)."""

    def __init__(self, llama: bool, dropout: float = 0.0):
        super().__init__()
        norm = nn.RMSNorm if llama else nn.LayerNorm
        self.norm1, self.norm2 = norm(WIDTH), norm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=not llama)
        self.out = nn.Linear(WIDTH, WIDTH, bias=not llama)
        self.up = nn.Linear(WIDTH, (4 if llama else 2) * WIDTH, bias=not llama)
        self.down = nn.Linear(2 * WIDTH, WIDTH, bias=not llama)
        self.llama, self.dropout = llama, dropout

    def attention(self, x):
        batch, length, _ = x.shape
        qkv = self.qkv(x).view(batch, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(*qkv.unbind(0), is_causal=True)
        return self.out(y.transpose(1, 2).reshape(batch, length, WIDTH))

    def mlp(self, x):
        up = self.up(x)
        if self.llama:
            gate, up = up.chunk(2, -1)
            return self.down(F.silu(gate) * up)
        return self.down(F.gelu(up))

    def forward(self, x):
        x = x + F.dropout(self.attention(self.norm1(x)), self.dropout, self.training)
        return x + self.mlp(self.norm2(x))


class Transformer(nn.Module):
    """A language model; returns the loss when it gets targets, else logits."""

    def __init__(self, llama=False, layers=1, dropout=0.0, checkpointed=False, tied=False):
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.blocks = nn.ModuleList([Block(llama, dropout) for _ in range(layers)])
        self.norm = nn.RMSNorm(WIDTH) if llama else nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, WORDS, bias=False)
        if tied:
            self.head.weight = self.embed.weight
        self.checkpointed = checkpointed

    def forward(self, words, targets=None):
        x = self.embed(words)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.checkpointed else block(x)
        logits = self.head(self.norm(x))
        if targets is None:
            return logits
        return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


class ConvNet(nn.Module):
    """Convolutions with BatchNorm, which updates its statistics in place."""

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.conv2, self.gn = nn.Conv2d(8, 8, 3, padding=1), nn.GroupNorm(2, 8)
        self.head = nn.Linear(8, 10)

    def forward(self, x, targets=None):
        y = F.relu(self.bn1(self.conv1(x)))
        y = y + F.silu(self.gn(self.conv2(y)))
        logits = self.head(y.mean((2, 3)))
        return logits if targets is None else F.cross_entropy(logits, targets)


def words(batch=2, length=LENGTH):
    """Inputs and targets of a language model."""
    generator = torch.Generator().manual_seed(1)
    draw = torch.randint(0, WORDS, (2, batch, length), generator=generator)
    return draw[0], draw[1]


def images(batch=2):
    """Inputs and targets of ConvNet."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(batch, 3, 8, 8, generator=generator)
    return x, torch.randint(0, 10, (batch,), generator=generator)
