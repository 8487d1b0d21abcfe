"""An LSTM language model with an unrolled cell of our own.

`nn.LSTM` gives no graph to compile: Dynamo breaks at it unless
`torch._dynamo.config.allow_rnn` is set, and then Inductor (2.15) cannot lower
`aten.mkldnn_rnn_layer`.  The layer below computes the same formula, keeps
`nn.LSTM`'s parameter names and shapes, and unrolls the time loop.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from ._recipe import Recipe, Size, call, next_token_loss, token_batch

# (vocabulary, width, layers, batch, length)
_SIZES = {
    "large": (10000, 1024, 2, 128, 24),
    "full": (10000, 768, 2, 20, 24),
    "quick": (2048, 256, 1, 8, 8),
    "tiny": (128, 32, 1, 2, 4),
}


class LSTMLayer(nn.Module):
    """One layer from a zero state: [batch, time, width] -> hidden states of the same shape."""

    def __init__(self, width: int) -> None:
        super().__init__()
        bound = width**-0.5
        self.weight_ih = nn.Parameter(torch.empty(4 * width, width).uniform_(-bound, bound))
        self.weight_hh = nn.Parameter(torch.empty(4 * width, width).uniform_(-bound, bound))
        self.bias_ih = nn.Parameter(torch.empty(4 * width).uniform_(-bound, bound))
        self.bias_hh = nn.Parameter(torch.empty(4 * width).uniform_(-bound, bound))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run the layer over time; the input projection is one matmul for all steps."""
        projected = F.linear(x, self.weight_ih, self.bias_ih)
        state = projected.new_zeros(x.shape[0], x.shape[2])
        cell = state
        states = []
        for step in projected.unbind(1):
            gates = step + F.linear(state, self.weight_hh, self.bias_hh)
            enter, forget, update, leave = gates.chunk(4, dim=1)
            cell = forget.sigmoid() * cell + enter.sigmoid() * update.tanh()
            state = leave.sigmoid() * cell.tanh()
            states.append(state)
        return torch.stack(states, dim=1)


class Model(nn.Module):
    """Embedding, LSTM layers, head: int64 ids [b, t] -> logits [b, t, vocabulary]."""

    def __init__(self, vocab: int, width: int, layers: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.layers = nn.Sequential(*(LSTMLayer(width) for _ in range(layers)))
        self.head = nn.Linear(width, vocab)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the logits of each token."""
        logits: torch.Tensor = self.head(self.layers(self.embed(ids)))
        return logits


def lstm(size: Size) -> Recipe:
    """Recurrent language model, unrolled over time."""
    vocab, width, layers, batch, length = _SIZES[size]
    model = Model(vocab, width, layers)
    return Recipe(model, token_batch(vocab, batch, length), next_token_loss, call)
