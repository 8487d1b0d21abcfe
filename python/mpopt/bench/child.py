"""Measurements that need a process of their own: cold compilation and peak memory."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from ._errors import BenchError
from .families import Size

Job = Literal["compile", "memory"]
_STATUS = Path("/proc/self/status")
_LAST_LINES = 15  # of a failed process's output that go into the error


def run_child(
    job: Job,
    family: str,
    size: Size,
    variant: str,
    options: Mapping[str, Any],
    *,
    fresh_cache: bool = False,
) -> dict[str, Any]:
    """Run a job in a fresh process and return its result.

    Args:
        job: "compile" gives `first_s` and `second_s`; "memory" gives `peak_rss_bytes`.
        family: which model.
        size: at which size.
        variant: name of the variant.
        options: of the mpopt backend.
        fresh_cache: give Inductor an empty cache that is dropped afterwards.

    Raises:
        BenchError: the process failed; holds the end of its output.
    """
    with tempfile.TemporaryDirectory(prefix="mpopt-bench-") as folder:
        env = dict(os.environ)
        root = str(Path(__file__).resolve().parents[2])
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [root, env.get("PYTHONPATH")]))
        if fresh_cache:
            env["TORCHINDUCTOR_CACHE_DIR"] = str(Path(folder) / "cache")
        result = Path(folder) / "result.json"
        spec = {
            "job": job,
            "family": family,
            "size": size,
            "variant": variant,
            "options": dict(options),
            "result": str(result),
        }
        done = subprocess.run(
            [sys.executable, "-m", "mpopt.bench.child", json.dumps(spec)],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != 0 or not result.exists():
            tail = "\n".join(done.stdout.splitlines()[-_LAST_LINES:])
            raise BenchError(
                f"{family}, {variant}: the process that measures '{job}' ended with "
                f"exit code {done.returncode}:\n{tail}"
            )
        values: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
        return values


def _status_bytes(key: str) -> int:
    for line in _STATUS.read_text(encoding="ascii").splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    raise BenchError(f"{_STATUS} has no {key}; peak memory can be measured on Linux only")


def _pay_once() -> None:
    """What the first compilation of a process and cache costs, whichever the backend.

    Loading Inductor, probing the machine's vector instructions, precompiling headers:
    stock loads Inductor when `torch.compile` is called, a backend that is a function when
    it compiles. Counted there, it would be the difference.
    """
    import torch

    torch.compile(lambda x: x.sin())(torch.ones(64))
    torch._dynamo.reset()


def _compile_times(runner: Any) -> dict[str, float]:
    _pay_once()
    times = []
    for _ in range(2):
        start = time.perf_counter()
        runner.backward(runner.forward())
        times.append(time.perf_counter() - start)
    return {"first_s": times[0], "second_s": times[1]}


def _peak_memory(runner: Any) -> dict[str, int]:
    """Highest resident memory of two steps, after compilation has left the record."""
    for _ in range(2):
        runner.step()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak starts anew
    for _ in range(2):
        runner.step()
    return {"peak_rss_bytes": _status_bytes("VmHWM")}


def main(spec: Mapping[str, Any]) -> None:
    """Do the job that `run_child` describes and write its result."""
    from .runner import Runner
    from .variants import VARIANTS

    variant = VARIANTS[spec["variant"]]
    runner = Runner(spec["family"], spec["size"], variant, spec["options"])
    jobs = {"compile": _compile_times, "memory": _peak_memory}
    result = jobs[spec["job"]](runner)
    Path(spec["result"]).write_text(json.dumps(result), encoding="utf-8")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
