// The example that the reference of mp-assign-precision shows: %0 is kept for
// backward, where the product with %g reads it.
// RUN: mpopt %s '--mp-assign-precision=numerics=relaxed min-elements=16 epsilon=1' | FileCheck %s

// CHECK-LABEL: func.func @saved
// CHECK-SAME: mp.placement
func.func @saved(%x: tensor<64x64xf32>, %w: tensor<64x64xbf16>, %g: tensor<64x64xf32> {mp.role = "tangent"}) -> (tensor<64x64xbf16>, tensor<64x64xf32>) {
  %0 = mp.aten "aten.tanh.default"(%x) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = mp.cast %0 origin(autocast) : tensor<64x64xf32> to tensor<64x64xbf16>
  %2 = mp.matmul %1, %w : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  // CHECK: mp.aten "aten.mul.Tensor"
  // CHECK-SAME: mp.read_as = [bf16, unit]
  %3 = mp.aten "aten.mul.Tensor"(%0, %g) {mp.backward} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %2, %3 : tensor<64x64xbf16>, tensor<64x64xf32>
}
