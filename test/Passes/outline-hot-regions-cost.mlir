// What pays, in numbers, and an unknown target.
// RUN: mpopt %s --mp-outline-hot-regions=target=sm_90 | FileCheck %s
// RUN: mpopt %s --mp-outline-hot-regions=target=cpu | FileCheck %s --check-prefix=CPU
// RUN: not mpopt %s --mp-outline-hot-regions=target=sm_9 2>&1 | FileCheck %s --check-prefix=ERROR
// RUN: mpopt %s --mp-outline-hot-regions=target=sm_90 --remark-policy=all --remarks-filter='.*' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// ERROR: target of mp-outline-hot-regions: {{.*}}sm_9

// REMARK-DAG: [Passed] outline-region {{.*}}matmul_gelu of 2 operations moves
// REMARK-DAG: [Missed] outline-region {{.*}}matmul would move

// CHECK-LABEL: func.func @pays
// CHECK-SAME: status = "applied", why = "matmul_gelu of 2 operations moves 92274688 B in 1 kernels instead of 226492416 B in 2, {{.*}} us instead of {{.*}} us at 0.90 of the library's speed"
// CHECK: mp.region
func.func @pays(%x: tensor<8192x1024xbf16>, %w: tensor<1024x4096xbf16>) -> tensor<8192x4096xbf16> {
  %0 = mp.matmul %x, %w : (tensor<8192x1024xbf16>, tensor<1024x4096xbf16>) -> tensor<8192x4096xbf16>
  %1 = mp.gelu(%0) : (tensor<8192x4096xbf16>) -> tensor<8192x4096xbf16>
  return %1 : tensor<8192x4096xbf16>
}

// The library is faster, and nothing is saved.
// CHECK-LABEL: func.func @nothing_saved
// CHECK-SAME: status = "missed", why = "matmul would move {{[0-9]+}} B in 1 kernels instead of {{[0-9]+}} B in 1, {{.*}} at 0.90 of the library's speed"
// CHECK-NOT: mp.region
func.func @nothing_saved(%x: tensor<8192x1024xbf16>, %w: tensor<1024x4096xbf16>) -> tensor<8192x4096xbf16> {
  %0 = mp.matmul %x, %w : (tensor<8192x1024xbf16>, tensor<1024x4096xbf16>) -> tensor<8192x4096xbf16>
  return %0 : tensor<8192x4096xbf16>
}

// CHECK-LABEL: func.func @too_small
// CHECK-SAME: status = "missed", why = "matmul_gelu is left to the library, for it is too small:
// CHECK-NOT: mp.region
func.func @too_small(%x: tensor<8x32xbf16>, %w: tensor<32x16xbf16>) -> tensor<8x16xbf16> {
  %0 = mp.matmul %x, %w : (tensor<8x32xbf16>, tensor<32x16xbf16>) -> tensor<8x16xbf16>
  %1 = mp.gelu(%0) : (tensor<8x16xbf16>) -> tensor<8x16xbf16>
  return %1 : tensor<8x16xbf16>
}

// Three results would be stored for a kernel that computes them from one: the
// product by itself is taken, for ours is faster.
// CPU-LABEL: func.func @alone
// CPU-SAME: status = "applied", why = "matmul of 1 operations
// CPU: mp.region matmul "matmul" {{.*}} -> tensor<2048x2048xf32> {
func.func @alone(%x: tensor<2048x1024xf32>, %w: tensor<1024x2048xf32>) -> tensor<2048x2048xf32> attributes {mp.cost_model = "cpu-avx512"} {
  %0 = mp.matmul %x, %w : (tensor<2048x1024xf32>, tensor<1024x2048xf32>) -> tensor<2048x2048xf32>
  %1 = mp.aten "aten.exp.default"(%0) : (tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  %2 = mp.aten "aten.tanh.default"(%0) : (tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  %3 = mp.aten "aten.erf.default"(%0) : (tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  %4 = mp.aten "aten.lgamma.default"(%1) : (tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  %5 = mp.aten "aten.atan2.default"(%2, %3) : (tensor<2048x2048xf32>, tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  %6 = mp.aten "aten.atan2.default"(%4, %5) : (tensor<2048x2048xf32>, tensor<2048x2048xf32>) -> tensor<2048x2048xf32>
  return %6 : tensor<2048x2048xf32>
}
