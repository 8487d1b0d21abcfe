"""The benchmark of matrix products."""

import json

import pytest
import torch
from mpopt.bench import gemm, gemm_cases
from mpopt.bench.__main__ import main

aten = torch.ops.aten


@pytest.fixture(scope="module")
def cases():
    return gemm_cases.gemm_cases("gpt2", "tiny")


def test_every_product_of_a_step_is_in_one_case(cases):
    assert {case.phase for case in cases} >= {"forward", "dgrad", "wgrad"}
    graphs = gemm_cases._joint_graphs("gpt2", "tiny", torch.bfloat16)
    products = [n for g in graphs for n in g.nodes if n.target in gemm_cases.PRODUCTS]
    assert sum(case.count for case in cases) == len(products)
    for case in cases:
        targets = [node.target for node in case.module.graph.nodes]
        assert sum(target in gemm_cases.PRODUCTS for target in targets) == 1


def test_a_case_has_the_types_and_the_epilogue_of_the_step(cases):
    up = next(
        c
        for c in cases
        if c.phase == "forward"
        and c.module.graph.find_nodes(op="call_function", target=aten.tanh.default)
    )
    assert {value.dtype for value in up.inputs} == {torch.bfloat16}
    assert up.label.startswith("addmm 32x128x32 bf16 NN +")
    assert up.operations == 2 * 32 * 128 * 32


def test_a_case_ends_where_another_product_is_needed():
    def step(x, v, w):
        return (x @ w).relu() + (x @ v).relu()

    xvw = torch.randn(3, 8, 8)
    graph = torch.fx.experimental.proxy_tensor.make_fx(step, tracing_mode="fake")(*xvw).graph
    first, second = (
        gemm_cases._Cut(n).case()
        for n in graph.find_nodes(op="call_function", target=aten.mm.default)
    )
    count = [
        len(c.module.graph.find_nodes(op="call_function", target=aten.add.Tensor))
        for c in (first, second)
    ]
    assert count == [0, 1]  # only the later one can have the sum
    assert len(second.inputs) == 3


def test_the_reference_rounds_nothing(cases):
    case = cases[0]
    inputs = gemm._inputs(case)[0]
    exact = gemm_cases.in_double(case.module)(*map(gemm._to_double, inputs))
    assert all(result.dtype == torch.float64 for result in exact)
    rounded = case.module(*inputs)
    error = gemm._error(rounded, exact)
    assert 1e-6 < error < 2e-2  # bf16


def test_wrong_results_are_noticed(cases):
    def measured(error):
        errors = {"torch": 1e-3, "eager": 2e-3, "mpopt": error}
        return gemm.Measured(cases[0], 1, {}, errors, 1)

    some = [measured(error) for error in (3e-3, 5e-3, float("nan"))]
    assert [one.is_wrong for one in some] == [False, True, True]
    assert [line.split()[0] for line in gemm.wrong_shapes(some)] == ["wrong:", "wrong:"]


def test_slow_shapes_of_ours_are_listed(cases):
    def measured(seconds, regions):
        times = {"torch": [1e-3] * 3, "mpopt": [seconds] * 3}
        return gemm.Measured(
            cases[0], 1, times, dict.fromkeys(("torch", "eager", "mpopt"), 0.0), regions
        )

    some = [measured(2e-3, 1), measured(2e-3, 0), measured(1e-3, 1)]
    (line,) = gemm.slow_shapes(some)
    assert line.startswith("0.50 x of PyTorch's speed")
    figures = {row.metric: row.value for row in gemm.summary_rows(some)}
    assert figures["gemm_ratio.mean_of_ours"] == pytest.approx(0.5**0.5)
    assert figures["gemm_ratio.least_of_ours"] == 0.5
    assert figures["gemm_share_ours"] == pytest.approx(2 / 3)


def test_command_writes_rows(tmp_path, capsys):
    target = tmp_path / "gemm.json"
    arguments = "--family gpt2 --size tiny --most 1 --rounds 2 --threads 1 --option regions=off"
    assert main(["gemm", *arguments.split(), "--json", str(target)]) == 0
    rows = json.loads(target.read_text())
    metrics = {(row["variant"], row["metric"]) for row in rows}
    assert {("torch-t1", "gemm_gflops"), ("mpopt-t1", "gemm_ratio")} <= metrics
    assert all(row["value"] > 0 for row in rows if row["metric"] == "gemm_gflops")
    assert "gemm_ratio.mean" in capsys.readouterr().out


@pytest.mark.parametrize("threads", ["0", "two", "1,-1"])
def test_bad_threads_are_refused(threads, capsys):
    assert main(["gemm", "--family", "gpt2", "--threads", threads, "--quick"]) != 0
    assert "--threads takes numbers" in capsys.readouterr().err
