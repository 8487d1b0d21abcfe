// Two phases that round what relu, min or max picks: one decision, in whatever type it is made.
// RUN: mpopt %s --mp-eliminate-casts=numerics=precise --mlir-print-debuginfo -o %t.mlir && FileCheck %s < %t.mlir
// RUN: mpopt check %s %t.mlir

// relu picks among values that bf16 holds: the conversion to bf16 changes none of them, and
// both phases round the same value to f16.
// CHECK-LABEL: func.func @not_dropped_rounded_after_a_choice
// CHECK: mp.cast %{{.*}} {mp.backward} : tensor<4xf32> to tensor<4xf16>
func.func @not_dropped_rounded_after_a_choice(%x: tensor<4xbf16>) -> (tensor<4xbf16>, tensor<4xf16>, tensor<4xf32>) {
  %0 = mp.cast %x origin(autocast) : tensor<4xbf16> to tensor<4xf32>
  %1 = mp.aten "aten.relu.default"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = mp.cast %1 origin(promotion) : tensor<4xf32> to tensor<4xbf16>
  %3 = mp.cast %2 origin(user) : tensor<4xbf16> to tensor<4xf16>
  %4 = mp.cast %1 origin(autocast) {mp.backward} : tensor<4xf32> to tensor<4xf16>
  %5 = mp.cast %4 origin(decomposition) {mp.backward} : tensor<4xf16> to tensor<4xf32>
  %6 = mp.aten "aten.exp.default"(%5) {mp.backward} : (tensor<4xf32>) -> tensor<4xf32>
  return %2, %3, %6 : tensor<4xbf16>, tensor<4xf16>, tensor<4xf32>
}

// The same choice in two types.
// CHECK-LABEL: func.func @not_dropped_rounded_after_equal_choices
// CHECK: mp.cast %{{.*}} {mp.backward} : tensor<4xf32> to tensor<4xf16>
func.func @not_dropped_rounded_after_equal_choices(%x: tensor<4xbf16>) -> (tensor<4xbf16>, tensor<4xf16>, tensor<4xf32>) {
  %0 = mp.aten "aten.relu.default"(%x) : (tensor<4xbf16>) -> tensor<4xbf16>
  %1 = mp.cast %0 origin(user) : tensor<4xbf16> to tensor<4xf16>
  %2 = mp.cast %x origin(autocast) {mp.backward} : tensor<4xbf16> to tensor<4xf32>
  %3 = mp.aten "aten.relu.default"(%2) {mp.backward} : (tensor<4xf32>) -> tensor<4xf32>
  %4 = mp.cast %3 origin(autocast) {mp.backward} : tensor<4xf32> to tensor<4xf16>
  %5 = mp.cast %4 origin(autocast) {mp.backward} : tensor<4xf16> to tensor<4xf32>
  %6 = mp.aten "aten.exp.default"(%5) {mp.backward} : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %6 : tensor<4xbf16>, tensor<4xf16>, tensor<4xf32>
}

// Of values that bf16 does not hold, the conversion rounds, and f16 rounds another value.
// CHECK-LABEL: func.func @dropped_after_a_rounded_choice
// CHECK-NOT: mp.cast {{.*}}mp.backward
func.func @dropped_after_a_rounded_choice(%x: tensor<4xf32>) -> (tensor<4xbf16>, tensor<4xf16>, tensor<4xf32>) {
  %0 = mp.aten "aten.relu.default"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = mp.cast %0 origin(promotion) : tensor<4xf32> to tensor<4xbf16>
  %2 = mp.cast %1 origin(user) : tensor<4xbf16> to tensor<4xf16>
  %3 = mp.cast %0 origin(autocast) {mp.backward} : tensor<4xf32> to tensor<4xf16> loc(fused<3 : i64>["m"])
  %4 = mp.cast %3 origin(decomposition) {mp.backward} : tensor<4xf16> to tensor<4xf32>
  %5 = mp.aten "aten.exp.default"(%4) {mp.backward} : (tensor<4xf32>) -> tensor<4xf32>
  return %1, %2, %5 : tensor<4xbf16>, tensor<4xf16>, tensor<4xf32>
}
