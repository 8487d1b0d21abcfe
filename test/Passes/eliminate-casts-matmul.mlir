// RUN: mpopt %s --mp-eliminate-casts=numerics=precise | FileCheck %s
// RUN: mpopt %s --mp-eliminate-casts=numerics=strict | FileCheck %s --check-prefix=STRICT

// Only the order of the sum may differ, so strict leaves it.
// CHECK-LABEL: func.func @half_operands
// CHECK-NEXT: mp.matmul %arg0, %arg1 : (tensor<4x8xbf16>, tensor<8x?xbf16>) -> tensor<4x?xf32>
// CHECK-NEXT: mp.matmul %arg2, %arg2 : (tensor<3x8x8xf16>, tensor<3x8x8xf16>) -> tensor<3x8x8xf32>
// STRICT-LABEL: func.func @half_operands
// STRICT: mp.matmul {{.*}} : (tensor<4x8xf32>
func.func @half_operands(%a: tensor<4x8xbf16>, %b: tensor<8x?xbf16>, %c: tensor<3x8x8xf16>) -> (tensor<4x?xf32>, tensor<3x8x8xf32>) attributes {mp.target = "cuda"} {
  %0 = mp.cast %a origin(user) : tensor<4x8xbf16> to tensor<4x8xf32>
  %1 = mp.cast %b origin(user) : tensor<8x?xbf16> to tensor<8x?xf32>
  %2 = mp.matmul %0, %1 : (tensor<4x8xf32>, tensor<8x?xf32>) -> tensor<4x?xf32>
  %3 = mp.cast %c origin(user) : tensor<3x8x8xf16> to tensor<3x8x8xf32>
  %4 = mp.matmul %3, %3 : (tensor<3x8x8xf32>, tensor<3x8x8xf32>) -> tensor<3x8x8xf32>
  return %2, %4 : tensor<4x?xf32>, tensor<3x8x8xf32>
}

// The CPU has no such product.
// CHECK-LABEL: func.func @not_half_target_cannot
// CHECK-SAME: target cpu has no matrix product of halves with an f32 result
// CHECK: mp.matmul {{.*}} : (tensor<8x8xf32>
func.func @not_half_target_cannot(%a: tensor<8x8xbf16>) -> tensor<8x8xf32> attributes {mp.target = "cpu"} {
  %0 = mp.cast %a origin(user) : tensor<8x8xbf16> to tensor<8x8xf32>
  %1 = mp.matmul %0, %0 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @not_half_one_operand
// CHECK: mp.matmul {{.*}} : (tensor<8x8xf32>
func.func @not_half_one_operand(%a: tensor<8x8xbf16>, %b: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {mp.target = "cuda"} {
  %0 = mp.cast %a origin(user) : tensor<8x8xbf16> to tensor<8x8xf32>
  %1 = mp.matmul %0, %b : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @not_half_two_halves
// CHECK: mp.matmul {{.*}} : (tensor<8x8xf32>
func.func @not_half_two_halves(%a: tensor<8x8xbf16>, %b: tensor<8x8xf16>) -> tensor<8x8xf32> attributes {mp.target = "cuda"} {
  %0 = mp.cast %a origin(user) : tensor<8x8xbf16> to tensor<8x8xf32>
  %1 = mp.cast %b origin(user) : tensor<8x8xf16> to tensor<8x8xf32>
  %2 = mp.matmul %0, %1 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// A sum in f64 is not a sum in f32.
// CHECK-LABEL: func.func @not_half_f64
// CHECK: mp.matmul {{.*}} : (tensor<8x8xf64>
func.func @not_half_f64(%a: tensor<8x8xbf16>) -> tensor<8x8xf64> attributes {mp.target = "cuda"} {
  %0 = mp.cast %a origin(user) : tensor<8x8xbf16> to tensor<8x8xf64>
  %1 = mp.matmul %0, %0 : (tensor<8x8xf64>, tensor<8x8xf64>) -> tensor<8x8xf64>
  return %1 : tensor<8x8xf64>
}

// The framework wants the bias in the operands' type.
// CHECK-LABEL: func.func @not_half_bias
// CHECK: mp.matmul {{.*}} : (tensor<8x8xf32>
func.func @not_half_bias(%a: tensor<8x8xbf16>, %c: tensor<8xf32>) -> tensor<8x8xf32> attributes {mp.target = "cuda"} {
  %0 = mp.cast %a origin(user) : tensor<8x8xbf16> to tensor<8x8xf32>
  %1 = mp.matmul %0, %0 bias(%c : tensor<8xf32>) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @not_half_phases_differ
// CHECK: mp.matmul {{.*}} : (tensor<8x8xf32>
func.func @not_half_phases_differ(%a: tensor<8x8xbf16>) -> tensor<8x8xf32> attributes {mp.target = "cuda"} {
  %0 = mp.cast %a origin(user) : tensor<8x8xbf16> to tensor<8x8xf32>
  %1 = mp.matmul %0, %0 {mp.backward} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @not_half_kept
// CHECK: mp.matmul {{.*}} : (tensor<8x8xf32>
func.func @not_half_kept(%a: tensor<8x8xbf16>) -> tensor<8x8xf32> attributes {mp.target = "cuda"} {
  %0 = mp.cast %a origin(user) : tensor<8x8xbf16> to tensor<8x8xf32>
  %1 = mp.matmul %0, %0 {mp.pin = [#mp.pin<keep both, "policy", "off">]} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
