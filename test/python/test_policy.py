"""Policies: where they come from, what they hash to, what the backend does with them."""

from __future__ import annotations

import copy
import hashlib
import json
import logging

import mpopt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mpopt import joint_pass, policy
from mpopt.errors import OptionError
from mpopt.options import resolve
from torch import nn

tomllib = pytest.importorskip("tomllib", reason="Python 3.11 reads TOML")

RULES = 'version = 1\n[[rule]]\nmodule = "up"\nprecision = "fp32"\nwhy = "a test"\n'


@pytest.fixture(autouse=True)
def _no_warnings_yet(monkeypatch):
    monkeypatch.setattr(joint_pass, "_warned_rules", set())
    monkeypatch.delenv("MPOPT_POLICY", raising=False)


def written(tmp_path, text, name="run.toml"):
    file = tmp_path / name
    file.write_text(text)
    return file


# --- the option ----------------------------------------------------------------


def test_a_policy_is_a_path_or_a_dictionary_or_none(tmp_path):
    file = written(tmp_path, RULES)
    for path in (file, str(file)):
        options = resolve({"policy": path})
        assert options.policy.text == RULES
        assert options.policy.name == str(file)
        assert options.policy.sha256 == hashlib.sha256(RULES.encode()).hexdigest()
    given = resolve({"policy": tomllib.loads(RULES)}).policy
    assert tomllib.loads(given.text) == tomllib.loads(RULES)
    assert resolve({"policy": None}) == resolve({"policy": ""}) == resolve()
    assert resolve().policy is None


def test_the_environment_and_the_option_file_name_one(tmp_path, monkeypatch):
    file = written(tmp_path, RULES)
    monkeypatch.setenv("MPOPT_POLICY", str(file))
    assert resolve().policy.name == str(file)
    assert resolve({"policy": None}).policy is None
    monkeypatch.delenv("MPOPT_POLICY")
    monkeypatch.setenv("MPOPT_CONFIG", str(written(tmp_path, f'policy = "{file}"\n', "c.toml")))
    assert resolve().policy.name == str(file)


def test_its_level_is_a_default(tmp_path, monkeypatch):
    file = written(tmp_path, 'version = 1\nlevel = "strict"\n')
    assert resolve({"policy": file}).numerics == "strict"
    assert resolve({"policy": file, "numerics": "precise"}).numerics == "precise"
    monkeypatch.setenv("MPOPT_NUMERICS", "precise")
    assert resolve({"policy": file}).numerics == "precise"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (3, "policy must be a path or a dictionary, not 3"),
        ("nothing.toml", "nothing.toml: cannot read the policy: No such file"),
        ({"verson": 1}, r"policy <policy>:1:1: unknown key 'verson'.*did you mean 'version'"),
        ({"version": 1, "rule": {}}, r"'rule' must be a list of tables"),
        ({"version": 1, "rule": [{"op": b"x"}]}, r"'op' cannot be b'x'"),
        ({"version": 1, 3: 1}, "the key 3 is no text"),
        ({"version": 1, "epsilon": float("nan")}, "finite number"),
        ({"version": 1, "rule": [{"op": "aten.mm", "precision": "fp23"}]}, "did you mean 'fp32'"),
    ],
)
def test_bad_policies_are_option_errors(given, message):
    with pytest.raises(OptionError, match=message):
        resolve({"policy": given})


def test_an_error_names_file_line_and_column(tmp_path):
    file = written(tmp_path, RULES.replace("precision", "presicion"))
    with pytest.raises(OptionError) as error:
        resolve({"policy": file})
    assert f"{file}:4:1: unknown key 'presicion' in [[rule]]; did you mean 'precision'?" in str(
        error.value
    )


def test_a_file_that_is_no_text_is_told(tmp_path):
    file = tmp_path / "p.toml"
    file.write_bytes(b"version = 1\n# \xff\n")
    with pytest.raises(OptionError, match="not UTF-8"):
        resolve({"policy": file})


# --- the digest -----------------------------------------------------------------


def test_the_digest_is_by_content(tmp_path):
    first = resolve({"policy": written(tmp_path, RULES)}).digest()
    assert first != resolve().digest()
    assert first == resolve({"policy": written(tmp_path, RULES, "other.toml")}).digest()
    changed = RULES.replace("fp32", "keep")
    assert first != resolve({"policy": written(tmp_path, changed)}).digest()


KEYS = st.text(min_size=1, max_size=5)
VALUES = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


@given(
    st.dictionaries(KEYS, VALUES, max_size=3),
    st.dictionaries(KEYS, VALUES, max_size=3),
    st.lists(st.dictionaries(KEYS, VALUES, max_size=3), min_size=1, max_size=3),
)
def test_dictionaries_become_the_same_toml(plain, table, rows):
    document = {**plain, "a table": table, "some rows": rows}
    assert tomllib.loads(policy._toml(document)) == document


# --- the backend ----------------------------------------------------------------


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


