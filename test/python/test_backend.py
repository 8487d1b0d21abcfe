"""The backend on all kinds of models: values against Inductor's graphs and fp64."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import mpopt
import pytest
import torch
import torch.nn.functional as F
from eager_code import eager_code, step, structure
from models import ConvNet, Transformer, images, words
from mpopt import backend, importer
from mpopt.errors import OptionError
from torch import nn

BF16 = torch.bfloat16


class Outputs(nn.Module):
    """A dictionary and a tuple, an alias of an input, an integer, and a plain number."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x, ids):
        y = self.linear(x)
        return {"y": y, "pair": (x.view(2, -1), y.softmax(-1))}, x, ids + 1, y.argmax(-1), 7


class Unused(nn.Module):
    """A parameter that gets no gradient, one that is frozen, one that is used twice."""

    def __init__(self):
        super().__init__()
        self.unused = nn.Parameter(torch.ones(4))
        self.frozen = nn.Linear(8, 8).requires_grad_(False)
        self.shared = nn.Linear(8, 8)

    def forward(self, x):
        return F.gelu(self.shared(self.frozen(F.gelu(self.shared(x)))))


def broken(x, w):
    """A graph break between two autocast matrix products."""
    y = F.layer_norm(x @ w, (8,))
    torch._dynamo.graph_break()
    return F.gelu(y @ w)


def mutating(x, w):
    """Writes into an input, through a half-precision product."""
    x.add_((x @ w).float())
    return x * 2


def branches(x, w):
    """A higher-order operator with two graphs."""
    return torch.cond(x.sum() > 0, lambda a, b: F.gelu(a @ b), lambda a, b: (a @ b) * 2, (x, w))


class Square(torch.autograd.Function):
    """Casts of its own in forward and backward."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x.to(BF16) * x.to(BF16)).float()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return (grad.to(BF16) * x.to(BF16) * 2).float()


def custom_function(x, w):
    return Square.apply(x @ w)


def pair():
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(4, 8, generator=generator)
    return x, torch.randn(8, 8, generator=generator).requires_grad_()


def half(make, dtype):
    return lambda: make().to(dtype)


X8 = torch.randn(4, 8, generator=torch.Generator().manual_seed(1))
CASES = {
    "gpt": (Transformer, words(), {}),
    "gpt-fp16": (Transformer, words(), {"autocast": torch.float16}),
    "gpt-pure-bf16": (half(Transformer, BF16), words(), {"autocast": None}),
    "gpt-pure-fp16": (half(Transformer, torch.float16), words(), {"autocast": None}),
    "gpt-dropout": (lambda: Transformer(dropout=0.2), words(), {}),
    "gpt-dynamic": (Transformer, words(), {"dynamic": True}),
    "gpt-tied-checkpointed": (lambda: Transformer(tied=True, checkpointed=True), words(), {}),
    "gpt-inference": (Transformer, words()[:1], {"train": False}),
    "llama": (lambda: Transformer(llama=True), words(), {}),
    "conv": (ConvNet, images(), {}),
    "conv-inference": (ConvNet, images()[:1], {"train": False}),
    "outputs": (Outputs, (X8, torch.arange(4)), {}),
    "unused-frozen-shared": (Unused, (X8,), {}),
    "graph-break": (lambda: broken, pair(), {}),
    "mutation": (lambda: mutating, pair(), {"train": False}),
    "cond": (lambda: branches, pair(), {}),
    "autograd-function": (lambda: custom_function, pair(), {}),
}


def fresh(inputs):
    """Copies, for a step may write into its inputs."""
    return tuple(t.detach().clone().requires_grad_(t.requires_grad) for t in inputs)


def run(name, **options):
    make, inputs, how = CASES[name]
    inputs = fresh(inputs)
    outputs, grads, buffers, graphs = step(make, inputs, **how, **options)
    grads = {**grads, **{f"input{i}": t.grad for i, t in enumerate(inputs) if t.grad is not None}}
    inputs_after = {f"after{i}": t.detach() for i, t in enumerate(inputs)}
    outputs = {f"output{i}": value for i, value in enumerate(outputs)}
    return {**outputs, **grads, **buffers, **inputs_after}, graphs


@pytest.mark.parametrize("name", CASES)
def test_strict_is_bit_identical(name):
    """`strict`, with the backend's graphs and Inductor's own run by the same operators."""
    stock, _ = run(name, disable=True)
    mpopt.counters.clear()
    ours, _ = run(name, numerics="strict")
    assert mpopt.counters["graphs"] > 0
    assert mpopt.counters["fallbacks"] == 0
    assert ours.keys() == stock.keys()
    for key, expected in stock.items():
        if isinstance(expected, torch.Tensor):
            assert ours[key].dtype == expected.dtype, key
            assert torch.equal(ours[key], expected), key
        else:
            assert ours[key] == expected, key


@pytest.mark.parametrize("name", ["gpt", "gpt-fp16", "llama", "conv", "gpt-tied-checkpointed"])
def test_precise_is_as_near_to_fp64(name):
    """The error of all gradients together is at most 1.05 times that of Inductor's graph."""
    make, inputs, _ = CASES[name]
    wide = tuple(t.double() if t.is_floating_point() else t for t in inputs)
    _, exact, _, _ = step(half(make, torch.float64), wide, disable=True, autocast=None)
    errors = []
    for options in ({"disable": True}, {"numerics": "precise"}):
        _, grads, _, _ = step(make, inputs, **CASES[name][2], **options)
        error = sum(float((grads[k].double() - exact[k]).square().sum()) for k in exact)
        errors.append((error / sum(float(v.square().sum()) for v in exact.values())) ** 0.5)
    assert errors[1] <= 1.05 * errors[0]
    assert 0 < errors[0] < 0.05


