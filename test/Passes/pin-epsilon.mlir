// Epsilons that a half flushes, or loses beside 1.
// RUN: mpopt %s --mp-pin=half=bf16 | FileCheck %s --check-prefixes=CHECK,BF16
// RUN: mpopt %s --mp-pin=half=f16 | FileCheck %s --check-prefixes=CHECK,F16

// CHECK-LABEL: func.func @denominators
// BF16: aten.add.Tensor{{.*}}"small-epsilon", "aten.add of 8: epsilon 1e-05 vanishes when it is added to 1 in bf16, whose step there is 0.007812"
// F16: aten.add.Tensor{{.*}}"small-epsilon", "aten.add of 8: epsilon 1e-05 is below f16's smallest normal number, 6.104e-05"
// CHECK: aten.div.Tensor
// CHECK-NOT: mp.pin
// CHECK: aten.add.Tensor{{.*}}"small-epsilon"
// CHECK: aten.log.default
// CHECK: aten.add.Tensor{{.*}}"small-epsilon"
// CHECK: aten.reciprocal.default
func.func @denominators(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %eps = mp.aten "aten.full.default"() {args = {size = [], fill_value = 1.0e-5, dtype = f32}} : () -> tensor<f32>
  %0 = mp.aten "aten.add.Tensor"(%y) {args = {other = 1.0e-5}} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = mp.aten "aten.div.Tensor"(%x, %0) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  // A constant tensor, seen through views, on the other side.
  %2 = mp.aten "aten.add.Tensor"(%eps, %y) : (tensor<f32>, tensor<8xf32>) -> tensor<8xf32>
  %3 = mp.aten "aten.view.default"(%2) {args = {size = [8]}} : (tensor<8xf32>) -> tensor<8xf32>
  %4 = mp.aten "aten.log.default"(%3) : (tensor<8xf32>) -> tensor<8xf32>
  %5 = mp.aten "aten.add.Tensor"(%y) {args = {other = 1.0e-5}} : (tensor<8xf32>) -> tensor<8xf32>
  %6 = mp.aten "aten.reciprocal.default"(%5) : (tensor<8xf32>) -> tensor<8xf32>
  return %1, %4, %6 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// A clamp cuts at 1e-12, which f16 flushes and bf16 holds.
// CHECK-LABEL: func.func @clamp
// BF16-NOT: small-epsilon
// F16: aten.clamp_min.default{{.*}}"small-epsilon", "aten.clamp_min of 8x1: epsilon 1e-12 is below
// CHECK: return
func.func @clamp(%x: tensor<8x4xf32>, %n: tensor<8x1xf32>) -> tensor<8x4xf32> {
  %0 = mp.aten "aten.clamp_min.default"(%n) {args = {min = 1.0e-12}} : (tensor<8x1xf32>) -> tensor<8x1xf32>
  %1 = mp.aten "aten.div.Tensor"(%x, %0) : (tensor<8x4xf32>, tensor<8x1xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// bf16 loses 1e-3 beside 1, f16 does not.
// CHECK-LABEL: func.func @in_between
// BF16: small-epsilon
// F16-NOT: small-epsilon
// CHECK: return
func.func @in_between(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = mp.aten "aten.add.Tensor"(%x) {args = {other = 1.0e-3}} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = mp.aten "aten.sqrt.default"(%0) : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// Large enough; negative; in the numerator; read by what zero does not harm; the
// two operands are values.
// CHECK-LABEL: func.func @no_epsilon
// CHECK-NOT: small-epsilon
// CHECK: return
func.func @no_epsilon(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0 = mp.aten "aten.add.Tensor"(%x) {args = {other = 0.1}} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = mp.aten "aten.sqrt.default"(%0) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = mp.aten "aten.add.Tensor"(%x) {args = {other = -1.0e-5}} : (tensor<8xf32>) -> tensor<8xf32>
  %3 = mp.aten "aten.sqrt.default"(%2) : (tensor<8xf32>) -> tensor<8xf32>
  %4 = mp.aten "aten.add.Tensor"(%x) {args = {other = 1.0e-5}} : (tensor<8xf32>) -> tensor<8xf32>
  %5 = mp.aten "aten.div.Tensor"(%4, %y) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %6 = mp.aten "aten.tanh.default"(%4) : (tensor<8xf32>) -> tensor<8xf32>
  %7 = mp.aten "aten.add.Tensor"(%x, %y) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %8 = mp.aten "aten.sqrt.default"(%7) : (tensor<8xf32>) -> tensor<8xf32>
  return %1, %3, %5, %6, %8 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
