// RUN: mpopt %s --mp-eliminate-casts=numerics=strict | FileCheck %s

// CHECK-LABEL: func.func @same_type
// CHECK-NOT: mp.cast %
func.func @same_type(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.aten "aten.exp.default"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = mp.cast %0 origin(user) : tensor<4xf32> to tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: func.func @exact_round_trip
// CHECK-NOT: mp.cast %
// CHECK: mp.aten "aten.exp.default"(%arg0)
// CHECK: mp.aten "aten.exp.default"(%arg1)
// CHECK: mp.aten "aten.exp.default"(%arg2)
func.func @exact_round_trip(%x: tensor<4x?xbf16>, %y: tensor<4xf16>, %z: tensor<4xf32>) -> (tensor<4x?xbf16>, tensor<4xf16>, tensor<4xf32>) {
  %0 = mp.cast %x origin(user) : tensor<4x?xbf16> to tensor<4x?xf32>
  %1 = mp.cast %0 origin(user) : tensor<4x?xf32> to tensor<4x?xbf16>
  %2 = mp.aten "aten.exp.default"(%1) : (tensor<4x?xbf16>) -> tensor<4x?xbf16>
  %3 = mp.cast %y origin(autocast) : tensor<4xf16> to tensor<4xf64>
  %4 = mp.cast %3 origin(user) : tensor<4xf64> to tensor<4xf16>
  %5 = mp.aten "aten.exp.default"(%4) : (tensor<4xf16>) -> tensor<4xf16>
  %6 = mp.cast %z origin(user) : tensor<4xf32> to tensor<4xf64>
  %7 = mp.cast %6 origin(user) : tensor<4xf64> to tensor<4xf32>
  %8 = mp.aten "aten.exp.default"(%7) : (tensor<4xf32>) -> tensor<4xf32>
  return %2, %5, %8 : tensor<4x?xbf16>, tensor<4xf16>, tensor<4xf32>
}

// Backward narrows what forward widened: it reads the narrow value, and forward
// keeps that one instead of the wide one.
// CHECK-LABEL: func.func @exact_round_trip_across_phases
// CHECK: mp.aten "aten.exp.default"(%arg0) {mp.backward}
func.func @exact_round_trip_across_phases(%x: tensor<4xbf16>) -> (tensor<4xf32>, tensor<4xbf16>) {
  %0 = mp.cast %x origin(user) : tensor<4xbf16> to tensor<4xf32>
  %1 = mp.cast %0 origin(user) {mp.backward} : tensor<4xf32> to tensor<4xbf16>
  %2 = mp.aten "aten.exp.default"(%1) {mp.backward} : (tensor<4xbf16>) -> tensor<4xbf16>
  return %0, %2 : tensor<4xf32>, tensor<4xbf16>
}

// An i16 fits the 24 bits of an f32.
// CHECK-LABEL: func.func @merge_after_exact
// CHECK-DAG: mp.cast %arg0 origin(user) : tensor<4xf16> to tensor<4xbf16>
// CHECK-DAG: mp.cast %arg1 origin(autocast) : tensor<4xi16> to tensor<4xbf16>
func.func @merge_after_exact(%x: tensor<4xf16>, %i: tensor<4xi16>) -> (tensor<4xbf16>, tensor<4xbf16>) {
  %0 = mp.cast %x origin(autocast) : tensor<4xf16> to tensor<4xf32>
  %1 = mp.cast %0 origin(user) : tensor<4xf32> to tensor<4xbf16>
  %2 = mp.cast %i origin(promotion) : tensor<4xi16> to tensor<4xf32>
  %3 = mp.cast %2 origin(autocast) : tensor<4xf32> to tensor<4xbf16>
  return %1, %3 : tensor<4xbf16>, tensor<4xbf16>
}

// The user's conversion back goes; the rounding before it is his from now on.
// CHECK-LABEL: func.func @exact_round_trip_of_user
// CHECK: mp.cast %arg0 origin(user) : tensor<4xf32> to tensor<4xbf16>
// CHECK-NOT: mp.cast %
func.func @exact_round_trip_of_user(%x: tensor<4xf32>) -> tensor<4xbf16> {
  %0 = mp.cast %x origin(autocast) : tensor<4xf32> to tensor<4xbf16>
  %1 = mp.cast %0 origin(autocast) : tensor<4xbf16> to tensor<4xf32>
  %2 = mp.cast %1 origin(user) : tensor<4xf32> to tensor<4xbf16>
  %3 = mp.aten "aten.exp.default"(%2) : (tensor<4xbf16>) -> tensor<4xbf16>
  return %3 : tensor<4xbf16>
}

// CHECK-LABEL: func.func @round_of_widened
// CHECK-NOT: mp.round %
func.func @round_of_widened(%x: tensor<4xbf16>) -> tensor<4xf32> {
  %0 = mp.cast %x origin(user) : tensor<4xbf16> to tensor<4xf32>
  %1 = mp.round %0 to bf16 origin(user) : tensor<4xf32>
  %2 = mp.aten "aten.exp.default"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// bf16 values are rounded to f16: the format holds other values.
// CHECK-LABEL: func.func @not_folded_round_to_other_half
// CHECK: mp.round %{{.*}} to f16
func.func @not_folded_round_to_other_half(%x: tensor<4xbf16>) -> tensor<4xf32> {
  %0 = mp.cast %x origin(user) : tensor<4xbf16> to tensor<4xf32>
  %1 = mp.round %0 to f16 origin(user) : tensor<4xf32>
  %2 = mp.aten "aten.exp.default"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// User code rounds on purpose: f32, bf16, f32 stays, whatever the contract.
// CHECK-LABEL: func.func @not_folded_narrow_and_back
// CHECK-COUNT-2: mp.cast %
func.func @not_folded_narrow_and_back(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.cast %x origin(user) : tensor<4xf32> to tensor<4xbf16>
  %1 = mp.cast %0 origin(user) : tensor<4xbf16> to tensor<4xf32>
  return %1 : tensor<4xf32>
}

// 1e5 is no f16 and becomes infinite; 1.0009765625 is no bf16 and becomes 1.
// CHECK-LABEL: func.func @not_folded_other_half
// CHECK-COUNT-4: mp.cast %
func.func @not_folded_other_half(%x: tensor<4xbf16>, %y: tensor<4xf16>) -> (tensor<4xbf16>, tensor<4xf16>) {
  %0 = mp.cast %x origin(autocast) : tensor<4xbf16> to tensor<4xf16>
  %1 = mp.cast %0 origin(autocast) : tensor<4xf16> to tensor<4xbf16>
  %2 = mp.cast %y origin(autocast) : tensor<4xf16> to tensor<4xbf16>
  %3 = mp.cast %2 origin(autocast) : tensor<4xbf16> to tensor<4xf16>
  return %1, %3 : tensor<4xbf16>, tensor<4xf16>
}

// 1 + 2^-8 + 2^-23 rounds to 1 by way of f16 and to 1.0078125 directly.
// CHECK-LABEL: func.func @not_merged_inner_rounds
// CHECK-COUNT-2: mp.cast %
func.func @not_merged_inner_rounds(%x: tensor<4xf32>) -> tensor<4xbf16> {
  %0 = mp.cast %x origin(autocast) : tensor<4xf32> to tensor<4xf16>
  %1 = mp.cast %0 origin(autocast) : tensor<4xf16> to tensor<4xbf16>
  return %1 : tensor<4xbf16>
}

// 2^31 + 2^23 + 1 rounds in f32 already.
// CHECK-LABEL: func.func @not_merged_wide_integer
// CHECK-COUNT-2: mp.cast %
func.func @not_merged_wide_integer(%x: tensor<4xi64>) -> tensor<4xbf16> {
  %0 = mp.cast %x origin(promotion) : tensor<4xi64> to tensor<4xf32>
  %1 = mp.cast %0 origin(autocast) : tensor<4xf32> to tensor<4xbf16>
  return %1 : tensor<4xbf16>
}

// -1 from i8 to ui8 is 255; from f32 to ui8 it depends on the machine.
// CHECK-LABEL: func.func @not_merged_integer_to_integer
// CHECK-COUNT-2: mp.cast %
func.func @not_merged_integer_to_integer(%x: tensor<4xi8>) -> tensor<4xui8> {
  %0 = mp.cast %x origin(user) : tensor<4xi8> to tensor<4xf32>
  %1 = mp.cast %0 origin(user) : tensor<4xf32> to tensor<4xui8>
  return %1 : tensor<4xui8>
}

// Backward would read the f16 value instead of the f32 one: both could be kept.
// CHECK-LABEL: func.func @not_merged_phases_differ
// CHECK: mp.cast %arg0 origin(user) : tensor<4xf16> to tensor<4xf32>
// CHECK: mp.cast %{{.*}} origin(user) {mp.backward} : tensor<4xf32> to tensor<4xbf16>
func.func @not_merged_phases_differ(%x: tensor<4xf16>) -> (tensor<4xf32>, tensor<4xbf16>) {
  %0 = mp.cast %x origin(user) : tensor<4xf16> to tensor<4xf32>
  %1 = mp.cast %0 origin(user) {mp.backward} : tensor<4xf32> to tensor<4xbf16>
  return %0, %1 : tensor<4xf32>, tensor<4xbf16>
}

// A checkpointed region runs twice, what is outside of it once.
// CHECK-LABEL: func.func @not_merged_recomputed
// CHECK: mp.cast %arg0 origin(user) : tensor<4xf16> to tensor<4xf32>
// CHECK: mp.cast %{{.*}} {mp.recompute = 0 : i64} : tensor<4xf32> to tensor<4xbf16>
func.func @not_merged_recomputed(%x: tensor<4xf16>) -> tensor<4xbf16> {
  %0 = mp.cast %x origin(user) : tensor<4xf16> to tensor<4xf32>
  %1 = mp.cast %0 origin(user) {mp.recompute = 0} : tensor<4xf32> to tensor<4xbf16>
  return %1 : tensor<4xbf16>
}

// A conversion copies. Without it the output would be the input's own memory,
// and whoever changes one in place would change the other.
// CHECK-LABEL: func.func @not_folded_output_is_input
// CHECK-COUNT-3: mp.cast %
func.func @not_folded_output_is_input(%x: tensor<4x4xbf16>) -> (tensor<4x4xbf16>, tensor<16xbf16>) {
  %0 = mp.cast %x origin(user) : tensor<4x4xbf16> to tensor<4x4xbf16>
  %1 = mp.cast %x origin(user) : tensor<4x4xbf16> to tensor<4x4xf32>
  %2 = mp.cast %1 origin(user) : tensor<4x4xf32> to tensor<4x4xbf16>
  %3 = mp.aten "aten.view.default"(%2) {args = {size = [16]}} : (tensor<4x4xbf16>) -> tensor<16xbf16>
  return %0, %3 : tensor<4x4xbf16>, tensor<16xbf16>
}

// CHECK-LABEL: func.func @not_folded_output_is_other_output
// CHECK-COUNT-2: mp.cast %
func.func @not_folded_output_is_other_output(%x: tensor<4xbf16>) -> (tensor<4xbf16>, tensor<4xbf16>) {
  %0 = mp.aten "aten.exp.default"(%x) : (tensor<4xbf16>) -> tensor<4xbf16>
  %1 = mp.cast %0 origin(user) : tensor<4xbf16> to tensor<4xf32>
  %2 = mp.cast %1 origin(user) : tensor<4xf32> to tensor<4xbf16>
  return %0, %2 : tensor<4xbf16>, tensor<4xbf16>
}

// CHECK-LABEL: func.func @round_trip_of_rounded
// CHECK: why = "f32 to bf16 of a value that is rounded already"
// CHECK: %[[R:.*]] = mp.round
// CHECK-NEXT: mp.aten "aten.exp.default"(%[[R]])
func.func @round_trip_of_rounded(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.round %x to bf16 origin(user) : tensor<4xf32>
  %1 = mp.cast %0 origin(autocast) : tensor<4xf32> to tensor<4xbf16>
  %2 = mp.cast %1 origin(autocast) : tensor<4xbf16> to tensor<4xf32>
  %3 = mp.aten "aten.exp.default"(%2) : (tensor<4xf32>) -> tensor<4xf32>
  return %3 : tensor<4xf32>
}

// The other half type rounds once more.
// CHECK-LABEL: func.func @not_folded_rounded_to_other_half
// CHECK-COUNT-2: mp.cast %
func.func @not_folded_rounded_to_other_half(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.round %x to bf16 origin(user) : tensor<4xf32>
  %1 = mp.cast %0 origin(user) : tensor<4xf32> to tensor<4xf16>
  %2 = mp.cast %1 origin(user) : tensor<4xf16> to tensor<4xf32>
  return %2 : tensor<4xf32>
}
