"""Kernels of the backend contract as text, with what they compute in fp64.

For checks of the backends alone: no pass of ours has a hand in them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

TYPES = {torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32"}
_GELU = """
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %root = arith.constant 0.707106769 : f32
    %i = arith.mulf %s, %root : f32
    %f = math.erf %i : f32
    %g = arith.addf %f, %one : f32
    %h = arith.mulf %s, %half : f32
    %y = arith.mulf %h, %g : f32"""


@dataclass(frozen=True)
class Sample:
    """A kernel with inputs and what it must give.

    Attributes:
        tolerance: per result, how far each element may be from the expected one.
    """

    name: str
    text: str
    inputs: list[Tensor]
    expected: list[Tensor]
    tolerance: list[Tensor]
    sizes: list[int] = field(default_factory=list)


def _map(loops: str, dims: str) -> str:
    return f"affine_map<({', '.join(loops)}) -> ({', '.join(dims)})>"


def _roundoff(dtype: torch.dtype) -> float:
    return torch.finfo(dtype).eps


# --- matrix products --------------------------------------------------------------


@dataclass(frozen=True)
class Matmul:
    """lhs (m, k) times rhs (k, n), either stored transposed, and then an epilogue:
    "none" (the f32 accumulator), "cast", "bias_gelu" or "residual". `tf32` lets operands of f32
    lose all but ten bits of their mantissas."""

    m: int
    n: int
    k: int
    dtype: torch.dtype = torch.bfloat16
    lhs_transposed: bool = False
    rhs_transposed: bool = True
    epilogue: str = "cast"
    batch: int = 1
    dynamic: bool = False
    tf32: bool = False

    def _dims(self, dims: str) -> list[int]:
        extents = {"b": self.batch, "m": self.m, "n": self.n, "k": self.k}
        return [extents[dim] for dim in dims]

    def _tensor(self, dims: str, dtype: str) -> str:
        sizes = [
            "?" if self._is_dynamic(dim) else str(n)
            for dim, n in zip(dims, self._dims(dims), strict=True)
        ]
        return f"tensor<{'x'.join([*sizes, dtype])}>"

    def _is_dynamic(self, dim: str) -> bool:
        return self.dynamic and dim == "m"

    @property
    def _lead(self) -> str:
        return "b" if self.batch > 1 else ""

    @property
    def _operands(self) -> tuple[str, str]:
        return (
            self._lead + ("km" if self.lhs_transposed else "mk"),
            self._lead + ("nk" if self.rhs_transposed else "kn"),
        )

    @property
    def _extra(self) -> list[tuple[str, str, torch.dtype]]:
        """Name, dimensions and type of what the epilogue reads."""
        if self.epilogue == "bias_gelu":
            return [("bias", "n", torch.float32)]
        if self.epilogue == "residual":
            return [("bias", "n", torch.float32), ("residual", self._lead + "mn", self.dtype)]
        return []

    def text(self) -> str:
        """The kernel's module."""
        element, lhs, rhs = TYPES[self.dtype], *self._operands
        out = self._lead + "mn"
        result = self._tensor(out, "f32" if self.epilogue == "none" else element)
        arguments = [("lhs", self._tensor(lhs, element)), ("rhs", self._tensor(rhs, element))]
        arguments += [(name, self._tensor(d, TYPES[t])) for name, d, t in self._extra]
        listed = ", ".join(f"%{name}: {kind}" for name, kind in arguments)
        allowed = " attributes {mp.tf32 = true}" if self.tf32 else ""
        lines = [
            f"func.func @kernel({listed}) -> {result}{allowed} {{",
            "  %zero = arith.constant 0.0 : f32",
        ]
        if self.dynamic:
            lines += [
                "  %c0 = arith.constant 0 : index",
                f"  %rows = tensor.dim %lhs, %c0 : {self._tensor(lhs, element)}",
            ]
        lines += [self._contraction(element), *self._tail(element)]
        value = "%acc" if self.epilogue == "none" else "%out"
        return "\n".join([*lines, f"  return {value} : {result}", "}", ""])

    def _empty(self, name: str, element: str) -> str:
        rows = "%rows" if self.dynamic else ""
        return f"  %{name} = tensor.empty({rows}) : {self._tensor(self._lead + 'mn', element)}"

    def _loops(self, *last: str) -> str:
        return ", ".join(f'"{kind}"' for kind in ("parallel",) * len(self._lead + "mn") + last)

    def _contraction(self, element: str) -> str:
        lhs, rhs = self._operands
        loops, out = self._lead + "mnk", self._lead + "mn"
        acc = self._tensor(out, "f32")
        maps = ", ".join(_map(loops, dims) for dims in (lhs, rhs, out))
        operands = f"{self._tensor(lhs, element)}, {self._tensor(rhs, element)}"
        wide = [f"    %w{x} = arith.extf %{x} : {element} to f32" for x in "ab"]
        names = ("a", "b") if element == "f32" else ("wa", "wb")
        return "\n".join(
            [
                self._empty("e", "f32"),
                f"  %init = linalg.fill ins(%zero : f32) outs(%e : {acc}) -> {acc}",
                f"  %acc = linalg.generic {{indexing_maps = [{maps}],",
                f"      iterator_types = [{self._loops('reduction')}]}}",
                f"      ins(%lhs, %rhs : {operands}) outs(%init : {acc}) {{",
                f"  ^bb0(%a: {element}, %b: {element}, %c: f32):",
                *(wide if element != "f32" else []),
                f"    %p = arith.mulf %{names[0]}, %{names[1]} : f32",
                "    %s = arith.addf %c, %p : f32",
                "    linalg.yield %s : f32",
                f"  }} -> {acc}",
            ]
        )

    def _tail(self, element: str) -> list[str]:
        if self.epilogue == "none":
            return []
        out = self._lead + "mn"
        read = [("acc", out, torch.float32), *self._extra]
        maps = ", ".join(_map(out, d) for d in (*[d for _, d, _ in read], out))
        kinds = ", ".join(self._tensor(d, TYPES[t]) for _, d, t in read)
        names = ", ".join(f"%{name}" for name, _, _ in read)
        result = self._tensor(out, element)
        values = ", ".join(f"%{name[0]}0: {TYPES[t]}" for name, _, t in read)
        return [
            self._empty("o", element),
            f"  %out = linalg.generic {{indexing_maps = [{maps}],",
            f"      iterator_types = [{self._loops()}]}} ins({names} : {kinds})",
            f"      outs(%o : {result}) {{",
            f"  ^bb0({values}, %old: {element}):{self._body(element)}",
            f"  }} -> {result}",
        ]

    def _body(self, element: str) -> str:
        """The scalar program; %a0, %b0 and %r0 are accumulator, bias and residual."""
        value, text = "%a0", ""
        if self._extra:
            value, text = "%s", "\n    %s = arith.addf %a0, %b0 : f32"
        if self.epilogue == "bias_gelu":
            value, text = "%y", text + _GELU
        if self.epilogue == "residual":
            wide = "%r0" if element == "f32" else "%wr"
            text += "" if element == "f32" else f"\n    %wr = arith.extf %r0 : {element} to f32"
            value, text = "%y", text + f"\n    %y = arith.addf %s, {wide} : f32"
        if element != "f32":
            text += f"\n    %t = arith.truncf {value} : f32 to {element}"
            value = "%t"
        return f"{text}\n    linalg.yield {value} : {element}"

    @property
    def name(self) -> str:
        """Short, unique."""
        layout = "".join("T" if t else "N" for t in (self.lhs_transposed, self.rhs_transposed))
        size = "x".join(map(str, (self.batch, self.m, self.n, self.k)))
        dynamic = " dynamic" if self.dynamic else ""
        return f"matmul {size} {TYPES[self.dtype]} {layout} {self.epilogue}{dynamic}"

    def sample(self, device: str) -> Sample:
        """Random inputs, and the result in fp64."""
        lhs, rhs = (
            torch.randn(self._dims(dims), device=device).to(self.dtype) for dims in self._operands
        )
        extra = [torch.randn(self._dims(d), device=device).to(t) for _, d, t in self._extra]
        a = (lhs.mT if self.lhs_transposed else lhs).double()
        b = (rhs.mT if self.rhs_transposed else rhs).double()
        value = a @ b
        # Each product and sum rounds once in f32, also of what cancels later.
        size = a.abs() @ b.abs()
        slack = size * 2.0**-24 * (4 + self.k**0.5) + 1e-6
        if self.tf32:
            slack = slack + size * 2.0**-10 / self.k**0.5 * 4
        for tensor in extra:
            value = value + tensor.double()
        if self.epilogue == "bias_gelu":
            value, slack = torch.nn.functional.gelu(value), 2 * slack
        kind = torch.float32 if self.epilogue == "none" else self.dtype
        tolerance = slack + _roundoff(kind) * value.abs()
        sizes = [self.m] if self.dynamic else []
        return Sample(self.name, self.text(), [lhs, rhs, *extra], [value], [tolerance], sizes)


