// The gradient of a bias.
//
// RUN: mpopt-codegen %s --emit=nvvm | FileCheck %s
// CHECK: llvm.func @kernel({{.*}}) attributes {{{.*}}nvvm.kernel

#t = affine_map<(c, r) -> (r, c)>
#tcol = affine_map<(c, r) -> (c)>
#v = affine_map<(i) -> (i)>

func.func @kernel(%dy: tensor<?x768xbf16>)
    -> (tensor<768xf32>, tensor<768xbf16>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %rows = tensor.dim %dy, %c0 : tensor<?x768xbf16>
  %e1 = tensor.empty() : tensor<768xf32>
  %e2 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<768xf32>) -> tensor<768xf32>
  %sum = linalg.generic {indexing_maps = [#t, #tcol], iterator_types = ["parallel", "reduction"]}
      ins(%dy : tensor<?x768xbf16>) outs(%e2 : tensor<768xf32>) {
  ^bb0(%b0: bf16, %o0: f32):
    %vd = arith.extf %b0 : bf16 to f32
    %vs = arith.addf %o0, %vd : f32
    linalg.yield %vs : f32
  } -> tensor<768xf32>
  %e3 = tensor.empty() : tensor<768xbf16>
  %db = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
      ins(%sum : tensor<768xf32>) outs(%e3 : tensor<768xbf16>) {
  ^bb0(%b0: f32, %o0: bf16):
    %vt = arith.truncf %b0 : f32 to bf16
    linalg.yield %vt : bf16
  } -> tensor<768xbf16>
  return %sum, %db : tensor<768xf32>, tensor<768xbf16>
}
