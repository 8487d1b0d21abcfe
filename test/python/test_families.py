"""The eight families at tiny size, one training step each, against fp64 and stock Inductor.

The marker `slow` runs the full size and the families that the default run leaves out.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from acceptance import Graph, read_bundle
from generated import code_of
from mpopt.backend import mpopt
from mpopt.bench import instrument
from mpopt.bench.casts import saved_bytes
from mpopt.bench.families import FAMILIES, build, build_inference
from mpopt.bench.instrument import Kernel
from mpopt.bench.reference import reference
from mpopt.bench.runner import Runner
from mpopt.bench.variants import VARIANTS
from mpopt.options import PLACE_STORES
from mpopt.post_pass import PostPass
from torch._inductor import config as inductor_config

BUILD = Path(__file__).parents[2] / "build"
ALL = sorted(FAMILIES)
STRICT_IN_DEFAULT = ("llama",)
NO_PASS_IN_DEFAULT = ("gpt2", "llama")
# No kernel that only converts an activation is left there; elsewhere no more than stock has.
NONE_LEFT = ("gpt2", "llama", "bert")
_SHORT = {"float32": "f32", "bfloat16": "bf16", "float16": "f16"}
# Bits of a scalar loss: two results this near to fp64 are equally good.
LOSS_FLOOR = 2.0**-11


def _cases(names: tuple[str, ...]) -> list[Any]:
    return [n if n in names else pytest.param(n, marks=pytest.mark.slow) for n in ALL]


BF16 = "autocast-bf16"
OTHER_PRECISIONS = ("autocast-fp16", "pure-bf16")
OTHERS_IN_DEFAULT = {("llama", "autocast-fp16"), ("vit", "pure-bf16")}


def _all_steps() -> list[Any]:
    cases = [(name, "tiny", BF16) for name in ALL]
    for precision in OTHER_PRECISIONS:
        for name in ALL:
            marks = [] if (name, precision) in OTHERS_IN_DEFAULT else [pytest.mark.slow]
            cases.append(pytest.param((name, "tiny", precision), marks=marks))
    return cases + [pytest.param((name, "full", BF16), marks=pytest.mark.slow) for name in ALL]


@dataclasses.dataclass
class Step:
    """One training step of a family."""

    loss: torch.Tensor
    gradients: dict[str, torch.Tensor]
    kernels: list[Kernel]
    saved: int
    graphs: list[Graph]
    weights: torch.dtype

    @property
    def pointwise_bytes(self) -> int:
        """Bytes of all generated loops."""
        return sum(kernel.bytes for kernel in self.kernels if not kernel.extern)


@functools.lru_cache(maxsize=2)
def step(
    family: str,
    size: str,
    backend: str,
    settings: tuple[tuple[str, Any], ...] = (),
    precision: str = BF16,
) -> Step:
    """One step; `settings` are options of mpopt or of Inductor."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    variant = VARIANTS[f"{'mpopt' if backend == 'mpopt' else 'compile'}-{precision}"]
    graphs: list[Graph] = []
    with tempfile.TemporaryDirectory(prefix="mpopt-family-") as folder:
        options = dict(settings)
        if backend == "mpopt":
            variant = dataclasses.replace(
                variant, backend=functools.partial(_mpopt, options={"dump": folder, **options})
            )
            options = {}
        with (
            inductor_config.patch(options),
            mock.patch.object(PostPass, "pipeline", _place_all),
            instrument.record_kernels() as kernels,
        ):
            runner = Runner(family, size, variant)
            loss = runner.forward()
            runner.backward(loss)
            gradients = runner.gradients()
            saved = saved_bytes(runner)
        graphs += [read_bundle(p) for p in sorted(Path(folder).iterdir()) if p.is_dir()]
    assert kernels, "Inductor scheduled nothing"
    return Step(loss.detach(), gradients, kernels, saved, graphs, variant.weights)


def _place_all(_: PostPass) -> str:
    """Tiny tensors are below the size from which the pass acts."""
    return f"func.func({PLACE_STORES}{{min-elements=0}})"


def _mpopt(gm: Any, inputs: Any, *, options: dict[str, Any]) -> Any:
    return mpopt(gm, inputs, options=options)


def _name(case: tuple[str, str, str]) -> str:
    return "-".join(case).removesuffix(f"-{BF16}")


@pytest.fixture(scope="module", params=_all_steps(), ids=_name)
def pair(request: pytest.FixtureRequest) -> tuple[str, str, Step, Step]:
    """(family, size, our step, stock's step), compiled once for all tests below."""
    family, size, precision = request.param
    ours = step(family, size, "mpopt", precision=precision)
    return family, size, ours, step(family, size, "inductor", precision=precision)


