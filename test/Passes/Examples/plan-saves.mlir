// The example that the reference of mp-plan-saves shows.
// RUN: mpopt %s --mp-plan-saves | FileCheck %s

// Backward needs the weight in half as well. It narrows it again, instead of keeping a copy.
// CHECK-LABEL: func.func @linear
func.func @linear(%x: tensor<32x64xbf16>, %w: tensor<64x64xf32> {mp.role = "parameter"}, %g: tensor<32x64xbf16> {mp.role = "tangent"}) -> (tensor<32x64xbf16>, tensor<32x64xbf16>) {
  // CHECK: %[[FORWARD:.*]] = mp.cast %arg1
  // CHECK: mp.matmul %arg0, %[[FORWARD]]
  // CHECK: %[[BACKWARD:.*]] = mp.cast %arg1 {{.*}}mp.backward
  // CHECK: %[[T:.*]] = mp.aten "aten.permute.default"(%[[BACKWARD]])
  // CHECK: mp.matmul %arg2, %[[T]]
  %0 = mp.cast %w origin(autocast) : tensor<64x64xf32> to tensor<64x64xbf16>
  %1 = mp.matmul %x, %0 : (tensor<32x64xbf16>, tensor<64x64xbf16>) -> tensor<32x64xbf16>
  %2 = mp.aten "aten.permute.default"(%0) {args = {dims = [1, 0]}} : (tensor<64x64xbf16>) -> tensor<64x64xbf16>
  %3 = mp.matmul %g, %2 {mp.backward} : (tensor<32x64xbf16>, tensor<64x64xbf16>) -> tensor<32x64xbf16>
  return %1, %3 : tensor<32x64xbf16>, tensor<32x64xbf16>
}
