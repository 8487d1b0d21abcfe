"""Command line: `python -m mpopt.gpu_check [--json FILE] [--seconds N] [--device cuda|cpu]`.

Exit codes: 0 all is right, or there is no GPU; 1 something failed; 2 a bad argument.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from .. import native
from .checks import Report, check_kernels, check_launches
from .speed import check_speed, check_training, geometric_means
from .update import check_update

_SECONDS = 420.0


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tools/gpu-check.sh", description=__doc__)
    parser.add_argument("--json", metavar="FILE", default="gpu-check.json")
    parser.add_argument("--seconds", type=float, default=_SECONDS, help="begin no check after")
    help_text = "cpu: the same checks, small, of the CPU's kernels"
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help=help_text)
    parser.add_argument("--only", help="sections, comma-separated", default="")
    return parser.parse_args(argv)


def _machine(device: str) -> dict[str, Any]:
    found = {"torch": torch.__version__, "mpopt": native.load().version(), "device": device}
    if device != "cuda":
        return {**found, "processor": platform.processor() or platform.machine()}
    properties = torch.cuda.get_device_properties(0)
    return {
        **found,
        "gpu": properties.name,
        "capability": f"{properties.major}.{properties.minor}",
        "multiprocessors": properties.multi_processor_count,
        "cuda": torch.version.cuda,
    }


_SECTIONS = {
    "kernels": check_kernels,
    "launch": check_launches,
    "update": check_update,
    "training": check_training,
    "speed": check_speed,
}
"""In the order of what matters most, for time may run out."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    arguments = _arguments(argv)
    chosen = arguments.only.split(",") if arguments.only else list(_SECTIONS)
    if unknown := [name for name in chosen if name not in _SECTIONS]:
        print(f"error: no section {unknown[0]!r}; known: {', '.join(_SECTIONS)}", file=sys.stderr)
        return 2
    if arguments.device == "cuda" and not torch.cuda.is_available():
        print("no GPU that PyTorch can use: nothing is checked")
        _write(arguments.json, {"status": "no GPU", "torch": torch.__version__, "results": []})
        return 0
    start = time.monotonic()
    report = Report(start + arguments.seconds)
    for name in chosen:
        print(f"== {name} ({time.monotonic() - start:.0f} s)", flush=True)
        try:
            _SECTIONS[name](report, arguments.device)
        except KeyboardInterrupt:
            report.stopped(name)
            break
        _save(report, arguments, time.monotonic() - start)  # whatever becomes of the next
    data = _save(report, arguments, time.monotonic() - start)
    _say(report, data, arguments.json)
    return 1 if data["failed"] else 0


def _save(report: Report, arguments: argparse.Namespace, seconds: float) -> dict[str, Any]:
    failed, skipped = report.names("failed"), report.names("skipped")
    data = {
        "status": "failed" if failed else "passed",
        "seconds": round(seconds, 1),
        "machine": _machine(arguments.device),
        "failed": failed,
        "skipped": skipped,
        "ratio_means": dict(geometric_means(report)),
        "results": report.results,
    }
    _write(arguments.json, data)
    return data


def _say(report: Report, data: dict[str, Any], path: str) -> None:
    for section, mean in data["ratio_means"].items():
        print(f"{section}: {mean:.3f} times as fast as PyTorch (geometric mean)")
    for result in report.results:
        if result["status"] == "failed":
            print(f"failed: {result['section']}: {result['name']}: {result['why']}")
    counts = f"{len(report.names('passed'))} passed, {len(data['failed'])} failed"
    print(f"{data['status']}: {counts}, {len(data['skipped'])} skipped; {path} has all figures")


def _write(path: str, data: dict[str, Any]) -> None:
    Path(path).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
