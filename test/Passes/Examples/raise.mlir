// The example that the reference of mp-raise shows.
// RUN: mpopt %s --mp-raise | FileCheck %s

// CHECK-LABEL: func.func @linear_gelu
func.func @linear_gelu(%x: tensor<4x8xbf16>, %w: tensor<8x8xbf16>) -> tensor<4x8xbf16> {
  // CHECK: mp.matmul %arg0, %arg1
  %0 = mp.aten "aten.mm.default"(%x, %w) : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
  // CHECK: mp.gelu
  %1 = mp.aten "aten.gelu.default"(%0) {args = {approximate = "tanh"}} : (tensor<4x8xbf16>) -> tensor<4x8xbf16>
  return %1 : tensor<4x8xbf16>
}
