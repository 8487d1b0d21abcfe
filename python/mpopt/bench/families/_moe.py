"""A mixture-of-experts language model whose experts have a fixed capacity (static shapes)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from ._recipe import Recipe, Size, call, next_token_loss, token_batch, widen

# (vocabulary, width, expert width, layers, heads, experts, batch, length)
_SIZES = {
    "large": (32000, 1024, 2048, 4, 16, 8, 4, 1024),
    "full": (16384, 512, 1024, 4, 8, 8, 4, 128),
    "quick": (2048, 256, 512, 2, 4, 4, 4, 64),
    "tiny": (128, 32, 64, 1, 2, 4, 2, 16),
}
_CHOICES = 2  # experts per token
_SLACK = 1.25  # capacity of an expert relative to an even spread


class Experts(nn.Module):
    """Top-2 routed SwiGLU experts; tokens beyond an expert's capacity are dropped.

    Maps [tokens, width] to [tokens, width] in the input's dtype.
    """

    def __init__(self, width: int, hidden: int, experts: int) -> None:
        super().__init__()
        self.experts = experts
        self.router = nn.Linear(width, experts, bias=False)
        self.w13 = nn.Parameter(torch.randn(experts, width, 2 * hidden) * width**-0.5)
        self.w2 = nn.Parameter(torch.randn(experts, hidden, width) * hidden**-0.5)

    def _route(self, x: torch.Tensor, capacity: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the row of each choice in the experts' table, and its gate (0 if dropped)."""
        gate, expert = widen(self.router(x)).softmax(-1).topk(_CHOICES, dim=-1)
        gate = (gate / gate.sum(-1, keepdim=True)).flatten()
        chosen = expert.flatten()
        onehot = F.one_hot(chosen, self.experts)
        slot = ((onehot.cumsum(0) - 1) * onehot).sum(-1)
        keep = slot < capacity
        row = torch.where(keep, chosen * capacity + slot, self.experts * capacity)
        return row, gate * keep

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Send each token through its two experts and add their gated outputs."""
        tokens, width = x.shape
        capacity = int(_CHOICES * tokens / self.experts * _SLACK)
        row, gate = self._route(x, capacity)
        token = torch.arange(tokens, device=x.device).repeat_interleave(_CHOICES)
        table = x.new_zeros(self.experts * capacity + 1, width).index_copy(0, row, x[token])
        up, side = torch.bmm(table[:-1].view(self.experts, capacity, width), self.w13).chunk(2, -1)
        y = torch.bmm(F.silu(up) * side, self.w2).view(-1, width)
        y = y[row.clamp(max=self.experts * capacity - 1)] * gate.unsqueeze(-1)
        return torch.zeros(tokens, width, dtype=y.dtype, device=y.device).index_add(0, token, y)


class Block(nn.Module):
    """Pre-norm causal attention, then pre-norm experts, both residual: [b, t, width] -> same."""

    def __init__(self, width: int, hidden: int, heads: int, experts: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.proj = nn.Linear(width, width, bias=False)
        self.experts = Experts(width, hidden, experts)

    def _attend(self, x: torch.Tensor) -> torch.Tensor:
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        projected: torch.Tensor = self.proj(y.transpose(1, 2).reshape(b, t, d))
        return projected

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Apply attention and experts."""
        x = x + self._attend(self.norm1(x))
        mixed: torch.Tensor = self.experts(self.norm2(x).flatten(0, 1))
        return x + mixed.view_as(x)


class Model(nn.Module):
    """Embedding, blocks, norm, head: int64 ids [b, t] -> logits [b, t, vocabulary]."""

    def __init__(
        self, vocab: int, width: int, hidden: int, layers: int, heads: int, experts: int
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.blocks = nn.Sequential(*(Block(width, hidden, heads, experts) for _ in range(layers)))
        self.norm = nn.RMSNorm(width)
        self.head = nn.Linear(width, vocab, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the logits of each token."""
        logits: torch.Tensor = self.head(self.norm(self.blocks(self.embed(ids))))
        return logits


def moe(size: Size) -> Recipe:
    """Decoder with RMSNorm and top-2 routed SwiGLU experts run as batched matmuls."""
    vocab, width, hidden, layers, heads, experts, batch, length = _SIZES[size]
    model = Model(vocab, width, hidden, layers, heads, experts)
    return Recipe(model, token_batch(vocab, batch, length), next_token_loss, call)
