"""What is run on the device, each check with its result for the report."""

from __future__ import annotations

import functools
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from .. import region_op
from .texts import Matmul, Rows, Sample, catalogue


@dataclass
class Report:
    """What was found, and until when to go on.

    Attributes:
        deadline: of `time.monotonic`; what has not begun by then is skipped.
    """

    deadline: float
    results: list[dict[str, Any]] = field(default_factory=list)

    def run(self, section: str, name: str, check: Callable[[], dict[str, Any]]) -> None:
        """Do one check. Whatever it raises is a failure with its reason."""
        if time.monotonic() > self.deadline:
            self._add(section, name, "skipped", why="no time left")
            return
        start = time.monotonic()
        try:
            figures = check()
        except Exception as error:  # the other checks are to run
            last = traceback.extract_tb(error.__traceback__)[-1]
            why = f"{type(error).__name__}: {error} ({last.filename}:{last.lineno})"
            self._add(section, name, "failed", why=why)
            return
        seconds = round(time.monotonic() - start, 3)
        self._add(section, name, "passed", seconds=seconds, **figures)

    def stopped(self, section: str) -> None:
        """Somebody stopped the run in this section."""
        self._add(section, "the rest", "failed", why="stopped from outside")

    def _add(self, section: str, name: str, status: str, **figures: Any) -> None:
        self.results.append({"section": section, "name": name, "status": status, **figures})

    def names(self, status: str) -> list[str]:
        """The checks that ended so."""
        return [f"{r['section']}: {r['name']}" for r in self.results if r["status"] == status]


class WrongError(Exception):
    """A result is wrong."""


def call(sample: Sample) -> list[Tensor]:
    """The kernel of a sample, run."""
    return region_op.load()(sample.inputs, sample.text, sample.sizes)  # type: ignore[no-any-return]


def compare(sample: Sample, results: list[Tensor]) -> dict[str, Any]:
    """How near each result is to its bound; raises WrongError beyond it."""
    worst = 0.0
    for number, result in enumerate(results):
        distance = (result.double() - sample.expected[number]).abs()
        share = float((distance / sample.tolerance[number]).max())
        if not share <= 1:
            at = int((distance / sample.tolerance[number]).nan_to_num(1e30).argmax())
            raise WrongError(
                f"result {number}, element {at}: {float(result.flatten()[at])} where "
                f"{float(sample.expected[number].flatten()[at])} is right"
            )
        worst = max(worst, share)
    return {"share_of_bound": worst}


def check_kernels(report: Report, device: str) -> None:
    """Each kernel of the catalogue against fp64."""
    for kernel in catalogue(tf32=device == "cuda"):
        report.run("kernels", kernel.name, functools.partial(_check, kernel, device))


def _check(kernel: Matmul | Rows, device: str) -> dict[str, Any]:
    sample = kernel.sample(device)
    figures = compare(sample, call(sample))
    again = call(sample)
    if not all(map(torch.equal, again, call(sample))):
        raise WrongError("two calls give different bits")
    return figures


def check_launches(report: Report, device: str) -> None:
    """Streams, and graphs that are captured."""
    if device != "cuda":
        return
    report.run("launch", "another stream", _on_another_stream)
    report.run("launch", "captured graph", _in_a_captured_graph)


def _on_another_stream() -> dict[str, Any]:
    sample = Matmul(512, 512, 512).sample("cuda")
    cuda: Any = torch.cuda
    stream = cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        cuda._sleep(10_000_000)  # so that a kernel elsewhere would be done before
        results = call(sample)
        if stream.query():
            raise WrongError("the kernel did not run on PyTorch's current stream")
    stream.synchronize()
    return compare(sample, results)


def _in_a_captured_graph() -> dict[str, Any]:
    # One that needs workspace, which a captured graph must own.
    sample = Matmul(
        64, 64, 16384, lhs_transposed=True, rhs_transposed=False, epilogue="none"
    ).sample("cuda")
    call(sample)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = call(sample)
    for result in results:
        result.zero_()
    for _ in range(3):
        graph.replay()
    torch.cuda.synchronize()
    return compare(sample, results)
