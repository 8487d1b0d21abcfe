"""One compilation with everything that a case asserts on: values, gradients, graphs, kernels."""

from __future__ import annotations

import contextlib
import json
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from mpopt.backend import mpopt
from mpopt.bench.instrument import Kernel, record_kernels
from torch import nn

BF16, F16, F32 = torch.bfloat16, torch.float16, torch.float32
ULP = {BF16: 2.0**-8, F16: 2.0**-11, F32: 2.0**-24}
"""Half the distance between neighbours, relative to the value: the unit roundoff."""

_bundles = tempfile.TemporaryDirectory(prefix="mpopt-bundles-")  # gone when Python ends
_CAST = re.compile(r"= mp\.cast %\S+ origin\((\w+)\).*: tensor<([^>]*)> to tensor<([^>]*)>")


@dataclass(frozen=True)
class Cast:
    """A conversion in a dumped module."""

    origin: str
    source: str
    target: str
    shape: str


def casts_in(text: str) -> list[Cast]:
    """The conversions of a module's text in order."""
    found = []
    for origin, source, target in _CAST.findall(text):
        shape, _, element = source.rpartition("x")
        found.append(Cast(origin, element, target.rpartition("x")[2], shape))
    return found


@dataclass
class Graph:
    """One dumped graph: as traced, after each stage, as handed back, and the record."""

    path: Path
    kind: str
    before: str
    after: str
    records: list[dict[str, Any]]
    meta: dict[str, Any] = field(default_factory=dict)

    def stage(self, name: str) -> str:
        """The module after the pass `name`, e.g. "mp-raise"."""
        (file,) = self.path.glob(f"[0-9][0-9]_{name}.mlir")
        return file.read_text()

    def rules(self, status: str) -> list[str]:
        """The rules with that status, "applied" or "missed"."""
        return [r["rule"] for r in self.records if r["status"] == status]


@dataclass
class Run:
    """What one call of a compiled function left behind."""

    outputs: list[torch.Tensor]
    gradients: dict[str, torch.Tensor] = field(default_factory=dict)
    graphs: list[Graph] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    saved: list[torch.Tensor] = field(default_factory=list)

    @property
    def graph(self) -> Graph:
        """The one graph that Inductor gave the passes before it split off backward."""
        (graph,) = [g for g in self.graphs if g.kind in ("joint", "inference")]
        return graph

    def cast_kernels(self, role: str = "activation") -> list[Kernel]:
        """Kernels that do nothing but convert."""
        return [kernel for kernel in self.kernels if kernel.role == role]

    @property
    def saved_bytes(self) -> int:
        """Bytes kept for backward, parameters and inputs left out."""
        storages = {t.untyped_storage().data_ptr(): t.untyped_storage() for t in self.saved}
        return sum(storage.nbytes() for storage in storages.values())


