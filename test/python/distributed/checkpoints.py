"""Round trips through torch.distributed.checkpoint."""

from __future__ import annotations

import mpopt
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from mpopt import optim
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

from distributed.common import (
    FIGURES,
    assert_all_ranks_have,
    assert_same,
    batch,
    local,
    make,
    train,
    whole,
)


def fsdp_training(seed, rule="megatron"):
    model = make(seed)
    fully_shard(model.first)
    fully_shard(model)
    optimizer = optim.AdamW(model.parameters(), lr=0.01, amsgrad=True)
    scaler = mpopt.GradScaler("cpu", **FIGURES, rule=rule)
    return model, optimizer, scaler


def ddp_training(seed):
    model = DistributedDataParallel(make(seed))
    optimizer = optim.AdamW(model.parameters(), lr=0.01, amsgrad=True)
    return model, optimizer, mpopt.GradScaler("cpu", **FIGURES, rule="megatron")


TRAININGS = {"fsdp": fsdp_training, "ddp": ddp_training}


def overflow(model, optimizer, scaler):
    """One step that is skipped, so that the scaler has something to remember."""
    scaler.scale(model(batch(0, dist.get_rank()))).backward()
    for param in model.parameters():
        if local(param.grad).numel():
            local(param.grad).fill_(float("inf"))
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()


def save(model, optimizer, scaler, folder):
    model_state, optimizer_state = get_state_dict(model, optimizer)
    parts = {"model": model_state, "optimizer": optimizer_state, "scaler": scaler}
    dcp.save(parts, checkpoint_id=folder)


def load(model, optimizer, scaler, folder):
    model_state, optimizer_state = get_state_dict(model, optimizer)
    parts = {"model": model_state, "optimizer": optimizer_state, "scaler": scaler}
    dcp.load(parts, checkpoint_id=folder)
    set_state_dict(
        model,
        optimizer,
        model_state_dict=parts["model"],
        optim_state_dict=parts["optimizer"],
    )


def everything(model, optimizer, scaler):
    """Weights and states whole, and the scaler's state."""
    names = {id(p): n for n, p in model.named_parameters()}
    found = {f"weight {names[id(p)]}": whole(p) for p in model.parameters()}
    for param, state in optimizer.state.items():
        found.update({f"{key} {names[id(param)]}": whole(v) for key, v in state.items()})
    return found, scaler.state_dict()


def checkpoint_round_trip(kind, folder):
    """A run that is loaded in the middle goes on as the one that was not interrupted."""
    parts = TRAININGS[kind](0)
    train(*parts)
    overflow(*parts)
    save(*parts, folder)
    saved = everything(*parts)
    fresh = TRAININGS[kind](1)
    load(*fresh, folder)
    loaded = everything(*fresh)
    assert loaded[1] == saved[1]
    assert loaded[1]["_hysteresis_left"] == 1, "one of two overflows"
    assert_same(loaded[0], saved[0])
    assert len(saved[0]) == 7 * 5
    assert train(*fresh) == train(*parts)
    overflow(*parts)
    overflow(*fresh)
    assert fresh[2].get_scale() == parts[2].get_scale() == 4.0
    assert_same(everything(*fresh)[0], everything(*parts)[0])


def save_for_others(folder):
    parts = fsdp_training(0)
    train(*parts)
    overflow(*parts)
    save(*parts, folder)
    found = everything(*parts)
    if dist.get_rank() == 0:
        torch.save(found, f"{folder}/whole.pt")


def load_from_others(folder):
    """On another number of ranks than saved."""
    fresh = fsdp_training(1)
    load(*fresh, folder)
    found, scaler = everything(*fresh)
    expected, expected_scaler = torch.load(f"{folder}/whole.pt")
    assert scaler == expected_scaler
    assert_same(found, expected)
    losses = train(*fresh)
    assert_all_ranks_have(losses)


def state_of_torch_is_taken(folder):
    """A checkpoint that PyTorch's optimizer saved, and the other way round."""
    for saves, loads in ((torch.optim.AdamW, optim.AdamW), (optim.AdamW, torch.optim.AdamW)):
        parts = []
        for seed, optimizer_class in ((0, saves), (1, loads)):
            model, _, scaler = fsdp_training(seed)
            parts.append((model, optimizer_class(model.parameters(), lr=0.01), scaler))
        train(*parts[0])
        where = f"{folder}/{saves.__module__}"
        save(*parts[0], where)
        load(*parts[1], where)
        assert_same(everything(*parts[1])[0], everything(*parts[0])[0])
        first, second = (train(*each) for each in parts)
        torch.testing.assert_close(first, second, rtol=1e-6, atol=0.0)