# --- rows -------------------------------------------------------------------------


@dataclass(frozen=True)
class Stage:
    """One linalg.generic of a row kernel: its name, what it reads, its body, whether it
    reduces over columns, starting at `start`."""

    name: str
    reads: Sequence[tuple[str, str]]
    body: str
    reduces: bool = False
    start: str = "0.0"


@dataclass(frozen=True)
class Rows:
    """A row kernel, (rows, columns) of `dtype` in and out."""

    kind: str
    rows: int
    columns: int
    dtype: torch.dtype = torch.bfloat16

    @property
    def name(self) -> str:
        """Short, unique."""
        return f"{self.kind} {self.rows}x{self.columns} {TYPES[self.dtype]}"

    def _tensor(self, dims: str, element: str) -> str:
        sizes = [str({"r": self.rows, "c": self.columns}[d]) for d in dims]
        return f"tensor<{'x'.join([*sizes, element])}>"

    def text(self) -> str:
        """The kernel's module."""
        element = TYPES[self.dtype]
        full = self._tensor("rc", element)
        types = {"x": ("rc", element), "w": ("c", "f32")}
        lines = [f"func.func @kernel(%x: {full}, %w: {self._tensor('c', 'f32')}) -> {full} {{"]
        stages = _STAGES[self.kind](self.columns)
        for stage in stages:
            last = stage is stages[-1]
            lines.append(self._stage(stage, types, element if last else "f32"))
            types[stage.name] = ("r" if stage.reduces else "rc", "f32")
        return "\n".join([*lines, f"  return %{stages[-1].name} : {full}", "}", ""])

    def _stage(self, stage: Stage, types: dict[str, tuple[str, str]], element: str) -> str:
        out = "r" if stage.reduces else "rc"
        result = self._tensor(out, element)
        dims = [types[name][0] for name, _ in stage.reads]
        maps = ", ".join(_map("rc", d) for d in (*dims, out))
        names = ", ".join(f"%{name}" for name, _ in stage.reads)
        kinds = ", ".join(self._tensor(*types[name]) for name, _ in stage.reads)
        values, widened = [], []
        for name, value in stage.reads:
            kind = types[name][1]
            values.append(f"%{value if kind == 'f32' else value + 'n'}: {kind}")
            if kind != "f32":
                widened.append(f"    %{value} = arith.extf %{value}n : {kind} to f32")
        target = f"%{stage.name}e"
        lines = [f"  {target} = tensor.empty() : {result}"]
        if stage.reduces:
            start = f"%{stage.name}s"
            filled = f"ins({start} : f32) outs({target} : {result}) -> {result}"
            lines += [
                f"  {start} = arith.constant {stage.start} : f32",
                f"  %{stage.name}i = linalg.fill {filled}",
            ]
            target = f"%{stage.name}i"
        kind = "reduction" if stage.reduces else "parallel"
        end = ["    linalg.yield %v : f32"]
        if element != "f32":
            end = [
                f"    %t = arith.truncf %v : f32 to {element}",
                f"    linalg.yield %t : {element}",
            ]
        return "\n".join(
            [
                *lines,
                f"  %{stage.name} = linalg.generic {{indexing_maps = [{maps}],",
                f'      iterator_types = ["parallel", "{kind}"]}} ins({names} : {kinds})',
                f"      outs({target} : {result}) {{",
                f"  ^bb0({', '.join(values)}, %o: {element}):",
                *widened,
                *[f"    {line}" for line in stage.body.split("\n")],
                *end,
                f"  }} -> {result}",
            ]
        )

    def sample(self, device: str) -> Sample:
        """Random inputs, and the result in fp64."""
        x = (2 * torch.randn(self.rows, self.columns, device=device)).to(self.dtype)
        w = torch.randn(self.columns, device=device)
        value = _ROW_RESULTS[self.kind](x.double(), w.double())
        slack = (_roundoff(self.dtype) + 2.0**-18) * value.abs() + 1e-6
        return Sample(self.name, self.text(), [x, w], [value], [slack])


