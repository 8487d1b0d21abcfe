"""`placement --measured`: what the model of kernels counts, beside what Inductor schedules.

A family is compiled for the CPU as far as its kernels are known: no C++ is compiled and nothing
runs. `mp-report-traffic` counts on the pair of graphs that Inductor gets; the kernels that it makes
of them and the tensors that forward hands to backward are counted beside.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from typing import Any
from unittest import mock

from torch import fx

from .. import _torch
from ..stitch import Stitched
from . import instrument
from ._errors import BenchError
from .families import Size
from .instrument import Kernel, record_kernels
from .placement import count
from .rows import Row
from .runner import Runner
from .step import Say
from .variants import VARIANTS

LEVELS: dict[str, Mapping[str, Any] | None] = {
    "stock": None,
    "precise": {"numerics": "precise"},
    "relaxed": {"numerics": "relaxed"},
}
METRICS = {
    "pointwise_bytes": ("fused_bytes", "bytes"),
    "saved_bytes": ("saved_bytes", "bytes"),
    "cast_only_kernels": ("cast_kernels", "kernels"),
}
"""What is counted, what `mp-report-traffic` calls it, and its unit."""


class _Watch:
    """Sees the pair of graphs of one compilation, and counts on it before it is lowered."""

    def __init__(self) -> None:
        self.pair: tuple[fx.GraphModule, fx.GraphModule, int] | None = None
        self.modelled: dict[str, float] = {}
        self.saved = 0

    def look(self) -> None:
        """Count on the pair, at the first call."""
        if self.pair is None or self.modelled:
            return
        stitched = Stitched(*self.pair)
        counts = count(stitched.graph, "", target="cpu")
        self.modelled = {name: counts[key] for name, (key, _) in METRICS.items()}
        kept = [s.node for s in stitched.saved if s.node.op != "placeholder"]
        self.saved = sum(_torch.byte_count(node.meta.get("val")) for node in kept)


class _Partitioner(_torch.CustomPartitionerFn):
    """Inductor's own; ours calls it, and changes the pair after it."""

    def __init__(self, watch: _Watch) -> None:
        self.watch = watch

    def __call__(self, gm: fx.GraphModule, joint_inputs: Any, **kwargs: Any) -> Any:
        """The pair, which the watch notes."""
        pair = _torch.partition(gm, joint_inputs, **kwargs)
        self.watch.pair = (*pair, kwargs["num_fwd_outputs"])
        return pair

    def uuid(self) -> None:
        """Turns caches off: of a graph from a cache nothing would be scheduled."""


class _Look(_torch.CustomGraphPass):
    """Inductor calls it with each of the two graphs, before its own passes."""

    def __init__(self, watch: _Watch) -> None:
        self.watch = watch

    def __call__(self, graph: fx.Graph) -> None:
        """Let the watch look; the graph stays as it is."""
        self.watch.look()

    def uuid(self) -> None:
        """Turns caches off."""


class _ReachedError(Exception):
    """Both graphs are scheduled, and the first kernel would run."""


def _refuse(*_: Any) -> None:
    raise _ReachedError


@contextlib.contextmanager
def _watching(watch: _Watch) -> Iterator[None]:
    from torch._functorch import config as functorch_config
    from torch._inductor import config
    from torch._inductor.async_compile import AsyncCompile

    hooks = {
        _torch.PARTITIONER: _Partitioner(watch),
        "post_grad_custom_pre_pass": _Look(watch),
    }
    with (
        config.patch(hooks),
        functorch_config.patch(force_non_lazy_backward_lowering=True),
        mock.patch.object(AsyncCompile, "cpp_pybinding", return_value=_refuse),
        contextlib.suppress(_ReachedError),
    ):
        yield


def measure_model(family: str, size: Size, say: Say) -> list[Row]:
    """Return each count of the model, of the compiler, and the ratio of both.

    Raises:
        BenchError: Inductor scheduled nothing, or there was no pair of graphs.
    """
    rows: list[Row] = []
    for level, options in LEVELS.items():
        say(f"{family}: {level}, scheduling")
        modelled, measured = _counts(family, size, options)
        for name, (_, unit) in METRICS.items():
            ratio = modelled[name] / measured[name] if measured[name] else math.nan
            if measured[name] == modelled[name]:
                ratio = 1.0  # also of none
            found = ((name, modelled[name], unit), (f"{name}.measured", measured[name], unit))
            for metric, value, of in (*found, (f"{name}.ratio", ratio, "ratio")):
                rows.append(Row("placement", family, level, "step", metric, value, of))
    return rows


def _scatters(kernel: Kernel) -> bool:
    """True for what adds into a table, and for the zeros that it starts from: the model has one
    library call for both, the gradient of an embedding."""
    return any("index_put" in name or name.startswith("aten.scatter") for name in kernel.origins)


def _counts(
    family: str, size: Size, options: Mapping[str, Any] | None
) -> tuple[dict[str, float], dict[str, float]]:
    instrument.reset()
    backend = "compile" if options is None else "mpopt"
    runner = Runner(family, size, VARIANTS[f"{backend}-autocast-bf16"], options)
    watch = _Watch()
    with record_kernels() as kernels, _watching(watch):
        runner.forward()
    if not kernels or not watch.modelled:
        raise BenchError(f"{family}: Inductor scheduled nothing")
    return watch.modelled, {
        "pointwise_bytes": sum(k.bytes for k in kernels if not k.extern and not _scatters(k)),
        "saved_bytes": watch.saved,
        "cast_only_kernels": sum(k.role is not None for k in kernels),
    }
