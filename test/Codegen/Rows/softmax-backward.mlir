// The gradient of a softmax from its result.
//
// RUN: mpopt-codegen %s --emit=nvvm | FileCheck %s
// CHECK: llvm.func @kernel({{.*}}) attributes {{{.*}}nvvm.kernel

#e = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>

func.func @kernel(%dy: tensor<?x768xbf16>, %y: tensor<?x768xbf16>)
    -> (tensor<?x768xbf16>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %rows = tensor.dim %dy, %c0 : tensor<?x768xbf16>
  %e1 = tensor.empty(%rows) : tensor<?xf32>
  %e2 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<?xf32>) -> tensor<?xf32>
  %sum = linalg.generic {indexing_maps = [#e, #e, #row], iterator_types = ["parallel", "reduction"]}
      ins(%dy, %y : tensor<?x768xbf16>, tensor<?x768xbf16>) outs(%e2 : tensor<?xf32>) {
  ^bb0(%b0: bf16, %b1: bf16, %o0: f32):
    %vd = arith.extf %b0 : bf16 to f32
    %vy = arith.extf %b1 : bf16 to f32
    %vp = arith.mulf %vd, %vy : f32
    %vs = arith.addf %o0, %vp : f32
    linalg.yield %vs : f32
  } -> tensor<?xf32>
  %e3 = tensor.empty(%rows) : tensor<?x768xbf16>
  %dx = linalg.generic {indexing_maps = [#e, #e, #row, #e], iterator_types = ["parallel", "parallel"]}
      ins(%dy, %y, %sum : tensor<?x768xbf16>, tensor<?x768xbf16>, tensor<?xf32>) outs(%e3 : tensor<?x768xbf16>) {
  ^bb0(%b0: bf16, %b1: bf16, %b2: f32, %o0: bf16):
    %vd = arith.extf %b0 : bf16 to f32
    %vy = arith.extf %b1 : bf16 to f32
    %vp = arith.subf %vd, %b2 : f32
    %vs = arith.mulf %vp, %vy : f32
    %vt = arith.truncf %vs : f32 to bf16
    linalg.yield %vt : bf16
  } -> tensor<?x768xbf16>
  return %dx : tensor<?x768xbf16>
}
