"""Activation checkpointing by TrainStep."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from models import Block, Transformer, words
from stepping import Events, assert_equal, batch, lm_loss, make, step_of
from torch import nn


def saved_bytes(model):
    sizes = []

    def pack(tensor):
        sizes.append(tensor.nbytes)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        model(*words())
    return sum(sizes)


CHOICES = {
    "full": "full",
    "true": True,
    "names": ["blocks.0", "blocks.1"],
    "classes": [Block],
    "class": Block,
    "function": lambda name, module: isinstance(module, Block),
}


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
def test_checkpointing_keeps_bits_and_saves_less(choice):
    models = []
    for checkpoint in (None, choice):
        torch.manual_seed(0)
        model = Transformer(layers=2, dropout=0.3)
        keys = list(model.state_dict())
        with step_of(model, loss_fn=lm_loss, checkpoint=checkpoint) as step:
            torch.manual_seed(1)
            losses = [step(words()).item() for _ in range(3)]
            assert list(model.state_dict()) == keys
            models.append((model, losses, saved_bytes(model)))
    (plain, losses, all_saved), (checkpointed, others, saved) = models
    assert losses == others and len(set(losses)) == 3
    assert_equal(plain, checkpointed)
    assert saved < 0.6 * all_saved
    assert saved_bytes(checkpointed) == all_saved, "closed"
    assert type(checkpointed.blocks[0]) is Block


class Blocks(nn.Module):
    def __init__(self):
        super().__init__()
        pair = (nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 32)) for _ in range(2))
        self.blocks, self.last = nn.ModuleList(pair), nn.Linear(32, 16)

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return self.last(x)


@pytest.mark.slow
def test_compiled_checkpointing_keeps_bits_and_finds_the_operator():
    results = []
    for checkpoint in (None, "full"):
        torch._dynamo.reset()
        torch.manual_seed(0)
        model, heard = Blocks(), Events()
        kwargs = {"compile": True, "dtype": torch.bfloat16, "checkpoint": checkpoint}
        step = step_of(model, callbacks=[heard], find_bad_op=True, **kwargs)
        losses = [step(batch(i)).item() for i in range(3)]
        weights = [p.detach().clone() for p in model.parameters()]
        results.append((losses, weights, step._share.share()))
        x, y = batch(4)
        step((torch.full_like(x, 3e38), y))  # gradients are in half, the search is eager
        assert (heard.events[0].bad_op.module, heard.events[0].bad_op.op) == (
            "blocks.0.0",
            "aten.addmm.default",
        )
    (losses, weights, share), (others, same, again) = results
    assert losses == others and len(set(losses)) == 3
    assert all(map(torch.equal, weights, same))
    assert share == again == 7 / 9, "the two sums with the input are in fp32"


def test_copies_of_a_checkpointed_model_are_plain():
    model = Transformer(layers=2)
    step = step_of(model, loss_fn=lm_loss, checkpoint="full")
    assert isinstance(model.blocks[0], Block) and type(model.blocks[0]) is not Block
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert type(other.blocks[0]) is Block
        with torch.no_grad():
            other.blocks[0].up.weight.zero_()
        assert model.blocks[0].up.weight.any()
        assert not torch.equal(other(words()[0]), model(words()[0]))
    with pytest.raises(ValueError, match="checkpointed already; close the TrainStep"):
        step_of(model, loss_fn=lm_loss, checkpoint="full")
    step.close()
    step_of(model, loss_fn=lm_loss, checkpoint="full").close()


def test_nested_containers_are_opened():
    model = nn.Module()
    model.outer = nn.ModuleList([nn.ModuleList([nn.Linear(4, 4)]), nn.Linear(4, 4)])
    step = step_of(model, checkpoint="full")
    assert [m.in_features for m in step._checkpointing.modules] == [4, 4]
    pairs = nn.Sequential(nn.Sequential(nn.Linear(4, 4), nn.ReLU()), nn.Linear(4, 4))
    assert len(step_of(pairs, checkpoint="full")._checkpointing.modules) == 2


@pytest.mark.parametrize(
    ("choice", "error", "text"),
    [
        ("all", ValueError, "not 'all'"),
        ("full", ValueError, "the model has none; list the names"),
        (["frist"], ValueError, "no module 'frist'; did you mean 'first'"),
        ([nn.Conv2d], ValueError, "no module of class Conv2d"),
        ([3], TypeError, "names and classes of modules, not 3"),
        (lambda name, module: False, ValueError, "chooses no module"),
    ],
)
def test_bad_checkpoint_choices_are_named(choice, error, text):
    model = make()
    with pytest.raises(error, match=text):
        step_of(model, checkpoint=choice)
    assert type(model.first) is nn.Linear


def test_what_cannot_be_checkpointed_is_named():
    model = Transformer(layers=1)
    with pytest.raises(ValueError, match="'blocks': a ModuleList is never called"):
        step_of(model, loss_fn=lm_loss, checkpoint=["blocks"])
    model.head.forward = model.head.forward
    with pytest.raises(ValueError, match="'head': something has put a forward"):
        step_of(model, loss_fn=lm_loss, checkpoint=["blocks.0", "head"])
    assert type(model.blocks[0]) is Block, "all or nothing"
