// The example that the reference of mp-outline-hot-regions shows.
// RUN: mpopt %s --mp-outline-hot-regions=target=sm_90 | FileCheck %s

// CHECK-LABEL: func.func @linear_relu
// CHECK-SAME: rule = "outline-region", status = "applied", why = "matmul_relu of 2 operations moves 18874368 B in 1 kernels instead of 35651584 B in 2
func.func @linear_relu(%x: tensor<4096x1024xbf16>, %w: tensor<1024x1024xbf16>) -> tensor<4096x1024xbf16> {
  // CHECK: %[[R:.*]] = mp.region matmul "matmul_relu" (%arg0, %arg1)
  // CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<4096x1024xbf16>, %[[B:.*]]: tensor<1024x1024xbf16>):
  // CHECK-NEXT: %[[P:.*]] = mp.matmul %[[A]], %[[B]]
  // CHECK-NEXT: %[[Q:.*]] = mp.aten "aten.relu.default"(%[[P]])
  // CHECK-NEXT: mp.yield %[[Q]]
  // CHECK: return %[[R]]
  %0 = mp.matmul %x, %w : (tensor<4096x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<4096x1024xbf16>
  %1 = mp.aten "aten.relu.default"(%0) : (tensor<4096x1024xbf16>) -> tensor<4096x1024xbf16>
  return %1 : tensor<4096x1024xbf16>
}
