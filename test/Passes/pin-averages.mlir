// States that move by small steps.
// RUN: mpopt %s --mp-pin=half=bf16 | FileCheck %s --check-prefixes=CHECK,BF16
// RUN: mpopt %s --mp-pin=half=f16 | FileCheck %s --check-prefixes=CHECK,F16

// Three spellings of one average; the new value comes first in the second.
// CHECK-LABEL: func.func @moving_average
// BF16: aten.add.Tensor{{.*}}#mp.pin<fp32 both, "moving-average", "aten.add of 8: takes 0.01 of each new value; in bf16 it does not move when they differ by less than 39.06 %">
// F16: in f16 it does not move when they differ by less than 4.883 %
// CHECK: aten.add.Tensor{{.*}}"moving-average", "aten.add of 8: takes 0.01 of
// CHECK: aten.lerp.Scalar{{.*}}"moving-average", "aten.lerp of 8: takes 0.01 of
func.func @moving_average(%old: tensor<8xf32>, %new: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0 = mp.aten "aten.mul.Tensor"(%old) {args = {other = 0.99}} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = mp.aten "aten.mul.Tensor"(%new) {args = {other = 0.01}} : (tensor<8xf32>) -> tensor<8xf32>
  %2 = mp.aten "aten.add.Tensor"(%1, %0) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %3 = mp.aten "aten.add.Tensor"(%0, %new) {args = {alpha = 0.01}} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %4 = mp.aten "aten.lerp.Scalar"(%old, %new) {args = {weight = 0.01}} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %2, %3, %4 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// The cell of an LSTM, f * c + i * g, by policy in f16 only.
// CHECK-LABEL: func.func @b32_cell
// BF16-NOT: cell-state
// F16: aten.add.Tensor{{.*}}#mp.pin<fp32 result, "cell-state", "aten.add of 4x8: a state that grows by up to 1 in each step; f16 steps by 0.0009766 at 1">
// CHECK: return
func.func @b32_cell(%f: tensor<4x8xf32>, %i: tensor<4x8xf32>, %g: tensor<4x8xf32>, %c: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = mp.aten "aten.sigmoid.default"(%f) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = mp.aten "aten.sigmoid.default"(%i) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = mp.aten "aten.tanh.default"(%g) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = mp.aten "aten.mul.Tensor"(%0, %c) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = mp.aten "aten.mul.Tensor"(%1, %2) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %5 = mp.aten "aten.add.Tensor"(%3, %4) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %5 : tensor<4x8xf32>
}

// Shares that are no average, of halves each more than one, of computed weights; a
// sum of two gated values without a candidate.
// CHECK-LABEL: func.func @no_state
// CHECK-NOT: mp.pin
// CHECK: return
func.func @no_state(%x: tensor<8xf32>, %y: tensor<8xf32>, %w: tensor<8xf32>) {
  %0 = mp.aten "aten.mul.Tensor"(%x) {args = {other = 0.9}} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = mp.aten "aten.mul.Tensor"(%y) {args = {other = 0.9}} : (tensor<8xf32>) -> tensor<8xf32>
  %2 = mp.aten "aten.add.Tensor"(%0, %1) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %3 = mp.aten "aten.add.Tensor"(%0, %y) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %4 = mp.aten "aten.lerp.Tensor"(%x, %y, %w) : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %5 = mp.aten "aten.sigmoid.default"(%w) : (tensor<8xf32>) -> tensor<8xf32>
  %6 = mp.aten "aten.mul.Tensor"(%5, %x) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %7 = mp.aten "aten.mul.Tensor"(%5, %y) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %8 = mp.aten "aten.add.Tensor"(%6, %7) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return
}
