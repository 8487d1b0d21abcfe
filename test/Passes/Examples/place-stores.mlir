// The example that the reference of mp-place-stores shows.
// RUN: mpopt %s --mp-place-stores | FileCheck %s

// CHECK-LABEL: func.func @residual
func.func @residual(%x: tensor<4x256x768xf32>, %w: tensor<768x768xbf16>) -> (tensor<4x256x768xf32>, tensor<1024x768xbf16>) {
  %0 = mp.aten "aten.add.Tensor"(%x, %x) : (tensor<4x256x768xf32>, tensor<4x256x768xf32>) -> tensor<4x256x768xf32>
  // CHECK: %[[C:.*]] = mp.cast
  // CHECK-NEXT: mp.materialize %[[C]]
  %1 = mp.cast %0 origin(autocast) : tensor<4x256x768xf32> to tensor<4x256x768xbf16>
  %2 = mp.aten "aten.view.default"(%1) {args = {size = [1024, 768]}} : (tensor<4x256x768xbf16>) -> tensor<1024x768xbf16>
  %3 = mp.matmul %2, %w : (tensor<1024x768xbf16>, tensor<768x768xbf16>) -> tensor<1024x768xbf16>
  return %0, %3 : tensor<4x256x768xf32>, tensor<1024x768xbf16>
}
