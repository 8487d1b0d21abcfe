"""T8, T9 and T16 on the training graphs that Inductor gets, after all passes.

What is looked at is the pair of graphs behind the partitioner and the last pass: casts that are
there twice, types that do not agree with what an operator says of them, and what is saved.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import Any
from unittest import mock

import pytest
import torch
from generated import code_before_execution, run_step
from models import Transformer, words
from mpopt import _torch, optim
from mpopt.backend import mpopt
from mpopt.importer import conversion_target
from mpopt.post_pass import PostPass
from torch import fx, nn

BF16, F32 = torch.bfloat16, torch.float32
LENGTH = 16
ROWS = 64 * LENGTH
"""Enough for a tensor of `Transformer`'s width to be placed."""
LEVELS = {
    "precise": {},
    "relaxed": {"numerics": "relaxed", "epsilon": 10.0},
    "without autocast": {"precision": "bf16"},
}
CASES = [(model, level) for model in ("gpt", "llama") for level in LEVELS]
RELAXED = [(model, level) for model, level in CASES if level != "precise"]
"""Where the bytes that are saved count for more than a cast: see `mp-plan-saves`."""


def _graphs(model: nn.Module, batch: Any, **options: Any) -> tuple[fx.Graph, fx.Graph]:
    """The forward and the backward graph that Inductor lowers."""
    found: list[fx.Graph] = []
    original = PostPass.__call__

    def keep(self: PostPass, graph: fx.Graph) -> None:
        original(self, graph)
        found.append(graph)

    torch._dynamo.reset()
    with mock.patch.object(PostPass, "__call__", keep):
        autocast = None if "precision" in options else BF16
        step = torch.compile(model, backend=mpopt, dynamic=False, options=options)
        code_before_execution(lambda: run_step(step, batch, autocast=autocast))
    first, second = found
    is_backward = any(map(_torch.is_tangent, first.find_nodes(op="placeholder")))
    return (second, first) if is_backward else (first, second)


_kept: dict[Any, tuple[fx.Graph, fx.Graph]] = {}


@pytest.fixture(params=CASES, ids="-".join)
def graphs(request: pytest.FixtureRequest, tmp_path: Any) -> tuple[fx.Graph, fx.Graph]:
    """The pair of a model at a level, made once."""
    name, level = request.param
    if request.param not in _kept:
        torch.manual_seed(0)
        model = Transformer(llama=name == "llama")
        options = dict(LEVELS[level])
        if "precision" in options:
            file = tmp_path / "halves.json"
            file.write_text(_fast_halves())
            options["cost_model"] = str(file)
        _kept[request.param] = _graphs(model, words(64), **options)
    return _kept[request.param]


def _fast_halves() -> str:
    from test_placement import _fast_halves as text

    return text()


def _calls(graph: fx.Graph) -> list[fx.Node]:
    return [n for n in graph.nodes if n.op == "call_function" and _torch.is_operator(n.target)]


def _source(node: fx.Node) -> fx.Node:
    """What `node` is a view of."""
    while _torch.is_operator(node.target) and node.target.is_view:
        node = node.args[0]
    return node


# T8 ---------------------------------------------------------------------------------------------


def test_t8_one_cast_per_value_and_type_in_each_phase(graphs: Any) -> None:
    """Whatever the number of readers, and through views."""
    for graph in graphs:
        count = Counter(
            (_source(n.all_input_nodes[0]), tuple(n.meta["val"].shape), n.meta["val"].dtype)
            for n in _calls(graph)
            if conversion_target(n) is not None and n.meta["val"].dtype.is_floating_point
        )
        assert count, "a graph under autocast has conversions"
        assert set(count.values()) == {1}, count.most_common(3)


@pytest.mark.parametrize("readers", [1, 2, 7])
def test_t8_readers_of_a_weight_and_an_input_share_two_casts(readers: int) -> None:
    """Stated count: one for the value and one for the weight; gradients are added in one type."""

    class Readers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(32, 32))

        def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
            return [torch.mm(x, self.weight) * (i + 1) for i in range(readers)]

    forward, _ = _graphs(Readers(), (torch.randn(8, 32),))
    assert sum(conversion_target(n) is BF16 for n in _calls(forward)) == 2


# T9 ---------------------------------------------------------------------------------------------

_RESULT_KEYWORDS = ("dtype", "out_dtype")


def test_t9_named_types_agree_with_result_types(graphs: Any) -> None:
    """Of each conversion the target, and of each other operator every keyword that names the
    type of its result; and what the operator gives when it is run is what the graph says."""
    named = 0
    for graph in graphs:
        for node in _calls(graph):
            said = _named_type(node)
            value = node.meta["val"]
            if said is not None and isinstance(value, torch.Tensor):
                named += 1
                assert value.dtype is said, node.format_node()
            _assert_runs_to(node, value)
    assert named >= 4


