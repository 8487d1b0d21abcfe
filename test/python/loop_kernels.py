"""Kernels as plain loops, by tools of LLVM: slow, right, and independent of our backends.

One task runs all of a kernel, so sums go from left to right in f32.
"""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from mpopt import region_op

_BOUNDARIES = "bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map"
PASSES = [
    "--llvm-request-c-wrappers",
    f"--one-shot-bufferize={_BOUNDARIES}",
    "--buffer-results-to-out-params=modify-public-functions",
    "--convert-linalg-to-loops",
    "--arith-expand=include-bf16",
    "--math-expand-ops=ops=rsqrt",
    "--convert-math-to-libm",
    "--expand-strided-metadata",
    "--lower-affine",
    "--convert-scf-to-cf",
    "--convert-index-to-llvm",
    "--finalize-memref-to-llvm",
    "--convert-arith-to-llvm",
    "--convert-math-to-llvm",
    "--convert-cf-to-llvm",
    "--convert-func-to-llvm",
    "--reconcile-unrealized-casts",
]
HEAD = """
#include <stdint.h>
typedef struct { int32_t phases;
  int64_t (*scratch)(const int64_t *, int32_t);
  int64_t (*tasks)(int32_t, const int64_t *, int32_t);
  void (*run)(int32_t, int64_t, int64_t, void *const *, const int64_t *, void *, int32_t);
} CpuKernel;
static int64_t none(const int64_t *s, int32_t t) { return 0; }
static int64_t one(int32_t p, const int64_t *s, int32_t t) { return 1; }
"""

_made: dict[str, ctypes.CDLL] = {}
compiled: list[str] = []
"""The texts of all kernels so far, in order."""


def need_tools():
    """Skip a test where the tools are missing."""
    for tool in ("mlir-opt", "mlir-translate", "clang"):
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool}")


def compile_cpu(text: str) -> int:
    """The address of a CpuKernel."""
    compiled.append(text)
    key = hashlib.sha256(text.encode()).hexdigest()
    if key not in _made:
        _made[key] = _build(text)
    return ctypes.addressof(ctypes.c_char.in_dll(_made[key], "kernel_table"))


def _build(text: str) -> ctypes.CDLL:
    folder = Path(tempfile.mkdtemp(prefix="mpopt-loops-"))
    source, table = folder / "kernel.ll", folder / "table.c"
    lowered = _run(["mlir-opt", *PASSES], text)
    source.write_text(_run(["mlir-translate", "--mlir-to-llvmir"], lowered))
    table.write_text(_table(text))
    library = folder / "kernel.so"
    flags = ["-O1", "-ffp-contract=off", "-w", "-shared", "-fPIC", "-Wno-override-module"]
    _run(["clang", *flags, str(source), str(table), "-lm", "-o", str(library)], "")
    return ctypes.CDLL(str(library))


def _run(command: list[str], text: str) -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode != 0:
        raise ValueError(f"{command[0]}: {done.stderr[:2000]}\n{text}")
    return done.stdout


def _table(text: str) -> str:
    """C that calls the function on descriptors of its buffers."""
    signature = region_op.signature(text)
    lines, names = [], []
    for number, kind in enumerate((*signature.arguments, *signature.results)):
        rank = len(kind.shape)
        sizes = ["s[0]" if extent is None else str(extent) for extent in kind.shape]
        strides = ["*".join(["1", *sizes[axis + 1 :]]) for axis in range(rank)]
        extra = f"int64_t n[{rank}], t[{rank}];" if rank else ""
        values = f", {{{', '.join(sizes)}}}, {{{', '.join(strides)}}}" if rank else ""
        lines.append(
            f"struct {{ void *a, *d; int64_t o; {extra} }} m{number} = "
            f"{{ b[{number}], b[{number}], 0{values} }};"
        )
        names.append(f"&m{number}")
    void = ", ".join(["void *"] * len(names))
    return f"""{HEAD}
void _mlir_ciface_kernel({void});
static void run(int32_t p, int64_t x, int64_t y, void *const *b, const int64_t *s, void *c,
                int32_t t) {{
  {" ".join(lines)}
  _mlir_ciface_kernel({", ".join(names)});
}}
CpuKernel kernel_table = {{1, none, one, run}};
"""