@pytest.mark.parametrize("name", ["gpt", "llama", "cond"])
def test_without_passes_the_graphs_are_inductors(name):
    _, stock = run(name, disable=True)
    _, ours = run(name, pipeline="")
    assert [structure(g.graph) for g in ours] == [structure(g.graph) for g in stock]


def test_nothing_to_do_without_half_precision():
    mpopt.counters.clear()
    step(Transformer, words(), autocast=None)
    assert mpopt.counters == {"stock_graphs": 1}


def test_dynamic_shapes_compile_once():
    torch._dynamo.reset()
    mpopt.counters.clear()
    with eager_code():
        compiled = torch.compile(Transformer(), backend=backend.mpopt, dynamic=True)
        for length in (8, 12, 16):
            with torch.autocast("cpu", dtype=BF16):
                loss = compiled(*words(length=length))
            loss.backward()
    assert mpopt.counters["graphs"] == 1


def test_code_runs():
    """Once through the code generator, by the name that users give."""
    x, w = pair()
    expected = F.gelu(F.layer_norm((x.double() @ w.double()), (8,)))

    @torch.compile(backend=backend.mpopt)
    def function(x, w):
        with torch.autocast("cpu", dtype=BF16):
            return F.gelu(F.layer_norm(x @ w, (8,)))

    result = function(x, w)
    result.float().sum().backward()
    error = (result.double() - expected).norm() / expected.norm()
    assert 0 < error < 2.0**-6  # a few roundings to bf16
    assert w.grad.dtype == torch.float32


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"options": {"numeric": "strict"}}, "did you mean 'numerics'"),
        ({"mode": "relaxed", "options": {"epsilon": -1}}, "epsilon must be"),
        ({"mode": "precise", "options": {"epsilon": 0.1}}, "epsilon needs numerics='relaxed'"),
        ({"mode": "strikt"}, "unknown mode 'strikt'; did you mean 'strict'"),
        ({"mode": "strict", "options": {"numerics": "precise"}}, "contradicts"),
        ({"dynamic_shapes": True}, "not dynamic_shapes="),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(OptionError, match=message):
        backend.mpopt(None, [], **arguments)


