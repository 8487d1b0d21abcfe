"""GPT-2, Llama and BERT as transformers builds them, with random weights and SDPA attention."""

from __future__ import annotations

import torch
from torch import nn

from .._errors import require
from ._recipe import Recipe, Size, token_batch

# (vocabulary, width, layers, heads, batch, length)
_GPT2 = {
    "large": (50257, 768, 12, 12, 8, 1024),
    "full": (16384, 768, 6, 12, 4, 256),
    "quick": (2048, 256, 2, 4, 4, 64),
    "tiny": (128, 32, 1, 2, 2, 16),
}
_LLAMA = {
    "large": (32000, 1024, 12, 16, 8, 1024),
    "full": (16384, 512, 4, 8, 4, 256),
    "quick": (2048, 256, 2, 4, 4, 64),
    "tiny": (128, 32, 1, 2, 2, 16),
}
_BERT = {
    "large": (30522, 768, 12, 12, 16, 512),
    "full": (16384, 768, 4, 12, 8, 128),
    "quick": (2048, 256, 2, 4, 4, 64),
    "tiny": (128, 32, 1, 2, 2, 16),
}


def _causal_loss(model: nn.Module, ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    loss: torch.Tensor = model(input_ids=ids, labels=labels, use_cache=False).loss
    return loss


def _causal_logits(model: nn.Module, ids: torch.Tensor) -> torch.Tensor:
    logits: torch.Tensor = model(input_ids=ids, use_cache=False).logits
    return logits


def _masked_loss(model: nn.Module, ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    loss: torch.Tensor = model(input_ids=ids, labels=labels).loss
    return loss


def _masked_logits(model: nn.Module, ids: torch.Tensor) -> torch.Tensor:
    logits: torch.Tensor = model(input_ids=ids).logits
    return logits


def gpt2(size: Size) -> Recipe:
    """Decoder with LayerNorm, GELU, learned positions and a tied head."""
    hf = require("transformers", "family 'gpt2'")
    vocab, width, layers, heads, batch, length = _GPT2[size]
    config = hf.GPT2Config(
        vocab_size=vocab,
        n_positions=max(length, 64),
        n_embd=width,
        n_layer=layers,
        n_head=heads,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        attn_implementation="sdpa",
        bos_token_id=0,
        eos_token_id=0,
    )
    model = hf.GPT2LMHeadModel(config)
    model.loss_type = "ForCausalLM"  # unset, transformers warns at each call and breaks the graph
    return Recipe(model, token_batch(vocab, batch, length), _causal_loss, _causal_logits)


def llama(size: Size) -> Recipe:
    """Decoder with RMSNorm, rotary positions, grouped-query attention and SwiGLU."""
    hf = require("transformers", "family 'llama'")
    vocab, width, layers, heads, batch, length = _LLAMA[size]
    config = hf.LlamaConfig(
        vocab_size=vocab,
        hidden_size=width,
        intermediate_size=width * 11 // 4,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads // 2,
        max_position_embeddings=max(length, 64),
        attn_implementation="sdpa",
    )
    model = hf.LlamaForCausalLM(config)
    return Recipe(model, token_batch(vocab, batch, length), _causal_loss, _causal_logits)


def bert(size: Size) -> Recipe:
    """Encoder with post-norm blocks and a masked-token head."""
    hf = require("transformers", "family 'bert'")
    vocab, width, layers, heads, batch, length = _BERT[size]
    config = hf.BertConfig(
        vocab_size=vocab,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        max_position_embeddings=max(length, 64),
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        attn_implementation="sdpa",
    )
    model = hf.BertForMaskedLM(config)
    return Recipe(model, token_batch(vocab, batch, length), _masked_loss, _masked_logits)
