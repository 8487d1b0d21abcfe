// The example that the reference of mp-eliminate-casts shows.
// RUN: mpopt %s --mp-eliminate-casts | FileCheck %s

// CHECK-LABEL: func.func @view_between_casts
func.func @view_between_casts(%h: tensor<2x2x8xbf16>, %w: tensor<8x8xbf16>) -> tensor<4x8xbf16> {
  // CHECK-NEXT: %[[V:.*]] = mp.aten "aten.view.default"(%arg0)
  %0 = mp.cast %h origin(autocast) : tensor<2x2x8xbf16> to tensor<2x2x8xf32>
  %1 = mp.aten "aten.view.default"(%0) {args = {size = [4, 8]}} : (tensor<2x2x8xf32>) -> tensor<4x8xf32>
  %2 = mp.cast %1 origin(autocast) : tensor<4x8xf32> to tensor<4x8xbf16>
  // CHECK-NEXT: mp.matmul %[[V]], %arg1
  %3 = mp.matmul %2, %w : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
  return %3 : tensor<4x8xbf16>
}
