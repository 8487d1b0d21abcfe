// The rounding of node 0 is dropped; that of node 6, of the same value, meets another one
// afterwards and stays with it. The record does not say so: the check tries both readings.
// RUN: mpopt %s --mp-eliminate-casts=numerics=precise -o %t.mlir
// RUN: mpopt check %s %t.mlir | FileCheck %s
// CHECK: every rewrite keeps its contract
func.func @f(%arg0: tensor<4xf32>) -> (tensor<4xf16>, tensor<f32>, tensor<4xf16>, tensor<4xf32>) {
  %3 = mp.cast %arg0 origin(autocast) : tensor<4xf32> to tensor<4xf16>
  %4 = mp.cast %3 origin(autocast) : tensor<4xf16> to tensor<4xf32>
  %5 = mp.cast %3 origin(autocast) : tensor<4xf16> to tensor<4xf32>
  %7 = mp.aten "aten.flip.default"(%5) {args = {dims = [0]}} : (tensor<4xf32>) -> tensor<4xf32>
  %8 = mp.cast %7 origin(user) : tensor<4xf32> to tensor<4xf16>
  %9 = mp.aten "aten.amax.default"(%5) {args = {dim = [-1]}} : (tensor<4xf32>) -> tensor<f32>
  %15 = mp.cast %4 origin(autocast) : tensor<4xf32> to tensor<4xf16>
  %26 = mp.cast %15 origin(user) : tensor<4xf16> to tensor<4xf32>
  %27 = mp.aten "aten.relu.default"(%26) : (tensor<4xf32>) -> tensor<4xf32>
  %28 = mp.cast %27 origin(autocast) : tensor<4xf32> to tensor<4xf16>
  return %8, %9, %28, %26 : tensor<4xf16>, tensor<f32>, tensor<4xf16>, tensor<4xf32>
}