def step(given, **options):
    torch._dynamo.reset()
    net = Net()
    compiled = torch.compile(net, backend="mpopt", options={"policy": given, **options})
    with torch.autocast("cpu", torch.bfloat16):
        loss = compiled(torch.ones(4, 16)).float().square().mean()
    loss.backward()
    return loss.detach()


def test_a_bundle_holds_the_policy_and_its_pins(tmp_path):
    file = written(tmp_path, RULES)
    step(str(file), dump=str(tmp_path / "dump"))
    (joint,) = (tmp_path / "dump").glob("*_joint")
    meta = json.loads((joint / "meta.json").read_text())
    digest = hashlib.sha256(RULES.encode()).hexdigest()
    assert meta["options"]["policy"] == {"file": str(file), "sha256": digest}
    (applied,) = joint.glob("*_mp-apply-policy.mlir")
    lines = applied.read_text().splitlines()
    pinned = [
        line for line in lines if '#mp.pin<fp32 both, "policy", "a test (run.toml:2)">' in line
    ]
    assert pinned
    assert any("mp.matmul" in line for line in pinned)
    assert "mp.policy" in (joint / "00_import.mlir").read_text()


class InFull(nn.Module):
    """A module that autocast does not touch, and whose result it gets rounded."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        with torch.autocast("cpu", enabled=False):
            return self.inner(x.float()).bfloat16()


def output_and_gradients(net, x, **options):
    torch._dynamo.reset()
    run = torch.compile(net, **options) if options else net
    with torch.autocast("cpu", torch.bfloat16):
        output = run(x)
    output.float().square().sum().backward()
    return [output.detach(), *(parameter.grad for parameter in net.parameters())]


def test_fp32_computes_a_module_as_if_autocast_were_off():
    torch.manual_seed(0)
    net, x = Net(), torch.randn(4, 16)
    plain, guarded = copy.deepcopy(net), copy.deepcopy(net)
    guarded.down = InFull(guarded.down)
    policy = {"version": 1, "rule": [{"module": "down", "precision": "fp32"}]}
    ours = output_and_gradients(net, x, backend="mpopt", options={"policy": policy})
    # Eager: a compiled backward is traced under autocast again.
    expected = output_and_gradients(guarded, x)
    traced = output_and_gradients(plain, x, backend="mpopt")
    assert torch.equal(ours[0], expected[0])
    for value, wanted, rounded in list(zip(ours, expected, traced, strict=True))[-2:]:
        torch.testing.assert_close(value, wanted, rtol=1e-5, atol=1e-6)
        # Without the policy autocast rounds what the layer reads and makes.
        assert (rounded - wanted).abs().max() > 1e-3 * wanted.abs().max()


def test_a_policy_that_only_keeps_changes_no_value():
    torch.manual_seed(0)
    plain = step(None)
    torch.manual_seed(0)
    kept = step({"version": 1, "groups": {"enable": []}})
    assert torch.equal(plain, kept)


def test_a_changed_policy_misses_the_caches():
    def uuid(given):
        options = resolve({"policy": given})
        capture = mpopt.backend.origins.Capture((), (), True, {})
        return joint_pass.JointPass(options, capture, {}, relax=False).uuid()

    rule = {"module": "up", "precision": "fp32"}
    first = uuid({"version": 1, "rule": [rule]})
    assert first == uuid({"version": 1, "rule": [rule]})
    assert first != uuid({"version": 1, "rule": [{**rule, "precision": "keep"}]})
    assert first != uuid(None)


def test_a_bad_policy_stops_before_anything_is_compiled():
    before = dict(mpopt.counters)
    with pytest.raises(Exception, match="unknown key 'verson'"):
        step({"verson": 1})
    assert dict(mpopt.counters) == before


def test_a_rule_that_matches_nothing_is_counted_and_told_once(caplog, tmp_path):
    given = {"version": 1, "rule": [{"module": "upp", "precision": "fp32"}]}
    with caplog.at_level(logging.WARNING, logger="mpopt.fallback"):
        for _ in range(2):
            step(given, dump=str(tmp_path))  # without caches, so that the passes run again
            assert mpopt.counters["policy_rules_unmatched"] == 1
    told = [r.message for r in caplog.records if "matches nothing" in r.message]
    assert len(told) == 1
    assert "no operation is in a module 'upp'; did you mean 'up'?" in told[0]


def test_rewrite_takes_a_policy(tmp_path):
    def f(x, w):
        return (x.float() @ w.float()).bfloat16()

    x = torch.ones(4, 8, dtype=torch.bfloat16)
    w = torch.ones(8, 8, dtype=torch.bfloat16)
    graph = torch.fx.experimental.proxy_tensor.make_fx(f, tracing_mode="fake")(x, w)
    kept = mpopt.rewrite(graph, [x, w], policy={"version": 1, "groups": {"enable": []}})
    assert torch.equal(kept(x, w), f(x, w))
    with pytest.raises(OptionError, match="unknown key"):
        mpopt.rewrite(graph, [x, w], policy={"version": 1, "rules": []})
