// The gradients of a layer norm: input, scale (f32) and shift (half).
//
// RUN: mpopt-codegen %s --emit=nvvm | FileCheck %s
// CHECK: llvm.func @kernel({{.*}}) attributes {{{.*}}nvvm.kernel

#e = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#col = affine_map<(r, c) -> (c)>
#t = affine_map<(c, r) -> (r, c)>
#tcol = affine_map<(c, r) -> (c)>
#v = affine_map<(i) -> (i)>

func.func @kernel(%dy: tensor<?x768xbf16>, %x: tensor<?x768xbf16>, %mean: tensor<?xf32>, %rstd: tensor<?xf32>, %g: tensor<768xf32>)
    -> (tensor<?x768xbf16>, tensor<768xf32>, tensor<768xbf16>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %n = arith.constant 768.0 : f32
  %rows = tensor.dim %dy, %c0 : tensor<?x768xbf16>
  %e1 = tensor.empty(%rows) : tensor<?x768xf32>
  %xh = linalg.generic {indexing_maps = [#e, #row, #row, #e], iterator_types = ["parallel", "parallel"]}
      ins(%x, %mean, %rstd : tensor<?x768xbf16>, tensor<?xf32>, tensor<?xf32>) outs(%e1 : tensor<?x768xf32>) {
  ^bb0(%b0: bf16, %b1: f32, %b2: f32, %o0: f32):
    %vx = arith.extf %b0 : bf16 to f32
    %vd = arith.subf %vx, %b1 : f32
    %vq = arith.mulf %vd, %b2 : f32
    linalg.yield %vq : f32
  } -> tensor<?x768xf32>
  %e2 = tensor.empty(%rows) : tensor<?xf32>
  %e3 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<?xf32>) -> tensor<?xf32>
  %s1 = linalg.generic {indexing_maps = [#e, #col, #row], iterator_types = ["parallel", "reduction"]}
      ins(%dy, %g : tensor<?x768xbf16>, tensor<768xf32>) outs(%e3 : tensor<?xf32>) {
  ^bb0(%b0: bf16, %b1: f32, %o0: f32):
    %vd = arith.extf %b0 : bf16 to f32
    %vq = arith.mulf %vd, %b1 : f32
    %vs = arith.addf %o0, %vq : f32
    linalg.yield %vs : f32
  } -> tensor<?xf32>
  %e4 = tensor.empty(%rows) : tensor<?xf32>
  %e5 = linalg.fill ins(%zero : f32) outs(%e4 : tensor<?xf32>) -> tensor<?xf32>
  %s2 = linalg.generic {indexing_maps = [#e, #col, #e, #row], iterator_types = ["parallel", "reduction"]}
      ins(%dy, %g, %xh : tensor<?x768xbf16>, tensor<768xf32>, tensor<?x768xf32>) outs(%e5 : tensor<?xf32>) {
  ^bb0(%b0: bf16, %b1: f32, %b2: f32, %o0: f32):
    %vd = arith.extf %b0 : bf16 to f32
    %vq = arith.mulf %vd, %b1 : f32
    %vp = arith.mulf %vq, %b2 : f32
    %vs = arith.addf %o0, %vp : f32
    linalg.yield %vs : f32
  } -> tensor<?xf32>
  %e6 = tensor.empty(%rows) : tensor<?x768xbf16>
  %dx = linalg.generic {indexing_maps = [#e, #col, #e, #row, #row, #row, #e], iterator_types = ["parallel", "parallel"]}
      ins(%dy, %g, %xh, %s1, %s2, %rstd : tensor<?x768xbf16>, tensor<768xf32>, tensor<?x768xf32>, tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) outs(%e6 : tensor<?x768xbf16>) {
  ^bb0(%b0: bf16, %b1: f32, %b2: f32, %b3: f32, %b4: f32, %b5: f32, %o0: bf16):
    %vd = arith.extf %b0 : bf16 to f32
    %vw = arith.mulf %vd, %b1 : f32
    %vm1 = arith.divf %b3, %n : f32
    %vm2 = arith.divf %b4, %n : f32
    %vp = arith.mulf %b2, %vm2 : f32
    %vq = arith.subf %vw, %vm1 : f32
    %vu = arith.subf %vq, %vp : f32
    %vs = arith.mulf %vu, %b5 : f32
    %vt = arith.truncf %vs : f32 to bf16
    linalg.yield %vt : bf16
  } -> tensor<?x768xbf16>
  %e7 = tensor.empty() : tensor<768xf32>
  %e8 = linalg.fill ins(%zero : f32) outs(%e7 : tensor<768xf32>) -> tensor<768xf32>
  %dg = linalg.generic {indexing_maps = [#t, #t, #tcol], iterator_types = ["parallel", "reduction"]}
      ins(%dy, %xh : tensor<?x768xbf16>, tensor<?x768xf32>) outs(%e8 : tensor<768xf32>) {
  ^bb0(%b0: bf16, %b1: f32, %o0: f32):
    %vd = arith.extf %b0 : bf16 to f32
    %vp = arith.mulf %vd, %b1 : f32
    %vs = arith.addf %o0, %vp : f32
    linalg.yield %vs : f32
  } -> tensor<768xf32>
  %e9 = tensor.empty() : tensor<768xf32>
  %e10 = linalg.fill ins(%zero : f32) outs(%e9 : tensor<768xf32>) -> tensor<768xf32>
  %dbs = linalg.generic {indexing_maps = [#t, #tcol], iterator_types = ["parallel", "reduction"]}
      ins(%dy : tensor<?x768xbf16>) outs(%e10 : tensor<768xf32>) {
  ^bb0(%b0: bf16, %o0: f32):
    %vd = arith.extf %b0 : bf16 to f32
    %vs = arith.addf %o0, %vd : f32
    linalg.yield %vs : f32
  } -> tensor<768xf32>
  %e11 = tensor.empty() : tensor<768xbf16>
  %db = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
      ins(%dbs : tensor<768xf32>) outs(%e11 : tensor<768xbf16>) {
  ^bb0(%b0: f32, %o0: bf16):
    %vt = arith.truncf %b0 : f32 to bf16
    linalg.yield %vt : bf16
  } -> tensor<768xbf16>
  return %dx, %dg, %db : tensor<?x768xbf16>, tensor<768xf32>, tensor<768xbf16>
}