def _softmax_stages(columns: int) -> list[Stage]:
    del columns
    largest = Stage("largest", [("x", "a")], "%v = arith.maximumf %a, %o : f32", True, "0xFF800000")
    exponent = "%d = arith.subf %a, %b : f32\n%e = math.exp %d : f32"
    total = Stage(
        "total", [("x", "a"), ("largest", "b")], exponent + "\n%v = arith.addf %e, %o : f32", True
    )
    share = Stage(
        "share",
        [("x", "a"), ("largest", "b"), ("total", "c"), ("w", "d0")],
        exponent + "\n%q = arith.divf %e, %c : f32\n%v = arith.mulf %q, %d0 : f32",
    )
    return [largest, total, share]


def _rms_stages(columns: int) -> list[Stage]:
    squares = Stage(
        "squares", [("x", "a")], "%q = arith.mulf %a, %a : f32\n%v = arith.addf %q, %o : f32", True
    )
    scaled = Stage(
        "scaled",
        [("x", "a"), ("squares", "b"), ("w", "c")],
        "\n".join(
            [
                f"%n = arith.constant {1.0 / columns!r} : f32",
                "%eps = arith.constant 1.0e-5 : f32",
                "%mean = arith.mulf %b, %n : f32",
                "%sum = arith.addf %mean, %eps : f32",
                "%rate = math.rsqrt %sum : f32",
                "%p = arith.mulf %a, %rate : f32",
                "%v = arith.mulf %p, %c : f32",
            ]
        ),
    )
    return [squares, scaled]


