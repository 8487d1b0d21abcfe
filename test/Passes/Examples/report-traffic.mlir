// The example that the reference of mp-report-traffic shows: one kernel that
// adds and narrows, one that only narrows a weight, one product.
// RUN: mpopt %s --mp-report-traffic | FileCheck %s

// CHECK-LABEL: func.func @step
// CHECK-SAME: cast_bytes = 24576
// CHECK-SAME: cast_kernels = 1
// CHECK-SAME: external_bytes = 24576
// CHECK-SAME: external_kernels = 1
// CHECK-SAME: fused_bytes = 65536
// CHECK-SAME: fused_kernels = 2
// CHECK-SAME: saved_bytes = 0
func.func @step(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xbf16> {
  %0 = mp.aten "aten.add.Tensor"(%x, %y) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = mp.cast %0 origin(autocast) : tensor<64x64xf32> to tensor<64x64xbf16>
  %2 = mp.cast %w origin(autocast) : tensor<64x64xf32> to tensor<64x64xbf16>
  %3 = mp.matmul %1, %2 : (tensor<64x64xbf16>, tensor<64x64xbf16>) -> tensor<64x64xbf16>
  return %3 : tensor<64x64xbf16>
}
