"""The range of PyTorch's releases: declared, documented and checked alike."""

from __future__ import annotations

import logging
import re
import subprocess
import sys
from pathlib import Path

import mpopt
import pytest
import torch
from mpopt import torch_release

ROOT = Path(__file__).resolve().parents[2]


def test_range_is_the_one_of_the_package_and_the_documents():
    project = (ROOT / "pyproject.toml").read_text()
    assert f'dependencies = ["{torch_release.requirement()}"]' in project
    pinned = (ROOT / "tools/dev/requirements-torch.txt").read_text()
    assert re.search(r"^torch==(\d+)\.(\d+)", pinned, re.M).groups() == tuple(
        map(str, torch_release.LAST)
    )
    texts = ["README.md", "tools/dev/requirements-torch.txt", "python/mpopt/_torch.py"]
    for name in [*texts, "dialect/Import/PT2Schema.cpp"]:
        assert torch_release.known() in (ROOT / name).read_text(), name


@pytest.mark.parametrize("version", ["2.11.0", "2.12.1+cpu", "2.15.0", torch.__version__])
def test_known_releases_are_silent(version, caplog):
    with caplog.at_level(logging.WARNING):
        torch_release.check(version)
    assert not caplog.records


@pytest.mark.parametrize("version", ["2.10.0", "2.9.1+cu128", "1.13.1"])
def test_older_release_is_one_error_that_says_what_to_install(version):
    with pytest.raises(mpopt.MpoptError, match=r"2\.11 to 2\.15.*pip install") as caught:
        torch_release.check(version)
    assert version in str(caught.value)


@pytest.mark.parametrize("version", ["2.16.0", "2.16.0a0+git1234567", "3.0.0"])
def test_newer_release_is_a_warning(version, caplog):
    with caplog.at_level(logging.WARNING):
        torch_release.check(version)
    (record,) = caplog.records
    assert version in record.getMessage() and torch_release.known() in record.getMessage()


def test_unreadable_version_is_an_error():
    with pytest.raises(mpopt.MpoptError, match="'nightly'"):
        torch_release.check("nightly")


def test_backend_says_so_before_any_import_fails():
    program = (
        "import sys, torch\n"
        "torch.__version__ = '2.10.0'\n"
        "sys.modules['torch._inductor.custom_graph_pass'] = None\n"
        "import mpopt.backend\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1
    assert "MpoptError: mpopt works with PyTorch 2.11 to 2.15" in done.stderr
    assert "ImportError" not in done.stderr