_STAGES: dict[str, Callable[[int], list[Stage]]] = {
    "softmax": _softmax_stages,
    "rms_norm": _rms_stages,
}
_ROW_RESULTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "softmax": lambda x, w: x.softmax(-1) * w,
    "rms_norm": lambda x, w: x * (x.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * w,
}


# --- all --------------------------------------------------------------------------


def catalogue(tf32: bool = False) -> Iterator[Matmul | Rows]:
    """Each family with each type, layout, epilogue and tail; f32 as TF32 if so wanted."""
    halves = (torch.bfloat16, torch.float16)
    layouts = ((False, False), (False, True), (True, False))
    for dtype, (lhs, rhs) in itertools.product((*halves, torch.float32), layouts):
        for m, n, k in ((256, 384, 128), (200, 136, 72), (13, 24, 1000)):
            loses = tf32 and dtype is torch.float32
            yield Matmul(m, n, k, dtype, lhs, rhs, tf32=loses)
    for dtype, epilogue in itertools.product(halves, ("none", "bias_gelu", "residual")):
        yield Matmul(384, 256, 320, dtype, epilogue=epilogue)
        yield Matmul(129, 250, 98, dtype, epilogue=epilogue)
    for dtype in halves:
        yield Matmul(96, 80, 64, dtype, batch=6)
        yield Matmul(77, 512, 256, dtype, epilogue="bias_gelu", dynamic=True)
        yield Matmul(
            64, 64, 16384, dtype, lhs_transposed=True, rhs_transposed=False, epilogue="none"
        )
    for kind, dtype in itertools.product(_STAGES, (*halves, torch.float32)):
        if dtype is not torch.float32:
            for rows, columns in ((64, 1024), (7, 4096), (130, 771), (3, 50257)):
                yield Rows(kind, rows, columns, dtype)
