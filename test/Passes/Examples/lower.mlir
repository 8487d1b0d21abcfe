// The example that the reference of mp-lower shows.
// RUN: mpopt %s --mp-lower | FileCheck %s

// CHECK-LABEL: func.func @wide_result
func.func @wide_result(%x: tensor<4x8xbf16>, %w: tensor<8x8xbf16>) -> tensor<4x8xf32> {
  // CHECK: mp.aten "aten.mm.dtype"(%arg0, %arg1) {args = {out_dtype = f32}}
  %0 = mp.matmul %x, %w : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xf32>
  // CHECK-COUNT-2: mp.cast
  %1 = mp.round %0 to bf16 origin(user) : tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
