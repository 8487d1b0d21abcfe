// The example that the reference of mp-widen-pinned shows: the policy wants
// this product in f32, so the roundings that autocast put in front of it go,
// and its result is rounded for those who read a half.
// RUN: mpopt %s --mp-widen-pinned | FileCheck %s

// CHECK-LABEL: func.func @asked
// CHECK-SAME: widen-as-asked
func.func @asked(%x: tensor<8x4xf32>, %w: tensor<4x4xf32>) -> tensor<8x4xbf16> {
  %0 = mp.cast %x origin(autocast) : tensor<8x4xf32> to tensor<8x4xbf16>
  %1 = mp.cast %w origin(autocast) : tensor<4x4xf32> to tensor<4x4xbf16>
  // CHECK: %[[WIDE:.*]] = mp.matmul %{{.*}}, %{{.*}} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  // CHECK-NEXT: mp.cast %[[WIDE]] origin(autocast) : tensor<8x4xf32> to tensor<8x4xbf16>
  %2 = mp.matmul %0, %1 {mp.pin = [#mp.pin<fp32 both, "policy", "diverged in run 12">]} : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xbf16>
  return %2 : tensor<8x4xbf16>
}
