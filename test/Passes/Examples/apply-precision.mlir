// The example that the reference of mp-apply-precision shows: one half copy,
// stored by the kernel of %0, for the product and for backward.
// RUN: mpopt %s --mp-apply-precision | FileCheck %s

// CHECK-LABEL: func.func @saved
// CHECK-SAME: round-store
func.func @saved(%x: tensor<64x64xf32>, %w: tensor<64x64xbf16>, %g: tensor<64x64xf32>) -> (tensor<64x64xbf16>, tensor<64x64xf32>) {
  // CHECK: %[[HALF:.*]] = mp.cast %{{.*}} : tensor<64x64xf32> to tensor<64x64xbf16>
  // CHECK-NEXT: %[[STORED:.*]] = mp.materialize %[[HALF]]
  %0 = mp.aten "aten.tanh.default"(%x) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = mp.cast %0 origin(autocast) : tensor<64x64xf32> to tensor<64x64xbf16>
  // CHECK-NEXT: mp.matmul %[[STORED]]
  %2 = mp.matmul %1, %w : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  // CHECK-NEXT: %[[WIDE:.*]] = mp.cast %[[STORED]] origin(mpopt) {mp.backward}
  // CHECK-NEXT: mp.aten "aten.mul.Tensor"(%[[WIDE]],
  // CHECK-NOT: mp.read_as
  %3 = mp.aten "aten.mul.Tensor"(%0, %g) {mp.backward, mp.read_as = [bf16, unit]} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %2, %3 : tensor<64x64xbf16>, tensor<64x64xf32>
}