def test_errors_against_fp64_are_no_larger_than_stocks(pair: tuple[str, str, Step, Step]) -> None:
    family, size, ours, stock = pair
    exact = reference(family, size)
    assert ours.gradients.keys() == stock.gradients.keys() == exact.gradients.keys()
    error, allowed = exact.grad_error(ours.gradients), 1.05 * exact.grad_error(stock.gradients)
    assert 0 < error <= allowed
    loss_error = exact.loss_error(ours.loss.item())
    assert loss_error <= max(1.05 * exact.loss_error(stock.loss.item()), LOSS_FLOOR)


def test_saved_bytes_are_no_more_than_stocks(pair: tuple[str, str, Step, Step]) -> None:
    _, _, ours, stock = pair
    assert 0 < ours.saved <= stock.saved


def test_pointwise_bytes_are_no_more_than_stocks(pair: tuple[str, str, Step, Step]) -> None:
    _, _, ours, stock = pair
    assert 0 < ours.pointwise_bytes <= stock.pointwise_bytes


def test_activation_cast_kernels_are_gone(pair: tuple[str, str, Step, Step]) -> None:
    """None is left, or no more than stock has, each with a record of why such a one stays."""
    family, _, ours, stock = pair
    mine = [k for k in ours.kernels if k.role == "activation"]
    theirs = sum(k.role == "activation" for k in stock.kernels)
    # Without autocast the weights are half: the sum of an embedding's gradient is narrowed.
    none_left = family in NONE_LEFT and ours.weights is torch.float32
    assert len(mine) <= (0 if none_left else theirs)
    kept = [r["why"] for g in ours.graphs for r in g.records if r["rule"] == "keep-cast"]
    for kernel in mine:
        pair_of_types = f"{_SHORT[kernel.source[0]]} to {_SHORT[kernel.target[0]]}"
        assert any(pair_of_types in why for why in kept), kernel


def test_every_graph_was_rewritten_without_fallback(pair: tuple[str, str, Step, Step]) -> None:
    _, _, ours, _ = pair
    kinds = [graph.kind for graph in ours.graphs]
    assert "joint" in kinds
    for graph in ours.graphs:
        assert graph.meta["status"] == "ok", graph.meta["status"]


def _newest_first() -> list[Path]:
    return sorted(BUILD.glob("*/bin/mpopt"), key=lambda path: -path.stat().st_mtime)


def test_checker_accepts_each_bundle(pair: tuple[str, str, Step, Step]) -> None:
    tool = shutil.which("mpopt") or next(
        (str(path) for path in _newest_first() if os.access(path, os.X_OK)), None
    )
    if tool is None:
        pytest.skip("the program mpopt is not built")
    for graph in pair[2].graphs:
        command = [tool, "check", graph.path / "00_import.mlir", graph.path / "after.mlir"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert result.returncode == 0, f"{graph.kind}: {result.stdout}{result.stderr}"


EXACT = (("numerics", "strict"),)


@pytest.mark.parametrize("family", _cases(STRICT_IN_DEFAULT))
def test_strict_is_bit_equal_to_stock_in_strict_numerics(family: str) -> None:
    """Both sides run under Inductor's own strict numerics."""
    inductor = (
        {"numerics": "strict"}
        if hasattr(inductor_config, "numerics")
        else {"emulate_precision_casts": True}
    )
    ours = step(family, "tiny", "mpopt", (*EXACT, ("inductor", _Frozen(inductor))))
    stock = step(family, "tiny", "inductor", tuple(inductor.items()))
    assert torch.equal(ours.loss, stock.loss)
    for name, gradient in stock.gradients.items():
        assert torch.equal(ours.gradients[name], gradient), name


class _Frozen(dict[str, Any]):
    """A dictionary that a cache can hash."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(sorted(self.items())))


@pytest.mark.parametrize("family", _cases(NO_PASS_IN_DEFAULT))
@pytest.mark.parametrize("train", [True, False], ids=["training", "inference"])
def test_without_passes_the_code_is_stocks(family: str, train: bool) -> None:
    def make() -> torch.nn.Module:
        return (build if train else build_inference)(family, "tiny")[0]

    batch = (build if train else build_inference)(family, "tiny")[1]
    ours = code_of(make, batch, mpopt, dynamic=False, options={"pipeline": ""}, train=train)
    theirs = code_of(make, batch, "inductor", dynamic=False, train=train)
    assert len(ours) == (2 if train else 1), "forward, and backward in training"
    assert ours == theirs
