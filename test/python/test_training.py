"""Two thousand steps of a small GPT-2 in fp16, with overflows put in."""

from __future__ import annotations

import io
import pydoc_data.topics
import random
import statistics

import mpopt
import pytest
import torch
from mpopt import optim
from transformers import GPT2Config, GPT2LMHeadModel

STEPS, BATCH, LENGTH = 2000, 8, 32
BAD = frozenset(random.Random(3).sample(range(STEPS), 40))
FIGURES = {"init_scale": 2.0**16, "growth_interval": 50}

pytestmark = pytest.mark.slow


def text():
    """Bytes of the help texts that Python itself carries."""
    topics = pydoc_data.topics.topics
    return torch.tensor(list("".join(topics[k] for k in sorted(topics)).encode()[:200_000]))


class Run:
    """A model in training; `ours` chooses backend, optimizer and scaler."""

    def __init__(self, ours, dtype=torch.float16):
        torch._dynamo.reset()
        torch.manual_seed(0)
        sizes = {"n_layer": 2, "n_embd": 64, "n_head": 2, "vocab_size": 256, "n_positions": LENGTH}
        dropouts = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
        self.model = GPT2LMHeadModel(GPT2Config(**sizes, **dropouts, tie_word_embeddings=False))
        if ours:
            self.optimizer = optim.AdamW(self.model.parameters(), lr=1e-3)
            self.optimizer.half_gradients = True
        else:
            self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3, fused=True)
        scaler = mpopt.GradScaler if ours else torch.amp.GradScaler
        self.scaler = scaler("cpu", **FIGURES, enabled=dtype is not None)
        self.step = torch.compile(self.model, backend="mpopt" if ours else "inductor")
        self.dtype = dtype
        self.text = text()
        self.losses, self.scales = [], []

    def train(self, first, last):
        for step in range(first, last):
            starts = torch.randint(
                len(self.text) - LENGTH, (BATCH,), generator=torch.Generator().manual_seed(step)
            )
            batch = torch.stack([self.text[s : s + LENGTH] for s in starts])
            enabled = self.dtype is not None
            with torch.autocast("cpu", dtype=self.dtype or torch.bfloat16, enabled=enabled):
                loss = self.step(batch, labels=batch).loss
            self.scaler.scale(loss).backward()
            if step in BAD and enabled:
                self.model.transformer.ln_f.weight.grad[step % 64] = float("inf")
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.optimizer.zero_grad()
            self.losses.append(loss.item())
            self.scales.append(self.scaler.get_scale())
        return self

    def save(self):
        buffer = io.BytesIO()
        parts = (self.model, self.optimizer, self.scaler)
        torch.save([part.state_dict() for part in parts], buffer)
        return buffer.getvalue()

    def load(self, data):
        states = torch.load(io.BytesIO(data), weights_only=True)
        for part, state in zip((self.model, self.optimizer, self.scaler), states, strict=True):
            part.load_state_dict(state)
        return self

    def weights(self):
        return [p.detach().clone() for p in self.model.parameters()]


@pytest.fixture(scope="module")
def whole():
    mpopt.reset()
    run = Run(ours=True).train(0, STEPS)
    assert mpopt.counters["half_copies_cast_again"] == 0
    return run


def test_scale_follows_torchs(whole):
    stock = Run(ours=False).train(0, STEPS)
    assert whole.scales == stock.scales
    assert len(set(whole.scales)) > 3
    assert whole.scaler.skipped_steps == whole.optimizer.skipped_steps >= len(BAD)
    assert whole.scaler.applied_steps + whole.scaler.skipped_steps == STEPS
    last = [statistics.fmean(run.losses[-200:]) for run in (whole, stock)]
    assert abs(last[0] - last[1]) < 0.02 * last[1]


def test_loss_is_that_of_fp32(whole):
    single = Run(ours=True, dtype=None).train(0, STEPS)
    last = [statistics.fmean(run.losses[-200:]) for run in (whole, single)]
    spread = statistics.stdev(single.losses[-200:]) / 200**0.5
    # 40 steps were skipped; the rest of the difference is noise.
    assert abs(last[0] - last[1]) < 0.02 * last[1] + 3 * spread
    assert last[0] < 0.8 * statistics.fmean(whole.losses[:20])


def test_resumed_run_is_the_uninterrupted_one(whole):
    half = STEPS // 2
    data = Run(ours=True).train(0, half).save()
    resumed = Run(ours=True).load(data).train(half, STEPS)
    assert resumed.losses == whole.losses[half:]
    assert resumed.scales == whole.scales[half:]
    assert all(map(torch.equal, resumed.weights(), whole.weights()))
