"""Kernels in the form of the backend contract, as text, for tests of the backends."""

from __future__ import annotations

from dataclasses import dataclass

Extent = int | str  # "?" for one that is known only at run time

_HEAD = """\
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
"""

_EPILOGUES = {
    # accumulator %a, bias %b, residual %r -> one value of the operands' type
    "bias-relu-residual": """\
    %s = arith.addf %a, %b : f32
    %relu = arith.maximumf %s, %zero : f32
    %h = arith.truncf %relu : f32 to {t}
    %hf = arith.extf %h : {t} to f32
    %rf = arith.extf %r : {t} to f32
    %y = arith.addf %hf, %rf : f32
    %yh = arith.truncf %y : f32 to {t}
""",
    "none": "",
}


@dataclass(frozen=True)
class Matmul:
    """result = epilogue(lhs @ rhs); `layout` says which operands are stored transposed."""

    m: Extent
    n: int
    k: Extent
    type: str = "f16"
    layout: str = "NT"
    epilogue: str = "none"
    lhs_sum: bool = False

    @property
    def lhs(self) -> str:
        shape = f"{self.k}x{self.m}" if self.layout[0] == "T" else f"{self.m}x{self.k}"
        return f"tensor<{shape}x{self.type}>"

    @property
    def rhs(self) -> str:
        shape = f"{self.n}x{self.k}" if self.layout[1] == "T" else f"{self.k}x{self.n}"
        return f"tensor<{shape}x{self.type}>"

    def result(self, element: str) -> str:
        return f"tensor<{self.m}x{self.n}x{element}>"

    def _rows(self) -> str:
        """The dynamic extents of a result, as operands of tensor.empty."""
        return "%rows" if self.m == "?" else ""

    def _contraction(self) -> str:
        lhs = "k, m" if self.layout[0] == "T" else "m, k"
        rhs = "n, k" if self.layout[1] == "T" else "k, n"
        acc = self.result("f32")
        rows = f"  %rows = tensor.dim %x, %c0 : {self.lhs}\n" if self.m == "?" else ""
        widen = (
            ""
            if self.type == "f32"
            else (
                f"    %lf = arith.extf %l : {self.type} to f32\n"
                f"    %wf = arith.extf %v : {self.type} to f32\n"
            )
        )
        left, right = ("%l", "%v") if self.type == "f32" else ("%lf", "%wf")
        return (
            f"{rows}"
            f"  %e = tensor.empty({self._rows()}) : {acc}\n"
            f"  %z = linalg.fill ins(%zero : f32) outs(%e : {acc}) -> {acc}\n"
            f"  %acc = linalg.generic {{indexing_maps = [affine_map<(m, n, k) -> ({lhs})>,\n"
            f"      affine_map<(m, n, k) -> ({rhs})>, affine_map<(m, n, k) -> (m, n)>],\n"
            f'      iterator_types = ["parallel", "parallel", "reduction"]}}\n'
            f"      ins(%x, %w : {self.lhs}, {self.rhs}) outs(%z : {acc}) {{\n"
            f"  ^bb0(%l: {self.type}, %v: {self.type}, %c: f32):\n"
            f"{widen}"
            f"    %p = arith.mulf {left}, {right} : f32\n"
            f"    %s = arith.addf %c, %p : f32\n"
            f"    linalg.yield %s : f32\n"
            f"  }} -> {acc}\n"
        )

    def _epilogue(self) -> str:
        half = self.result(self.type)
        element, column = "affine_map<(m, n) -> (m, n)>", "affine_map<(m, n) -> (n)>"
        return (
            f"  %o = tensor.empty({self._rows()}) : {half}\n"
            f"  %y = linalg.generic {{indexing_maps = [{element}, {column},\n"
            f"      {element}, {element}],\n"
            f'      iterator_types = ["parallel", "parallel"]}}\n'
            f"      ins(%acc, %bias, %residual : {self.result('f32')},\n"
            f"          tensor<{self.n}xf32>, {half})\n"
            f"      outs(%o : {half}) {{\n"
            f"  ^bb0(%a: f32, %b: f32, %r: {self.type}, %u: {self.type}):\n"
            f"{_EPILOGUES[self.epilogue].format(t=self.type)}"
            f"    linalg.yield %yh : {self.type}\n"
            f"  }} -> {half}\n"
        )

    def _lhs_sum(self) -> str:
        last = "d1, d0" if self.layout[0] == "T" else "d0, d1"
        total = f"tensor<{self.m}xf32>"
        return (
            f"  %se = tensor.empty({self._rows()}) : {total}\n"
            f"  %sz = linalg.fill ins(%zero : f32) outs(%se : {total}) -> {total}\n"
            f"  %sum = linalg.generic {{indexing_maps = [affine_map<(d0, d1) -> ({last})>,\n"
            f'      affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}}\n'
            f"      ins(%x : {self.lhs}) outs(%sz : {total}) {{\n"
            f"  ^bb0(%l: {self.type}, %c: f32):\n"
            f"    %lf = arith.extf %l : {self.type} to f32\n"
            f"    %s = arith.addf %c, %lf : f32\n"
            f"    linalg.yield %s : f32\n"
            f"  }} -> {total}\n"
        )

    def text(self) -> str:
        arguments = [f"%x: {self.lhs}", f"%w: {self.rhs}"]
        body = _HEAD + self._contraction()
        results = [("%acc", self.result("f32"))]
        if self.epilogue != "none":
            arguments += [
                f"%bias: tensor<{self.n}xf32>",
                f"%residual: {self.result(self.type)}",
            ]
            body += self._epilogue()
            results = [("%y", self.result(self.type))]
        if self.lhs_sum:
            body += self._lhs_sum()
            results.append(("%sum", f"tensor<{self.m}xf32>"))
        values = ", ".join(value for value, _ in results)
        types = ", ".join(kind for _, kind in results)
        tf32 = " attributes {mp.tf32 = true}" if self.type == "f32" else ""
        return (
            f"func.func @kernel({', '.join(arguments)}) -> ({types}){tf32} {{\n"
            f"{body}  return {values} : {types}\n}}\n"
        )
