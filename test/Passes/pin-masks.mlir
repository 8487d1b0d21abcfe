// Fillers of masks that a half makes infinite.
// RUN: mpopt %s --mp-pin=half=bf16 | FileCheck %s --check-prefixes=CHECK,BF16
// RUN: mpopt %s --mp-pin=half=f16 | FileCheck %s --check-prefixes=CHECK,F16

// The smallest f32 is -inf in both. Nothing is clamped (T10).
// CHECK-LABEL: func.func @smallest_f32
// BF16: aten.masked_fill.Scalar{{.*}}value = -3.402823{{.*}}E+38{{.*}}#mp.pin<fp32 result, "mask-constant", "aten.masked_fill of 4x4: -3.403e+38 is -inf in bf16; a row that is masked everywhere becomes NaN">
// F16: aten.masked_fill.Scalar{{.*}}"mask-constant", "aten.masked_fill of 4x4: -3.403e+38 is -inf in f16;
func.func @smallest_f32(%x: tensor<4x4xf32>, %m: tensor<4x4xi1>) -> tensor<4x4xf32> {
  %0 = mp.aten "aten.masked_fill.Scalar"(%x, %m) {args = {value = -3.40282347E+38}} : (tensor<4x4xf32>, tensor<4x4xi1>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// bf16 holds a billion, f16 does not: as a literal, as a constant tensor, as a
// factor of a mask. The where reads the constant.
// CHECK-LABEL: func.func @a_billion
// BF16-NOT: mask-constant
// F16: aten.full.default{{.*}}"mask-constant"
// F16: aten.where.self{{.*}}"mask-constant", "aten.where of 4x4: -1e+09 is -inf in f16
// F16: aten.mul.Tensor{{.*}}"mask-constant", "aten.mul of 4x4: -1e+09 is -inf in f16
// CHECK: return
func.func @a_billion(%x: tensor<4x4xf32>, %m: tensor<4x4xi1>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = mp.aten "aten.full.default"() {args = {size = [], fill_value = -1.0e9, dtype = f32}} : () -> tensor<f32>
  %1 = mp.aten "aten.where.self"(%m, %x, %0) : (tensor<4x4xi1>, tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %2 = mp.cast %m origin(user) : tensor<4x4xi1> to tensor<4x4xf32>
  %3 = mp.aten "aten.mul.Tensor"(%2) {args = {other = -1.0e9}} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %1, %3 : tensor<4x4xf32>, tensor<4x4xf32>
}

// What both hold: -inf itself, -10000, the largest f16; integers.
// CHECK-LABEL: func.func @held
// CHECK-NOT: mp.pin
// CHECK: return
func.func @held(%x: tensor<4x4xf32>, %i: tensor<4x4xi64>, %m: tensor<4x4xi1>) {
  %0 = mp.aten "aten.masked_fill.Scalar"(%x, %m) {args = {value = 0xFFF0000000000000 : f64}} : (tensor<4x4xf32>, tensor<4x4xi1>) -> tensor<4x4xf32>
  %1 = mp.aten "aten.masked_fill.Scalar"(%x, %m) {args = {value = -1.0e4}} : (tensor<4x4xf32>, tensor<4x4xi1>) -> tensor<4x4xf32>
  %2 = mp.aten "aten.masked_fill.Scalar"(%x, %m) {args = {value = -65504.0}} : (tensor<4x4xf32>, tensor<4x4xi1>) -> tensor<4x4xf32>
  %3 = mp.aten "aten.masked_fill.Scalar"(%i, %m) {args = {value = -1000000000}} : (tensor<4x4xi64>, tensor<4x4xi1>) -> tensor<4x4xi64>
  return
}
