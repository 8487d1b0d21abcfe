"""Settings that hold for all Python tests."""

from __future__ import annotations

import os
import tempfile

# Before torch is imported: it reads these once. A fallback is a failure of the test.
os.environ["MPOPT_STRICT"] = "1"
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", tempfile.mkdtemp(prefix="mpopt-test-"))
for _name in ("MPOPT_CONFIG", "MPOPT_DUMP", "MPOPT_DISABLE", "MPOPT_LOGS", "MPOPT_NUMERICS"):
    os.environ.pop(_name, None)

import pytest  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(min(2, os.cpu_count() or 1))


@pytest.fixture(autouse=True)
def _fresh_dynamo():
    """Each test compiles for itself, from a fixed seed."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    yield
    torch._dynamo.reset()
