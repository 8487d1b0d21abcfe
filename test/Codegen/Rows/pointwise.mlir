// A pointwise chain with two results.
//
// RUN: mpopt-codegen %s --emit=nvvm | FileCheck %s
// CHECK: llvm.func @kernel({{.*}}) attributes {{{.*}}nvvm.kernel

#e = affine_map<(r, c) -> (r, c)>
#col = affine_map<(r, c) -> (c)>

func.func @kernel(%x: tensor<?x768xbf16>, %bias: tensor<768xf32>, %r: tensor<?x768xf32>)
    -> (tensor<?x768xbf16>, tensor<?x768xf32>) {
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %x, %c0 : tensor<?x768xbf16>
  %e1 = tensor.empty(%rows) : tensor<?x768xbf16>
  %e2 = tensor.empty(%rows) : tensor<?x768xf32>
  %y, %s = linalg.generic {indexing_maps = [#e, #col, #e, #e, #e], iterator_types = ["parallel", "parallel"]}
      ins(%x, %bias, %r : tensor<?x768xbf16>, tensor<768xf32>, tensor<?x768xf32>) outs(%e1, %e2 : tensor<?x768xbf16>, tensor<?x768xf32>) {
  ^bb0(%b0: bf16, %b1: f32, %b2: f32, %o0: bf16, %o1: f32):
    %vx = arith.extf %b0 : bf16 to f32
    %va = arith.addf %vx, %b1 : f32
    %vh = math.tanh %va : f32
    %vu = arith.addf %vh, %b2 : f32
    %vt = arith.truncf %vu : f32 to bf16
    linalg.yield %vt, %vu : bf16, f32
  } -> (tensor<?x768xbf16>, tensor<?x768xf32>)
  return %y, %s : tensor<?x768xbf16>, tensor<?x768xf32>
}
