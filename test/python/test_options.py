"""Options: sources, their order, validation, digests."""

from __future__ import annotations

import logging
import os
import subprocess
import sys

import pytest
from mpopt import log, native
from mpopt.errors import OptionError
from mpopt.options import OUTLINE, PASSES, PLACE_STORES, Options, resolve


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch):
    monkeypatch.delenv("MPOPT_STRICT", raising=False)


def test_defaults():
    assert resolve() == Options()
    assert resolve().pass_pipeline() == "mp-default{numerics=precise}"


def test_later_sources_win(tmp_path, monkeypatch):
    file = tmp_path / "mpopt.toml"
    file.write_text('numerics = "strict"\ntarget = "cuda"\nbisect_limit = 1\n')
    monkeypatch.setenv("MPOPT_CONFIG", str(file))
    assert resolve() == Options(numerics="strict", target="cuda", bisect_limit=1)
    monkeypatch.setenv("MPOPT_TARGET", "cpu")
    monkeypatch.setenv("MPOPT_BISECT_LIMIT", "2")
    assert resolve() == Options(numerics="strict", target="cpu", bisect_limit=2)
    assert resolve({"bisect_limit": 3}).bisect_limit == 3
    assert resolve({"bisect_limit": None}).bisect_limit is None


def test_texts_of_the_environment(monkeypatch):
    monkeypatch.setenv("MPOPT_STRICT", "1")
    monkeypatch.setenv("MPOPT_DISABLE", "off")
    monkeypatch.setenv("MPOPT_DISABLE_PASSES", "mp-raise, mp-lower")
    options = resolve()
    assert options.strict is True
    assert options.disable is False
    assert options.disable_passes == ("mp-raise", "mp-lower")
    assert options.pass_pipeline() == "mp-default{numerics=precise disable=mp-raise,mp-lower}"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"numeric": "strict"}, "unknown option 'numeric'; did you mean 'numerics'"),
        ({"zzz": 1}, "unknown option 'zzz'; known: bisect_limit"),
        ({"numerics": "fast"}, "numerics must be one of strict, precise"),
        ({"numerics": "relaxd"}, "must be one of strict, precise, relaxed, not 'relaxd'"),
        ({"numerics": "relaxed", "epsilon": -0.1}, "epsilon must be a number of at least 0"),
        ({"numerics": "relaxed", "epsilon": float("nan")}, "epsilon must be a number"),
        ({"numerics": "relaxed", "epsilon": True}, "epsilon must be a number"),
        ({"epsilon": 0.2}, "epsilon needs numerics='relaxed', and it is 'precise'"),
        ({"target": "tpu"}, "target must be one of auto, cpu, cuda"),
        ({"cost_model": "sm_91"}, "cost_model: no cost model 'sm_91' .* did you mean 'sm_90'"),
        ({"cost_model": "no/model.json"}, "no/model.json: cannot read: No such file"),
        ({"cost_model": 3}, "cost_model must be a name or a path, not 3"),
        ({"strict": 1}, "strict must be true or false, not 1"),
        ({"bisect_limit": -1}, "bisect_limit must be a count"),
        ({"bisect_limit": True}, "bisect_limit must be a count"),
        ({"disable_passes": "mp-raise"}, "disable_passes must be a list"),
        ({"disable_passes": ["mp-rase"]}, "unknown pass 'mp-rase'; did you mean 'mp-raise'"),
        ({"inductor": 3}, "inductor must be a dictionary"),
        ({"dump": 3}, "dump must be a path"),
        ({"rewrite_log": 3}, "rewrite_log must be a path"),
        ({"pipeline": 3}, "pipeline must be a text"),
        ({"heal": 1}, "heal must be true or false, not 1"),
        ({"heal_after": 0}, "heal_after must be a count of calls, 1 or more, not 0"),
        ({"heal_depth": -1}, "heal_depth must be a number of modules, not -1"),
    ],
)
def test_bad_options(given, message):
    with pytest.raises(OptionError, match=message):
        resolve(given)


def test_every_pass_can_be_named():
    names = [*_names("mp-default{precision=bf16}"), *_names("mp-partitioned")]
    assert (*dict.fromkeys(names), PLACE_STORES, OUTLINE) == PASSES


def _names(pipeline):
    steps = native.load().pipeline_passes(pipeline)
    return [step.rpartition("(")[2].rstrip(")").partition("{")[0] for step in steps]


def test_variables_of_the_tool_are_no_options(monkeypatch):
    monkeypatch.setenv("MPOPT_TOOL", "mpopt")
    assert resolve() == Options()


def test_relaxed_comes_after_partitioning(monkeypatch):
    assert resolve().partition_pipeline() == ""
    options = resolve(numerics="relaxed", epsilon=0, disable_passes=["mp-raise"])
    assert options.pass_pipeline() == "mp-default{numerics=precise disable=mp-raise}"
    wanted = "mp-partitioned{numerics=relaxed epsilon=0.0 disable=mp-raise}"
    assert options.partition_pipeline() == wanted
    assert resolve(numerics="relaxed", pipeline="").partition_pipeline() == ""
    monkeypatch.setenv("MPOPT_EPSILON", "0.25")
    assert resolve(numerics="relaxed").epsilon == 0.25
    assert resolve().partition_pipeline() == ""


def test_bad_environment(monkeypatch):
    monkeypatch.setenv("MPOPT_STRICT", "maybe")
    with pytest.raises(OptionError, match="MPOPT_STRICT: strict must be true or false"):
        resolve()
    monkeypatch.setenv("MPOPT_STRICT", "1")
    monkeypatch.setenv("MPOPT_NUMERIC", "strict")
    with pytest.raises(OptionError, match="MPOPT_NUMERIC; did you mean 'MPOPT_NUMERICS'"):
        resolve()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("numerics = ", "Invalid value"),
        ("color = 1", "unknown option 'color'"),
        (None, "cannot read"),
    ],
)
def test_bad_file(tmp_path, monkeypatch, text, message):
    file = tmp_path / "mpopt.toml"
    if text is not None:
        file.write_text(text)
    monkeypatch.setenv("MPOPT_CONFIG", str(file))
    with pytest.raises(OptionError, match=message):
        resolve()


def test_digest_covers_what_decides_about_code():
    base = Options()
    changed = [
        Options(numerics="strict"),
        Options(numerics="relaxed"),
        Options(numerics="relaxed", epsilon=0.2),
        Options(target="cpu"),
        Options(cost_model="sm_80"),
        Options(pipeline=""),
        Options(disable_passes=("mp-raise",)),
        Options(bisect_limit=1),
        Options(inductor={"max_autotune": True}),
    ]
    assert len({o.digest() for o in [base, *changed]}) == len(changed) + 1
    assert Options(dump="somewhere").digest() == base.digest()
    assert Options(rewrite_log="somewhere").digest() == base.digest()


def test_logs():
    log.configure("passes=debug,dump")
    assert logging.getLogger("mpopt.passes").level == logging.DEBUG
    assert logging.getLogger("mpopt.dump").level == logging.INFO
    log.configure("")
    assert logging.getLogger("mpopt.passes").level == logging.NOTSET
    with pytest.raises(OptionError, match="unknown area 'pases'; did you mean 'passes'"):
        log.configure("pases")
    with pytest.raises(OptionError, match="unknown level 'loud' of area 'dump'"):
        log.configure("dump=loud")


def test_import_is_cheap():
    code = "import sys, mpopt; print('torch' in sys.modules, 'mpopt._mpopt' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert result.stdout.split() == ["False", "False"]
