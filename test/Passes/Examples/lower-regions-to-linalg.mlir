// The example that the reference of mp-lower-regions-to-linalg shows.
// RUN: mpopt %s --mp-lower-regions-to-linalg | FileCheck %s

// CHECK-LABEL: func.func @linear_relu
// CHECK: mp.region matmul "linear_relu" (%arg0, %arg1) {kernel = "module {
// CHECK-SAME: func.func @kernel(%arg0: tensor<4x8xbf16>, %arg1: tensor<8x2xbf16>) -> tensor<4x2xbf16>
// CHECK-SAME: linalg.generic
func.func @linear_relu(%x: tensor<4x8xbf16>, %w: tensor<8x2xbf16>) -> tensor<4x2xbf16> {
  %0 = mp.region matmul "linear_relu" (%x, %w) : (tensor<4x8xbf16>, tensor<8x2xbf16>) -> tensor<4x2xbf16> {
  ^bb0(%a: tensor<4x8xbf16>, %b: tensor<8x2xbf16>):
    %1 = mp.matmul %a, %b : (tensor<4x8xbf16>, tensor<8x2xbf16>) -> tensor<4x2xbf16>
    %2 = mp.aten "aten.relu.default"(%1) : (tensor<4x2xbf16>) -> tensor<4x2xbf16>
    mp.yield %2 : tensor<4x2xbf16>
  }
  return %0 : tensor<4x2xbf16>
}
