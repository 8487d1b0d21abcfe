"""DDP and FSDP2 with the backend, the scaler and the update, in processes on this machine."""

from __future__ import annotations

import pytest
from ranks import Ranks


@pytest.fixture(scope="module")
def two():
    ranks = Ranks(2)
    yield ranks
    ranks.stop()


@pytest.mark.parametrize("clip", [0.0, 0.05])
@pytest.mark.parametrize("kind", ["ddp", "fsdp"])
def test_training_is_that_of_one_process(two, kind, clip):
    two.run("trains_as_one_process", kind, "adamw", clip)