def test_mode_and_inductor_options():
    resolved, patches = backend._settings({"inductor": {"max-autotune": True}}, "strict")
    assert resolved.numerics == "strict"
    assert patches == {"max_autotune": True}
    _, patches = backend._settings(None, "max-autotune-no-cudagraphs")
    assert patches["max_autotune"] is True
    assert backend._settings(None, "default")[1] == {}


def test_passes_of_others_still_run():
    from torch._inductor.custom_graph_pass import CustomGraphPass

    class Theirs(CustomGraphPass):
        runs = 0

        def __call__(self, graph):
            Theirs.runs += 1

        def uuid(self):
            return "theirs"

    mpopt.counters.clear()
    with torch._inductor.config.patch(joint_custom_pre_pass=Theirs()):
        step(Outputs, (X8, torch.arange(4)))
    assert (Theirs.runs, mpopt.counters["graphs"]) == (1, 1)


def test_rewrite_of_a_traced_graph():
    from torch.fx.experimental.proxy_tensor import make_fx

    def function(x):
        return x.to(torch.float32).to(BF16) + 1

    x = torch.randn(8, dtype=BF16)
    traced = make_fx(function, tracing_mode="fake")(x)
    before = len(traced.graph.nodes)
    result = backend.rewrite(traced, [x], numerics="strict")
    assert len(traced.graph.nodes) == before
    assert [n for n in traced.graph.nodes if importer.conversion_target(n)]
    assert not [n for n in result.graph.nodes if importer.conversion_target(n)]
    assert torch.equal(result(x), function(x))


SCRIPT = """
    import json, os, sys
    import torch
    from torch._dynamo.utils import counters
    import mpopt
    from mpopt.backend import mpopt as backend
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LayerNorm(4))
    compiled = torch.compile(model, backend=backend, options=json.loads(sys.argv[1]))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = compiled(torch.ones(2, 4)).float().square().sum()
    loss.backward()
    found = {**counters["inductor"], **counters["aot_autograd"]}
    names = ("autograd_cache_hit", "autograd_cache_miss", "fxgraph_cache_hit", "fxgraph_cache_miss")
    keys = {name: found.get(name, 0) for name in names}
    print(json.dumps({**keys, "graphs": mpopt.counters["graphs"]}))
"""


def test_a_view_that_a_conversion_made_possible():
    """The conversions of a part of a tensor copy it; without them the view gets a copy."""

    def flat(x):
        return (x.unbind(1)[1].float().bfloat16().view(8, 8) * 2).float()

    x = torch.randn(2, 3, 4, 8, generator=torch.Generator().manual_seed(0)).to(BF16)
    torch._dynamo.reset()
    before = mpopt.counters["rewrites"]
    compiled = torch.compile(flat, backend="mpopt", options={"strict": True})
    with eager_code():
        assert torch.equal(compiled(x), flat(x))
    assert mpopt.counters["rewrites"] > before


def test_caches(tmp_path):
    """A second process compiles nothing; one with another option compiles anew."""

    def launch(options):
        paths = os.pathsep.join(p for p in sys.path if p)
        env = {**os.environ, "PYTHONPATH": paths, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}
        command = [sys.executable, "-c", textwrap.dedent(SCRIPT), json.dumps(options)]
        result = subprocess.run(command, capture_output=True, text=True, env=env)
        assert result.returncode == 0, result.stderr
        return json.loads(result.stdout.splitlines()[-1])

    first = launch({})
    assert (first["graphs"], first["autograd_cache_miss"], first["autograd_cache_hit"]) == (1, 1, 0)
    second = launch({})
    assert (second["graphs"], second["autograd_cache_miss"], second["autograd_cache_hit"]) == (
        0,
        0,
        1,
    )
    assert second["fxgraph_cache_miss"] == 0
    assert second["fxgraph_cache_hit"] > 0
    other = launch({"disable_passes": ["mp-eliminate-casts"]})
    assert (other["graphs"], other["autograd_cache_hit"]) == (1, 0)
