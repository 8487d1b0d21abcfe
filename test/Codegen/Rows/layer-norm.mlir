// Residual sum, layer norm, saved statistics.
//
// RUN: mpopt-codegen %s --emit=nvvm | FileCheck %s
// CHECK: llvm.func @kernel({{.*}}) attributes {{{.*}}nvvm.kernel

#e = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#col = affine_map<(r, c) -> (c)>
#v = affine_map<(i) -> (i)>

func.func @kernel(%x: tensor<?x768xbf16>, %r: tensor<?x768xbf16>, %g: tensor<768xf32>, %b: tensor<768xf32>)
    -> (tensor<?x768xbf16>, tensor<?x768xbf16>, tensor<?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = arith.constant 768.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  %rows = tensor.dim %x, %c0 : tensor<?x768xbf16>
  %e1 = tensor.empty(%rows) : tensor<?x768xbf16>
  %h = linalg.generic {indexing_maps = [#e, #e, #e], iterator_types = ["parallel", "parallel"]}
      ins(%x, %r : tensor<?x768xbf16>, tensor<?x768xbf16>) outs(%e1 : tensor<?x768xbf16>) {
  ^bb0(%b0: bf16, %b1: bf16, %o0: bf16):
    %vx = arith.extf %b0 : bf16 to f32
    %vy = arith.extf %b1 : bf16 to f32
    %vs = arith.addf %vx, %vy : f32
    %vt = arith.truncf %vs : f32 to bf16
    linalg.yield %vt : bf16
  } -> tensor<?x768xbf16>
  %e2 = tensor.empty(%rows) : tensor<?xf32>
  %e3 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<?xf32>) -> tensor<?xf32>
  %sum = linalg.generic {indexing_maps = [#e, #row], iterator_types = ["parallel", "reduction"]}
      ins(%h : tensor<?x768xbf16>) outs(%e3 : tensor<?xf32>) {
  ^bb0(%b0: bf16, %o0: f32):
    %vx = arith.extf %b0 : bf16 to f32
    %vs = arith.addf %o0, %vx : f32
    linalg.yield %vs : f32
  } -> tensor<?xf32>
  %e4 = tensor.empty(%rows) : tensor<?xf32>
  %mean = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
      ins(%sum : tensor<?xf32>) outs(%e4 : tensor<?xf32>) {
  ^bb0(%b0: f32, %o0: f32):
    %vs = arith.divf %b0, %n : f32
    linalg.yield %vs : f32
  } -> tensor<?xf32>
  %e5 = tensor.empty(%rows) : tensor<?xf32>
  %e6 = linalg.fill ins(%zero : f32) outs(%e5 : tensor<?xf32>) -> tensor<?xf32>
  %sq = linalg.generic {indexing_maps = [#e, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%h, %mean : tensor<?x768xbf16>, tensor<?xf32>) outs(%e6 : tensor<?xf32>) {
  ^bb0(%b0: bf16, %b1: f32, %o0: f32):
    %vx = arith.extf %b0 : bf16 to f32
    %vd = arith.subf %vx, %b1 : f32
    %vq = arith.mulf %vd, %vd : f32
    %vs = arith.addf %o0, %vq : f32
    linalg.yield %vs : f32
  } -> tensor<?xf32>
  %e7 = tensor.empty(%rows) : tensor<?xf32>
  %rstd = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
      ins(%sq : tensor<?xf32>) outs(%e7 : tensor<?xf32>) {
  ^bb0(%b0: f32, %o0: f32):
    %vq = arith.divf %b0, %n : f32
    %vp = arith.addf %vq, %eps : f32
    %vs = math.rsqrt %vp : f32
    linalg.yield %vs : f32
  } -> tensor<?xf32>
  %e8 = tensor.empty(%rows) : tensor<?x768xbf16>
  %y = linalg.generic {indexing_maps = [#e, #row, #row, #col, #col, #e], iterator_types = ["parallel", "parallel"]}
      ins(%h, %mean, %rstd, %g, %b : tensor<?x768xbf16>, tensor<?xf32>, tensor<?xf32>, tensor<768xf32>, tensor<768xf32>) outs(%e8 : tensor<?x768xbf16>) {
  ^bb0(%b0: bf16, %b1: f32, %b2: f32, %b3: f32, %b4: f32, %o0: bf16):
    %vx = arith.extf %b0 : bf16 to f32
    %vd = arith.subf %vx, %b1 : f32
    %vq = arith.mulf %vd, %b2 : f32
    %vp = arith.mulf %vq, %b3 : f32
    %vs = arith.addf %vp, %b4 : f32
    %vt = arith.truncf %vs : f32 to bf16
    linalg.yield %vt : bf16
  } -> tensor<?x768xbf16>
  return %h, %y, %mean, %rstd : tensor<?x768xbf16>, tensor<?x768xbf16>, tensor<?xf32>, tensor<?xf32>
}
