"""The reference interpreter against PyTorch in f64, on operators of a training step."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from test_tool import find_tool

ATEN = torch.ops.aten


def literal(value: Any) -> str:
    """A nested list as MLIR has it."""
    if isinstance(value, list):
        return "[" + ", ".join(map(literal, value)) + "]"
    return str(value) if isinstance(value, int) else f"{value:.17e}"


def type_of(tensor: torch.Tensor) -> str:
    element = "i64" if tensor.dtype == torch.int64 else "f64"
    return f"tensor<{''.join(f'{size}x' for size in tensor.shape)}{element}>"


def interpret(
    tmp_path: Path, callee: str, attributes: str, operands: Any, results: Any
) -> list[torch.Tensor]:
    """What mpopt-run computes; `results` are tensors of the types that come out."""
    program = Path(find_tool()).with_name("mpopt-run")
    if not program.exists():
        pytest.skip("mpopt-run is not built")
    arguments = ", ".join(
        f"%a{i}: {type_of(t)} {{mp.value = dense<{literal(t.tolist())}> : {type_of(t)}}}"
        for i, t in enumerate(operands)
    )
    inputs = ", ".join(map(type_of, operands))
    outputs = ", ".join(map(type_of, results))
    names = ", ".join(f"%a{i}" for i in range(len(operands)))
    returned = ", ".join(f"%r#{i}" for i in range(len(results))) if len(results) > 1 else "%r"
    count = f":{len(results)}" if len(results) > 1 else ""
    path = tmp_path / "graph.mlir"
    path.write_text(
        f"func.func @f({arguments}) -> ({outputs}) {{\n"
        f'  %r{count} = mp.aten "{callee}"({names}) {{args = {{{attributes}}}}}'
        f" : ({inputs}) -> ({outputs})\n  return {returned} : {outputs}\n}}\n"
    )
    done = subprocess.run([str(program), str(path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    lines = re.findall(r"^result \d+: \S+ =(.*)$", done.stdout, re.MULTILINE)
    flat = [torch.tensor([float(x) for x in line.split()], dtype=torch.float64) for line in lines]
    return [f.reshape(t.shape) for f, t in zip(flat, results, strict=True)]


def rand(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(shape, dtype=torch.float64, generator=generator)


def attention(is_causal: bool) -> tuple[Any, ...]:
    q, k, v, g = rand(1, 2, 3, 4), rand(1, 2, 5, 4), rand(1, 2, 5, 4, seed=1), rand(1, 2, 3, 4)
    forward = ATEN._scaled_dot_product_flash_attention_for_cpu
    out, sums = forward.default(q, k, v, 0.0, is_causal)
    attributes = f"dropout_p = 0.0 : f64, is_causal = {str(is_causal).lower()}"
    backward = ATEN._scaled_dot_product_flash_attention_for_cpu_backward
    return (
        (forward.default, attributes, (q, k, v), (out, sums)),
        (
            backward.default,
            attributes,
            (g, q, k, v, out, sums),
            backward.default(g, q, k, v, out, sums, 0.0, is_causal),
        ),
    )


def cases() -> list[tuple[Any, str, Any, Any]]:
    """(operator, arguments as text, operands, what PyTorch computes)."""
    x, g = rand(4, 6), rand(4, 6, seed=9)
    weight, bias = rand(6, seed=2), rand(6, seed=3)
    _, mean, rstd = ATEN.native_layer_norm.default(x, [6], weight, bias, 1e-5)
    norm = ATEN.native_layer_norm_backward.default(
        g, x, [6], mean, rstd, weight, bias, [True, True, True]
    )
    target = torch.tensor([1, 5, -100, 0])
    found: list[tuple[Any, str, Any, Any]] = [
        (ATEN.gelu_backward.default, "", (g, x), ATEN.gelu_backward.default(g, x)),
        (
            ATEN.gelu_backward.default,
            'approximate = "tanh"',
            (g, x),
            ATEN.gelu_backward.default(g, x, approximate="tanh"),
        ),
        (ATEN.silu_backward.default, "", (g, x), ATEN.silu_backward.default(g, x)),
        (
            ATEN.native_layer_norm_backward.default,
            "normalized_shape = [6], output_mask = [true, true, true]",
            (g, x, mean, rstd, weight, bias),
            norm,
        ),
        (
            ATEN.embedding_dense_backward.default,
            "num_weights = 3 : i64, padding_idx = 2 : i64, scale_grad_by_freq = false",
            (g, torch.tensor([1, 2, 1, 0])),
            ATEN.embedding_dense_backward.default(g, torch.tensor([1, 2, 1, 0]), 3, 2, False),
        ),
        (ATEN.unbind.int, "dim = -1 : i64", (x,), ATEN.unbind.int(x, -1)),
        (ATEN.unbind.int, "", (x,), ATEN.unbind.int(x)),
        (
            ATEN.split.Tensor,
            "split_size = 4 : i64, dim = 1 : i64",
            (x,),
            ATEN.split.Tensor(x, 4, 1),
        ),
    ]
    for forward, backward in [
        (ATEN._softmax, ATEN._softmax_backward_data),
        (ATEN._log_softmax, ATEN._log_softmax_backward_data),
    ]:
        for dim in (0, 1):
            y = forward.default(x, dim, False)
            expected = backward.default(g, y, dim, torch.float64)
            found.append((backward.default, f"dim = {dim} : i64", (g, y), expected))
    for reduction in (0, 1, 2):
        text = f"weight, reduction = {reduction} : i64, ignore_index = -100 : i64"
        loss, total = ATEN.nll_loss_forward.default(x, target, None, reduction, -100)
        found.append((ATEN.nll_loss_forward.default, text, (x, target), (loss, total)))
        seed = rand(*loss.shape, seed=4)
        expected = ATEN.nll_loss_backward.default(seed, x, target, None, reduction, -100, total)
        found.append((ATEN.nll_loss_backward.default, text, (seed, x, target, total), expected))
    return [*found, *attention(False), *attention(True)]


CASES = cases()


@pytest.mark.parametrize(
    ("operator", "attributes", "operands", "expected"),
    CASES,
    ids=[f"{i}-{case[0]}" for i, case in enumerate(CASES)],
)
def test_equals_pytorch(tmp_path, operator, attributes, operands, expected):
    expected = list(expected) if isinstance(expected, list | tuple) else [expected]
    found = interpret(tmp_path, str(operator), attributes, operands, expected)
    for mine, theirs in zip(found, expected, strict=True):
        # mpopt-run prints nine digits.
        torch.testing.assert_close(mine, theirs, rtol=1e-8, atol=1e-9, check_dtype=False)
