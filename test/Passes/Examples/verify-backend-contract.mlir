// The example that the reference of mp-verify-backend-contract shows.
// RUN: mpopt %s --mp-verify-backend-contract | FileCheck %s

// CHECK-LABEL: func.func @kernel
func.func @kernel(%x: tensor<4x8xbf16>) -> tensor<4xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  // CHECK: linalg.generic
  %sum = linalg.generic {
      indexing_maps = [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xbf16>) outs(%init : tensor<4xf32>) {
  ^bb0(%a: bf16, %s: f32):
    %w = arith.extf %a : bf16 to f32
    %n = arith.addf %s, %w : f32
    linalg.yield %n : f32
  } -> tensor<4xf32>
  return %sum : tensor<4xf32>
}
