// The example that the reference of mp-inline-regions shows.
// RUN: mpopt %s --mp-inline-regions | FileCheck %s

// CHECK-LABEL: func.func @linear_relu
// CHECK-NEXT: %[[P:.*]] = mp.matmul %arg0, %arg1
// CHECK-NEXT: %[[R:.*]] = mp.aten "aten.relu.default"(%[[P]])
// CHECK-NEXT: return %[[R]]
func.func @linear_relu(%x: tensor<4x8xbf16>, %w: tensor<8x2xbf16>) -> tensor<4x2xbf16> {
  %0 = mp.region matmul "linear_relu" (%x, %w) : (tensor<4x8xbf16>, tensor<8x2xbf16>) -> tensor<4x2xbf16> {
  ^bb0(%a: tensor<4x8xbf16>, %b: tensor<8x2xbf16>):
    %1 = mp.matmul %a, %b : (tensor<4x8xbf16>, tensor<8x2xbf16>) -> tensor<4x2xbf16>
    %2 = mp.aten "aten.relu.default"(%1) : (tensor<4x2xbf16>) -> tensor<4x2xbf16>
    mp.yield %2 : tensor<4x2xbf16>
  }
  return %0 : tensor<4x2xbf16>
}
