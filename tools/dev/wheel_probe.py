"""What an installed mpopt must do; check_wheel.py runs each probe in a process of its own.

Usage: wheel_probe.py NAME [ARGUMENT...], with the interpreter of the environment that has it.
"""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

KERNEL = """
#mk = affine_map<(m, n, k) -> (m, k)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
func.func @kernel(%a: tensor<64x64xbf16>, %b: tensor<64x64xbf16>) -> tensor<64x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %none = tensor.empty() : tensor<64x64xf32>
  %start = linalg.fill ins(%zero : f32) outs(%none : tensor<64x64xf32>) -> tensor<64x64xf32>
  %sum = linalg.generic {indexing_maps = [#mk, #nk, #mn],
                         iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<64x64xbf16>, tensor<64x64xbf16>)
      outs(%start : tensor<64x64xf32>) {
    ^bb0(%x: bf16, %y: bf16, %c: f32):
      %xe = arith.extf %x : bf16 to f32
      %ye = arith.extf %y : bf16 to f32
      %p = arith.mulf %xe, %ye : f32
      %s = arith.addf %c, %p : f32
      linalg.yield %s : f32
  } -> tensor<64x64xf32>
  %out = tensor.empty() : tensor<64x64xbf16>
  %result = linalg.generic {indexing_maps = [#id, #id],
                            iterator_types = ["parallel", "parallel"]}
      ins(%sum : tensor<64x64xf32>) outs(%out : tensor<64x64xbf16>) {
    ^bb0(%v: f32, %o: bf16):
      %h = arith.truncf %v : f32 to bf16
      linalg.yield %h : bf16
  } -> tensor<64x64xbf16>
  return %result : tensor<64x64xbf16>
}
"""

GRAPH = b"""
func.func @inference(%a: tensor<4x8xbf16>, %b: tensor<8x8xbf16>) -> tensor<4x8xbf16> {
  %0 = mp.cast %a origin(autocast) : tensor<4x8xbf16> to tensor<4x8xf32>
  %1 = mp.cast %0 origin(autocast) : tensor<4x8xf32> to tensor<4x8xbf16>
  %2 = mp.matmul %1, %b : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
  return %2 : tensor<4x8xbf16>
}
"""


def make_kernels() -> None:
    """Both code generators work: machine code for this CPU, PTX for a GPU."""
    from mpopt import _codegen

    assert _codegen.compile_cpu(KERNEL) != 0
    (kernel,) = _codegen.compile_cuda(KERNEL, "sm_80")
    assert ".target sm_80" in kernel["ptx"] and "mma.sync" in kernel["ptx"], kernel["ptx"]


def run_passes() -> None:
    """The compiler in process parses a module and runs passes on it."""
    from mpopt import _mpopt

    module = _mpopt.Module.parse(GRAPH)
    module.run("func.func(mp-normalize,mp-eliminate-casts)")
    assert "fold-exact-round-trip" in str(module), str(module)


def alone() -> None:
    """The package without PyTorch, triton and numpy."""
    for name in ("torch", "triton", "numpy"):
        assert importlib.util.find_spec(name) is None, name
    import mpopt

    assert mpopt.__version__ == importlib.metadata.version("mpopt")
    loaded = {name for name in sys.modules if name.startswith("mpopt._")}
    assert not loaded, f"import mpopt loads {loaded}"
    stubs()
    run_passes()
    make_kernels()


def orders(*names: str) -> None:
    """All libraries of ours after, before and between those with an LLVM of their own.

    "global" shows the symbols of what is loaded next to all others.
    """
    for name in names:
        if name == "global":
            sys.setdlopenflags(os.RTLD_NOW | os.RTLD_GLOBAL)
        elif name == "operators":
            from mpopt import region_op

            region_op.load()
        else:
            importlib.import_module(name)
    import torch

    run_passes()
    make_kernels()
    if "triton" in names:
        use_triton()
    make_kernels()
    product = torch.ones(8, 8) @ torch.ones(8, 8)
    assert product.sum().item() == 512


def use_triton() -> None:
    """Triton's MLIR still works beside ours."""
    triton_c: Any = importlib.import_module("triton._C.libtriton")
    context = triton_c.ir.context()
    triton_c.ir.load_dialects(context)
    builder = triton_c.ir.builder(context)
    assert "module" in str(builder.create_module())


def no_triton() -> None:
    """A CPU's PyTorch comes without triton: a model compiles all the same."""
    hide("triton")
    model("cpu")


def hide(hidden: str) -> None:
    """Make a package impossible to import, here and in processes that are started."""

    class Nothing:
        def find_spec(self, name: str, *_: object) -> None:
            if name.partition(".")[0] == hidden:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    sys.meta_path.insert(0, Nothing())
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"


def backend() -> None:
    """PyTorch finds the backend by the entry point of the package that is installed."""
    import mpopt
    import torch

    assert Path(sys.prefix) in Path(mpopt.__file__).parents, mpopt.__file__
    entries = importlib.metadata.entry_points(group="torch_dynamo_backends")
    assert [entry.value for entry in entries if entry.name == "mpopt"] == ["mpopt.backend:mpopt"]
    assert "mpopt" in torch._dynamo.list_backends(exclude_tags=())
    assert "mpopt._codegen" not in sys.modules


def model(regions: str, folder: str = "") -> None:
    """A step of a small model in bf16 with `regions`; `folder` gets a bundle and a .pt2."""
    import mpopt
    import torch
    from torch import nn

    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256))
    x = torch.randn(256, 256)
    exact = _step(net.double(), x.double(), half=False)
    net = net.float()
    eager = _step(net, x)
    options: dict[str, Any] = {"regions": regions, "strict": True}
    if folder:
        options["dump"] = folder
    found = _step(torch.compile(net, backend="mpopt", options=options), x)
    for ours, theirs, right in zip(found, eager, exact, strict=True):
        bound = 1.05 * _distance(theirs, right)
        assert _distance(ours, right) <= bound, f"{_distance(ours, right)} > {bound}"
    count = mpopt.counters["regions"]
    assert (count > 0) == (regions != "off"), f"{count} kernels of ours with regions {regions}"
    # Whoever wants no kernels does not pay for the code generator.
    assert ("mpopt._codegen" in sys.modules) == (regions != "off")
    if folder:
        torch.export.save(torch.export.export(net, (x,)), Path(folder) / "model.pt2")


def _step(net: Any, x: Any, half: bool = True) -> list[Any]:
    """Loss and gradients, as copies."""
    import torch

    net.zero_grad()
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        loss = net(x).to(x.dtype).square().mean()
    loss.backward()
    return [loss.detach(), *(parameter.grad.clone() for parameter in net.parameters())]


def _distance(value: Any, right: Any) -> float:
    return float((value.double() - right.double()).norm() / right.double().norm())


def stubs() -> None:
    """The stubs name what the extension modules have."""
    for name in ("_mpopt", "_codegen"):
        module = importlib.import_module(f"mpopt.{name}")
        stub = ast.parse(Path(str(module.__file__)).with_name(f"{name}.pyi").read_text())
        definitions = (ast.FunctionDef, ast.ClassDef)
        said = {node.name for node in stub.body if isinstance(node, definitions)}
        there = {found for found in vars(module) if not found.startswith("_")}
        assert said == there, f"{name}: {said ^ there}"


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
