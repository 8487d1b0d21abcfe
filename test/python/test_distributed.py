"""DDP and FSDP2 with the backend, the scaler and the update, in processes on this machine."""

from __future__ import annotations

import pytest
from distributed.ranks import Ranks


@pytest.fixture(scope="module")
def two():
    ranks = Ranks(2)
    yield ranks
    ranks.stop()


@pytest.fixture(scope="module")
def four():
    ranks = Ranks(4)
    yield ranks
    ranks.stop()


@pytest.mark.parametrize("clip", [0.0, 0.05])
@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_training_is_that_of_one_process(two, kind, clip):
    two.run("training.trains_as_one_process", kind, "adamw", clip)


@pytest.mark.parametrize("clip", [0.0, 0.05])
def test_tensor_parallel_training_is_that_of_one_process(two, clip):
    two.run("training.tensor_parallel", clip)


@pytest.mark.parametrize(
    ("unscales", "whose"), [(False, "ours"), (True, "ours"), (True, "foreach")]
)
def test_sequence_parallel_training_is_that_of_one_process(two, unscales, whose):
    two.run("training.sequence_parallel", unscales, whose)


@pytest.mark.slow
@pytest.mark.parametrize("clip", [0.0, 0.05])
@pytest.mark.parametrize("name", ["adam", "sgd"])
@pytest.mark.parametrize("kind", ["ddp", "fsdp", "hsdp"])
def test_four_ranks_train_as_one_process(four, kind, name, clip):
    four.run("training.trains_as_one_process", kind, name, clip)


@pytest.mark.slow
@pytest.mark.parametrize("clip", [0.0, 0.05])
def test_fsdp_and_tensor_parallel_together(four, clip):
    four.run("training.sharded_and_tensor_parallel", clip)


# ---- the backend


def test_ddp_around_the_compiled_model(two):
    two.run("backend.compiled_with_ddp", False, True)


@pytest.mark.slow
@pytest.mark.parametrize(("is_outside", "half_gradients"), [(False, False), (True, True)])
def test_ddp_and_the_backend(two, is_outside, half_gradients):
    two.run("backend.compiled_with_ddp", is_outside, half_gradients)


@pytest.mark.slow
def test_graph_split_at_the_buckets_of_ddp(two):
    two.run("backend.split_by_ddp")


@pytest.mark.parametrize("kind", ["policy", pytest.param("autocast", marks=pytest.mark.slow)])
def test_compiled_blocks_in_fsdp(two, kind):
    two.run("backend.compiled_in_fsdp", kind)


@pytest.mark.slow
def test_four_ranks_and_the_backend(four):
    for is_outside in (False, True):
        four.run("backend.compiled_with_ddp", is_outside, True)
    for kind in ("autocast", "policy"):
        four.run("backend.compiled_in_fsdp", kind)


@pytest.mark.slow
def test_compiled_tensor_parallel(two):
    two.run("backend.compiled_tensor_parallel")


def test_compiled_in_fsdp1(two):
    two.run("backend.compiled_in_fsdp1")


@pytest.mark.parametrize(
    "case", ["copies_of_pieces_are_refused", "sharded_after_its_copies_were_made"]
)
def test_half_copies_and_fsdp(two, case):
    two.run(f"backend.{case}")


def test_copies_made_before_the_broadcast_of_ddp(two):
    two.run("backend.stale_copies_are_cast_again")


# ---- found-inf


@pytest.mark.parametrize("unscales", [False, True])
@pytest.mark.parametrize("whose", ["ours", "fused", "foreach"])
def test_all_skip_when_one_overflows(two, whose, unscales):
    two.run(
        "agreement.one_rank_overflows", whose, "nan" if whose == "ours" else "inf", unscales, 0.0
    )


def test_all_skip_when_one_overflows_with_clipping(two):
    two.run("agreement.one_rank_overflows", "ours", "inf", False, 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("unscales", [False, True])
@pytest.mark.parametrize("whose", ["ours", "fused", "foreach"])
def test_all_of_four_skip_when_one_overflows(four, whose, unscales):
    four.run("agreement.one_rank_overflows", whose, "inf", unscales, 0.0)
    four.run("agreement.flags_over_two_meshes", whose, unscales)


@pytest.mark.parametrize("whose", ["ours", "fused"])
def test_rank_without_gradients_takes_part(two, whose):
    two.run("agreement.bad_rank_without_other_gradients", whose)


@pytest.mark.parametrize("unscales", [False, True])
@pytest.mark.parametrize("whose", ["ours", "fused"])
def test_process_group_shares_flags(two, whose, unscales):
    for shares in (True, False):
        two.run("agreement.group_shares_flags", whose, unscales, shares)


@pytest.mark.parametrize("unscales", [False, True])
def test_all_skip_when_pytorchs_update_runs_instead(two, unscales):
    two.run("agreement.fallback_agrees", unscales)


def test_process_group_of_the_mesh_costs_nothing(two):
    two.run("agreement.group_and_pieces_are_one_reduction")


# ---- the update of pieces


@pytest.mark.parametrize("scales", [False, True])
@pytest.mark.parametrize("name", ["adam", "adamw", "sgd"])
def test_update_of_pieces_has_the_bits_of_torch(two, name, scales):
    two.run("updates.update_is_torchs", name, scales)


@pytest.mark.parametrize("name", ["adam", "adamw", "sgd", "lion"])
def test_update_of_ragged_pieces_has_the_bits_of_each(two, name):
    two.run("updates.update_is_that_of_pieces", name)


@pytest.mark.parametrize("extra", [False, True])
def test_clip_is_that_of_torch(two, extra):
    two.run("updates.clip_is_torchs", extra)


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", ["updates.norm_over_two_meshes", "updates.replicas_measure_in_one_reduction"]
)
def test_norm_over_meshes_of_four(four, case):
    four.run(case)


@pytest.mark.parametrize(
    "case",
    [
        "updates.update_is_seen",
        "updates.first_bad_is_of_this_rank",
        "updates.gradient_placed_otherwise",
        "updates.gradient_on_another_mesh",
        "updates.plain_state_is_refused",
        "updates.copies_are_refused",
    ],
)
def test_pieces(two, case):
    two.run(case)


# ---- checkpoints


@pytest.mark.parametrize("kind", ["fsdp", "ddp"])
def test_checkpoint_goes_on_where_it_was(two, kind, tmp_path):
    two.run("checkpoints.checkpoint_round_trip", kind, str(tmp_path))


def test_checkpoints_of_torchs_optimizer(two, tmp_path):
    two.run("checkpoints.state_of_torch_is_taken", str(tmp_path))


@pytest.mark.slow
def test_checkpoint_of_two_ranks_on_four_and_back(two, four, tmp_path):
    for name, saves, loads in (("up", two, four), ("down", four, two)):
        (tmp_path / name).mkdir()
        saves.run("checkpoints.save_for_others", str(tmp_path / name))
        loads.run("checkpoints.load_from_others", str(tmp_path / name))
