// RMS norm with its saved statistic.
//
// RUN: mpopt-codegen %s --emit=nvvm | FileCheck %s
// CHECK: llvm.func @kernel({{.*}}) attributes {{{.*}}nvvm.kernel

#e = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#col = affine_map<(r, c) -> (c)>
#v = affine_map<(i) -> (i)>

func.func @kernel(%x: tensor<?x768xbf16>, %g: tensor<768xf32>)
    -> (tensor<?x768xbf16>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = arith.constant 768.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  %rows = tensor.dim %x, %c0 : tensor<?x768xbf16>
  %e1 = tensor.empty(%rows) : tensor<?xf32>
  %e2 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<?xf32>) -> tensor<?xf32>
  %sq = linalg.generic {indexing_maps = [#e, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x768xbf16>) outs(%e2 : tensor<?xf32>) {
  ^bb0(%b0: bf16, %o0: f32):
    %vx = arith.extf %b0 : bf16 to f32
    %vq = arith.mulf %vx, %vx : f32
    %vs = arith.addf %o0, %vq : f32
    linalg.yield %vs : f32
  } -> tensor<?xf32>
  %e3 = tensor.empty(%rows) : tensor<?xf32>
  %rstd = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
      ins(%sq : tensor<?xf32>) outs(%e3 : tensor<?xf32>) {
  ^bb0(%b0: f32, %o0: f32):
    %vq = arith.divf %b0, %n : f32
    %vp = arith.addf %vq, %eps : f32
    %vs = math.rsqrt %vp : f32
    linalg.yield %vs : f32
  } -> tensor<?xf32>
  %e4 = tensor.empty(%rows) : tensor<?x768xbf16>
  %y = linalg.generic {indexing_maps = [#e, #row, #col, #e], iterator_types = ["parallel", "parallel"]}
      ins(%x, %rstd, %g : tensor<?x768xbf16>, tensor<?xf32>, tensor<768xf32>) outs(%e4 : tensor<?x768xbf16>) {
  ^bb0(%b0: bf16, %b1: f32, %b2: f32, %o0: bf16):
    %vx = arith.extf %b0 : bf16 to f32
    %vq = arith.mulf %vx, %b1 : f32
    %vp = arith.mulf %vq, %b2 : f32
    %vt = arith.truncf %vp : f32 to bf16
    linalg.yield %vt : bf16
  } -> tensor<?x768xbf16>
  return %y, %rstd : tensor<?x768xbf16>, tensor<?xf32>
}
