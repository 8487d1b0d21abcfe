// Pins stay on what stays, and are no part of the framework's graph.
// RUN: mpopt %s --pass-pipeline='builtin.module(func.func(mp-normalize,mp-raise,mp-pin,mp-eliminate-casts,mp-lower))' -o %t.after.mlir
// RUN: FileCheck %s < %t.after.mlir
// RUN: mpopt check %s %t.after.mlir
// A second run finds the same, and adds nothing.
// RUN: mpopt %t.after.mlir --mp-raise --mp-pin --mp-lower | FileCheck %s --check-prefix=TWICE
// RUN: mpopt %s --mp-pin --mp-pin | FileCheck %s --check-prefix=TWICE

// CHECK-LABEL: func.func @pipeline
// CHECK-SAME: mp.pin = [#mp.pin<keep result, "policy", "as it is">]
// CHECK: aten._softmax.default{{.*}}#mp.pin<fp32 operands, "softmax"
// CHECK: aten.exp.default{{.*}}#mp.pin<fp32 both, "exponential"
// TWICE-LABEL: func.func @pipeline
// TWICE: aten._softmax.default{{.*}}mp.pin = [#mp.pin<fp32 operands, "softmax", {{[^>]*}}>]}
// TWICE: aten.exp.default{{.*}}mp.pin = [#mp.pin<fp32 both, "exponential", {{[^>]*}}>]}
func.func @pipeline(%x: tensor<4x8xbf16> {mp.pin = [#mp.pin<keep result, "policy", "as it is">]}) -> tensor<4x8xbf16> {
  %0 = mp.aten "aten._softmax.default"(%x) {args = {dim = -1, half_to_float = false}} : (tensor<4x8xbf16>) -> tensor<4x8xbf16>
  %1 = mp.cast %0 origin(user) : tensor<4x8xbf16> to tensor<4x8xf32>
  %2 = mp.cast %1 origin(user) : tensor<4x8xf32> to tensor<4x8xbf16>
  %3 = mp.aten "aten.exp.default"(%2) : (tensor<4x8xbf16>) -> tensor<4x8xbf16>
  return %3 : tensor<4x8xbf16>
}

// The framework's bias comes first, ours last: indices follow.
// CHECK-LABEL: func.func @bias
// CHECK: aten.addmm.default"(%arg2, %arg0, %arg1) {mp.pin = [#mp.pin<fp32 operands[0, 2], "policy", "bias and weight">]}
func.func @bias(%x: tensor<4x8xf32>, %w: tensor<8x2xf32>, %b: tensor<2xf32>) -> tensor<4x2xf32> {
  %0 = mp.matmul %x, %w bias(%b : tensor<2xf32>) {mp.pin = [#mp.pin<fp32 operands[1, 2], "policy", "bias and weight">]} : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// A rounding is a narrowing and a widening: the f32 result is that of the second.
// CHECK-LABEL: func.func @rounding
// CHECK: mp.cast
// CHECK-NOT: mp.pin
// CHECK: mp.cast{{.*}}mp.pin = [#mp.pin<fp32 result, "policy", "on purpose">]
func.func @rounding(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.round %x to bf16 origin(user) {mp.pin = [#mp.pin<fp32 result, "policy", "on purpose">]} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