def _named_type(node: fx.Node) -> torch.dtype | None:
    names = [argument.name for argument in node.target._schema.arguments]
    given = dict(zip(names, node.args, strict=False)) | dict(node.kwargs)
    types = [given[key] for key in _RESULT_KEYWORDS if given.get(key) is not None]
    target = conversion_target(node)
    assert target is None or all(said is target for said in types)
    return types[0] if types else target


def _assert_runs_to(node: fx.Node, value: Any) -> None:
    """Operands of the types that the graph says give results of those that it says."""
    mode = _torch.fake_mode_of([n.meta.get("val") for n in node.all_input_nodes])
    with _torch.fake_execution(mode) if mode is not None else contextlib.nullcontext():
        args, kwargs = fx.map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
        result = node.target(*args, **kwargs)
    pairs = zip(_tensors(result), _tensors(value), strict=True)
    assert all(one.dtype is other.dtype for one, other in pairs), node.format_node()


def _tensors(value: Any) -> list[torch.Tensor]:
    return [v for v in torch.utils._pytree.tree_leaves(value) if isinstance(v, torch.Tensor)]


# T16 --------------------------------------------------------------------------------------------


def _saved(pair: tuple[fx.Graph, fx.Graph]) -> list[fx.Node]:
    """The nodes of forward that are saved for backward, found by what backward is given."""
    forward, backward = pair
    names = {
        node.name for node in backward.find_nodes(op="placeholder") if not _torch.is_tangent(node)
    }
    results = [n for n in forward.output_node().args[0] if isinstance(n, fx.Node)]
    return [node for node in dict.fromkeys(results) if node.name in names]


def _root(node: fx.Node) -> fx.Node:
    """The value that `node` is a view or a conversion of."""
    while node.op == "call_function" and _torch.is_operator(node.target):
        if not node.target.is_view and conversion_target(node) is None:
            return node
        node = node.all_input_nodes[0]
    return node


def test_t16_no_value_is_saved_in_two_types(graphs: Any) -> None:
    saved = _saved(graphs)
    assert len(saved) > 5
    types: dict[fx.Node, set[torch.dtype]] = {}
    for node in saved:
        if isinstance(node.meta["val"], torch.Tensor) and node.meta["val"].is_floating_point():
            types.setdefault(_root(node), set()).add(node.meta["val"].dtype)
    assert {root: found for root, found in types.items() if len(found) > 1} == {}


def _saved_copies(pair: tuple[fx.Graph, fx.Graph]) -> list[fx.Node]:
    """What is saved that is an input in another type."""
    copies = [n for n in _saved(pair) if n.op != "placeholder" and _root(n).op == "placeholder"]
    return [n for n in copies if n.meta["val"].dtype is not _root(n).meta["val"].dtype]


@pytest.mark.parametrize("graphs", RELAXED, indirect=True, ids="-".join)
def test_t16_no_cast_copy_of_a_weight_is_saved(graphs: Any) -> None:
    """The weight itself lives on anyway: backward narrows it again."""
    assert _saved_copies(graphs) == []
    narrowed = [n for n in _calls(graphs[1]) if conversion_target(n) is BF16]
    assert [n for n in narrowed if _root(n).op == "placeholder"], "backward reads weights in half"


def test_t16_half_weights_of_an_optimizer_are_read_where_they_are() -> None:
    """With them, neither phase casts a weight, and what is saved of one is the input itself."""
    torch.manual_seed(0)
    model = Transformer(llama=True)
    optimizer = optim.AdamW(model.parameters(), lr=1e-3)
    pair = _graphs(model, words(64))
    shapes = {tuple(p.shape) for p in model.parameters() if p.dim() > 1}
    shapes |= {tuple(reversed(shape)) for shape in shapes}
    for graph in pair:
        casts = [n for n in _calls(graph) if conversion_target(n) is BF16]
        assert [n for n in casts if tuple(n.meta["val"].shape) in shapes] == []
    assert _saved_copies(pair) == []
    assert len(optimizer.half_copies()) >= 5


class _Both(nn.Module):
    """One activation that backward needs in f32 (for cos) and in half (for the weight)."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(64, 64), nn.Linear(64, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = self.first(x).float().exp()
        return self.second(wide) + wide.sin().sum()


@pytest.mark.parametrize("level", ["precise", "relaxed"])
def test_t16_a_value_that_backward_needs_in_two_types_is_saved_in_one(level: str) -> None:
    torch.manual_seed(0)
    pair = _graphs(_Both(), (torch.randn(512, 64),), **LEVELS[level])
    types = {
        node.meta["val"].dtype
        for node in _saved(pair)
        if _root(node).target is torch.ops.aten.exp.default
    }
    assert len(types) <= 1, types