def _tangent(output: torch.Tensor, number: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(100 + number)
    return torch.randn(output.shape, generator=generator).to(output.dtype)


@contextlib.contextmanager
def autocast(dtype: torch.dtype | None) -> Iterator[None]:
    """CPU autocast to `dtype`; none at all for None."""
    if dtype is None:
        yield
        return
    with torch.autocast("cpu", dtype):
        yield


@contextlib.contextmanager
def _saving(keep: list[torch.Tensor], given: set[int]) -> Iterator[None]:
    @torch.compiler.disable
    def pack(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.untyped_storage().data_ptr() not in given:
            keep.append(tensor)
        return tensor

    unpack = torch.compiler.disable(lambda tensor: tensor)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield


def call(
    function: Callable[..., Any],
    inputs: Sequence[Any],
    *,
    low: torch.dtype | None = None,
    train: bool = False,
    run: Callable[..., Any] | None = None,
) -> Run:
    """Call `function`, or `run` which stands for it, under autocast to `low`; with `train`
    also backward from fixed tangents. Gradients are those of parameters, and of inputs
    as "0", "1", ..."""
    inputs = [
        x.detach().clone().requires_grad_(x.requires_grad) if isinstance(x, torch.Tensor) else x
        for x in inputs
    ]
    parameters = dict(function.named_parameters()) if isinstance(function, nn.Module) else {}
    for parameter in parameters.values():
        parameter.grad = None
    run = function if run is None else run
    torch.manual_seed(7)
    saved: list[torch.Tensor] = []
    given = {t.untyped_storage().data_ptr() for t in parameters.values()}
    given |= {x.untyped_storage().data_ptr() for x in inputs if isinstance(x, torch.Tensor)}
    with torch.set_grad_enabled(train):
        with autocast(low):
            result = run(*inputs)
        leaves = [result] if isinstance(result, torch.Tensor) else list(result)
        if not train:
            return Run(leaves)
        traced = [(i, t) for i, t in enumerate(leaves) if t.requires_grad]
        torch.autograd.backward([t for _, t in traced], [_tangent(t, i) for i, t in traced])
        gradients = {n: p.grad.clone() for n, p in parameters.items() if p.grad is not None}
        for i, x in enumerate(inputs):
            if isinstance(x, torch.Tensor) and x.grad is not None:
                gradients[str(i)] = x.grad
        with _saving(saved, given), autocast(low):
            kept = run(*inputs)
        del kept
    return Run([leaf.detach() for leaf in leaves], gradients, saved=saved)


def compiled(
    function: Callable[..., Any],
    inputs: Sequence[Any],
    *,
    low: torch.dtype | None = None,
    train: bool = False,
    dynamic: bool | None = False,
    fullgraph: bool = True,
    **options: Any,
) -> Run:
    """The function through the backend, with its graphs, records and kernels."""
    torch._dynamo.reset()
    with tempfile.TemporaryDirectory(prefix="mpopt-case-") as folder, record_kernels() as kernels:
        optimized = torch.compile(
            function,
            backend=mpopt,
            dynamic=dynamic,
            fullgraph=fullgraph,
            options={"dump": folder, **options},
        )
        run = call(function, inputs, low=low, train=train, run=optimized)
        run.graphs = [read_bundle(path) for path in sorted(Path(folder).iterdir()) if path.is_dir()]
    run.kernels = kernels
    return run


def read_bundle(path: Path) -> Graph:
    """A bundle, with its files copied out of the way of the caller's clean-up."""
    kept = Path(tempfile.mkdtemp(prefix="bundle-", dir=_bundles.name))
    for file in path.iterdir():
        (kept / file.name).write_bytes(file.read_bytes())
    records = json.loads((kept / "rewrites.json").read_text())
    meta = json.loads((kept / "meta.json").read_text())
    before, after = (kept / "00_import.mlir").read_text(), (kept / "after.mlir").read_text()
    return Graph(kept, path.name.partition("_")[2], before, after, records, meta)


def stock(
    function: Callable[..., Any],
    inputs: Sequence[Any],
    *,
    low: torch.dtype | None = None,
    train: bool = False,
    dynamic: bool | None = False,
    **settings: Any,
) -> Run:
    """The function through Inductor alone, under `settings` of Inductor."""
    torch._dynamo.reset()
    with record_kernels() as kernels:
        optimized = torch.compile(
            function, backend="inductor", dynamic=dynamic, options=settings or None
        )
        run = call(function, inputs, low=low, train=train, run=optimized)
    run.kernels = kernels
    return run


def assert_same_bits(got: Run, want: Run) -> None:
    """Outputs and gradients agree in dtype and in every bit (NaN equals NaN)."""
    assert len(got.outputs) == len(want.outputs)
    pairs = list(zip(map(str, range(99)), got.outputs, want.outputs, strict=False))
    assert got.gradients.keys() == want.gradients.keys()
    pairs += [(name, got.gradients[name], want.gradients[name]) for name in want.gradients]
    for name, a, b in pairs:
        assert a.dtype == b.dtype, (name, a.dtype, b.dtype)
        assert torch.equal(a, b) or torch.equal(a.nan_to_num(7.0), b.nan_to_num(7.0)), (
            f"{name}: {(a != b).sum().item()} of {a.numel()} elements differ, "
            f"at most by {(a.double() - b.double()).abs().max().item():.3g}"
        )
