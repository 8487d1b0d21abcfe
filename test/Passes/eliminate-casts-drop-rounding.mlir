// RUN: mpopt %s --mp-eliminate-casts=numerics=precise | FileCheck %s
// RUN: mpopt %s --mp-eliminate-casts=numerics=strict | FileCheck %s --check-prefix=STRICT

// CHECK-LABEL: func.func @every_reader_widens
// CHECK-NOT: mp.cast %
// STRICT-LABEL: func.func @every_reader_widens
// STRICT-COUNT-3: mp.cast %
func.func @every_reader_widens(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = mp.cast %x origin(autocast) : tensor<4xf32> to tensor<4xbf16>
  %1 = mp.cast %0 origin(promotion) : tensor<4xbf16> to tensor<4xf32>
  %2 = mp.cast %0 origin(user) : tensor<4xbf16> to tensor<4xf32>
  %3 = mp.aten "aten.exp.default"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  %4 = mp.aten "aten.sin.default"(%2) : (tensor<4xf32>) -> tensor<4xf32>
  return %3, %4 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @origins_of_no_user
// CHECK-NOT: mp.cast %
func.func @origins_of_no_user(%x: tensor<?xf32>, %y: tensor<4xf64>) -> (tensor<?xf32>, tensor<4xf64>) {
  %0 = mp.cast %x origin(decomposition) : tensor<?xf32> to tensor<?xf16>
  %1 = mp.cast %0 origin(decomposition) : tensor<?xf16> to tensor<?xf32>
  %2 = mp.aten "aten.exp.default"(%1) : (tensor<?xf32>) -> tensor<?xf32>
  %3 = mp.cast %y origin(promotion) : tensor<4xf64> to tensor<4xf32>
  %4 = mp.cast %3 origin(promotion) : tensor<4xf32> to tensor<4xf64>
  %5 = mp.aten "aten.exp.default"(%4) : (tensor<4xf64>) -> tensor<4xf64>
  return %2, %5 : tensor<?xf32>, tensor<4xf64>
}

// Backward reads x itself as well: it is kept wide in any case.
// CHECK-LABEL: func.func @kept_wide_anyway
// CHECK-NOT: mp.cast %
func.func @kept_wide_anyway(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = mp.aten "aten.exp.default"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = mp.cast %0 origin(autocast) : tensor<4xf32> to tensor<4xbf16>
  %2 = mp.cast %1 origin(autocast) {mp.backward} : tensor<4xbf16> to tensor<4xf32>
  %3 = mp.aten "aten.exp.default"(%2) {mp.backward} : (tensor<4xf32>) -> tensor<4xf32>
  %4 = mp.aten "aten.mul.Tensor"(%3, %0) {mp.backward} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %3, %4 : tensor<4xf32>, tensor<4xf32>
}

// The user wrote it.
// CHECK-LABEL: func.func @not_dropped_user
// CHECK-COUNT-2: mp.cast %
func.func @not_dropped_user(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.cast %x origin(user) : tensor<4xf32> to tensor<4xbf16>
  %1 = mp.cast %0 origin(autocast) : tensor<4xbf16> to tensor<4xf32>
  %2 = mp.aten "aten.exp.default"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// The matrix product reads the half value: the other reader must see the same.
// CHECK-LABEL: func.func @not_dropped_half_reader
// CHECK-COUNT-2: mp.cast %
func.func @not_dropped_half_reader(%x: tensor<4x4xf32>) -> (tensor<4x4xbf16>, tensor<4x4xf32>) {
  %0 = mp.cast %x origin(autocast) : tensor<4x4xf32> to tensor<4x4xbf16>
  %1 = mp.aten "aten.mm.default"(%0, %0) : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<4x4xbf16>
  %2 = mp.cast %0 origin(autocast) : tensor<4x4xbf16> to tensor<4x4xf32>
  %3 = mp.aten "aten.exp.default"(%2) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %1, %3 : tensor<4x4xbf16>, tensor<4x4xf32>
}

// The way back is a rounding too: bf16 does not hold every f16, nor the reverse.
// CHECK-LABEL: func.func @not_dropped_other_half
// CHECK-COUNT-2: mp.cast %
func.func @not_dropped_other_half(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  %0 = mp.cast %x origin(autocast) : tensor<4xbf16> to tensor<4xf16>
  %1 = mp.cast %0 origin(autocast) : tensor<4xf16> to tensor<4xbf16>
  %2 = mp.aten "aten.exp.default"(%1) : (tensor<4xbf16>) -> tensor<4xbf16>
  return %2 : tensor<4xbf16>
}

// Two values that rounded to one decide a comparison.
// CHECK-LABEL: func.func @not_dropped_compared
// CHECK-COUNT-2: mp.cast %
func.func @not_dropped_compared(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xi1> {
  %0 = mp.cast %x origin(autocast) : tensor<4xf32> to tensor<4xbf16>
  %1 = mp.cast %0 origin(autocast) : tensor<4xbf16> to tensor<4xf32>
  %2 = mp.aten "aten.eq.Tensor"(%1, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return %2 : tensor<4xi1>
}

// Seen through a view and a maximum.
// CHECK-LABEL: func.func @not_dropped_argmax
// CHECK-COUNT-2: mp.cast %
func.func @not_dropped_argmax(%x: tensor<4x4xf32>) -> tensor<i64> {
  %0 = mp.cast %x origin(autocast) : tensor<4x4xf32> to tensor<4x4xbf16>
  %1 = mp.cast %0 origin(autocast) : tensor<4x4xbf16> to tensor<4x4xf32>
  %2 = mp.aten "aten.t.default"(%1) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = mp.aten "aten.relu.default"(%2) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = mp.aten "aten.argmax.default"(%3) : (tensor<4x4xf32>) -> tensor<i64>
  return %4 : tensor<i64>
}

// CHECK-LABEL: func.func @not_dropped_floor
// CHECK-COUNT-2: mp.cast %
func.func @not_dropped_floor(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.cast %x origin(autocast) : tensor<4xf32> to tensor<4xbf16>
  %1 = mp.cast %0 origin(autocast) : tensor<4xbf16> to tensor<4xf32>
  %2 = mp.aten "aten.floor.default"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// The integers are then made of the f16 values, which are the same.
// CHECK-LABEL: func.func @not_dropped_integer_and_boolean
// CHECK: mp.cast %arg0 origin(autocast) : tensor<4xf32> to tensor<4xf16>
// CHECK: mp.cast %{{.*}} origin(user) : tensor<4xf16> to tensor<4xi32>
// CHECK: mp.cast %{{.*}} origin(user) : tensor<4xf16> to tensor<4xi1>
func.func @not_dropped_integer_and_boolean(%x: tensor<4xf32>) -> (tensor<4xi32>, tensor<4xi1>) {
  %0 = mp.cast %x origin(autocast) : tensor<4xf32> to tensor<4xf16>
  %1 = mp.cast %0 origin(autocast) : tensor<4xf16> to tensor<4xf32>
  %2 = mp.cast %1 origin(user) : tensor<4xf32> to tensor<4xi32>
  %3 = mp.cast %1 origin(user) : tensor<4xf32> to tensor<4xi1>
  return %2, %3 : tensor<4xi32>, tensor<4xi1>
}

// The gradient of relu asks whether its input was above zero.
// CHECK-LABEL: func.func @not_dropped_threshold
// CHECK-COUNT-2: mp.cast %
func.func @not_dropped_threshold(%x: tensor<4xf32>, %g: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.cast %x origin(autocast) : tensor<4xf32> to tensor<4xf16>
  %1 = mp.cast %0 origin(autocast) : tensor<4xf16> to tensor<4xf32>
  %2 = mp.aten "aten.threshold_backward.default"(%g, %1) {args = {threshold = 0}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// An operator without a row may do any of the above.
// CHECK-LABEL: func.func @not_dropped_unknown_reader
// CHECK-COUNT-2: mp.cast %
func.func @not_dropped_unknown_reader(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.cast %x origin(autocast) : tensor<4xf32> to tensor<4xbf16>
  %1 = mp.cast %0 origin(autocast) : tensor<4xbf16> to tensor<4xf32>
  %2 = mp.aten "mylib.route.default"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// Backward keeps two bytes for each element; without the rounding, four.
// CHECK-LABEL: func.func @not_dropped_saved_for_backward
// CHECK-COUNT-2: mp.cast %
func.func @not_dropped_saved_for_backward(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.cast %x origin(autocast) : tensor<4xf32> to tensor<4xbf16>
  %1 = mp.cast %0 origin(autocast) {mp.backward} : tensor<4xbf16> to tensor<4xf32>
  %2 = mp.aten "aten.exp.default"(%1) {mp.backward} : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// The same where forward widens: backward can widen the kept half value again.
// CHECK-LABEL: func.func @not_dropped_kept_and_widened_again
// CHECK-COUNT-2: mp.cast %
func.func @not_dropped_kept_and_widened_again(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.cast %x origin(autocast) : tensor<4xf32> to tensor<4xbf16>
  %1 = mp.cast %0 origin(autocast) : tensor<4xbf16> to tensor<4xf32>
  %2 = mp.aten "aten.exp.default"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = mp.aten "aten.mul.Tensor"(%2, %2) {mp.backward} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %3 : tensor<4xf32>
}

// A checkpointed region would keep its input wide.
// CHECK-LABEL: func.func @not_dropped_into_recomputed_region
// CHECK-COUNT-2: mp.cast %
func.func @not_dropped_into_recomputed_region(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.cast %x origin(autocast) : tensor<4xf32> to tensor<4xbf16>
  %1 = mp.cast %0 origin(autocast) {mp.recompute = 0} : tensor<4xbf16> to tensor<4xf32>
  %2 = mp.aten "aten.exp.default"(%1) {mp.recompute = 0} : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// The output would be the input's own memory.
// CHECK-LABEL: func.func @not_dropped_output_is_input
// CHECK-COUNT-2: mp.cast %
func.func @not_dropped_output_is_input(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.cast %x origin(autocast) : tensor<4xf32> to tensor<4xbf16>
  %1 = mp.cast %0 origin(autocast) : tensor<4xbf16> to tensor<4xf32>
  return %1 : tensor<4xf32>
}

// f32 rounded to f16 differs from f32 rounded to bf16 and then to f16.
// CHECK-LABEL: func.func @not_dropped_rounded_to_another_format
// CHECK: mp.cast %arg0 origin(autocast) : tensor<4xf32> to tensor<4xbf16>
func.func @not_dropped_rounded_to_another_format(%x: tensor<4xf32>) -> tensor<4xi1> {
  %0 = mp.cast %x origin(autocast) : tensor<4xf32> to tensor<4xbf16>
  %1 = mp.cast %0 origin(autocast) : tensor<4xbf16> to tensor<4xf32>
  %2 = mp.round %1 to f16 origin(user) : tensor<4xf32>
  %3 = mp.aten "aten.gt.Scalar"(%2) {args = {other = 0.5}} : (tensor<4xf32>) -> tensor<4xi1>
  return %3 : tensor<4xi1>
}

// Backward rounds x once more and would read another value than forward.
// CHECK-LABEL: func.func @not_dropped_rounded_in_backward_too
// CHECK-COUNT-3: mp.cast %
func.func @not_dropped_rounded_in_backward_too(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xbf16>) {
  %0 = mp.cast %x origin(autocast) : tensor<4xf32> to tensor<4xbf16>
  %1 = mp.cast %0 origin(autocast) : tensor<4xbf16> to tensor<4xf32>
  %2 = mp.aten "aten.exp.default"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = mp.cast %x origin(autocast) {mp.backward} : tensor<4xf32> to tensor<4xbf16>
  %4 = mp.aten "aten.exp.default"(%3) {mp.backward} : (tensor<4xbf16>) -> tensor<4xbf16>
  return %2, %4 : tensor<4xf32>, tensor<4xbf16>
}

// A conversion that only copies hides nothing from the integer reader behind it.
// CHECK-LABEL: func.func @not_dropped_read_through_a_copy
// CHECK-COUNT-2: mp.cast %{{.*}}bf16
func.func @not_dropped_read_through_a_copy(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = mp.cast %x origin(autocast) : tensor<4xf32> to tensor<4xbf16>
  %1 = mp.cast %0 origin(autocast) : tensor<4xbf16> to tensor<4xf32>
  %2 = mp.cast %1 origin(user) : tensor<4xf32> to tensor<4xf32>
  %3 = mp.aten "aten.round.default"(%2) : (tensor<4xf32>) -> tensor<4xf32>
  return %3, %2 : tensor<4xf32>, tensor<4xf32>
}

// The same value is rounded for forward too, from the type that holds it exactly.
// CHECK-LABEL: func.func @not_dropped_rounded_from_narrower_type
// CHECK: mp.cast %{{.*}} {mp.backward} : tensor<4xf32> to tensor<4xf16>
func.func @not_dropped_rounded_from_narrower_type(%x: tensor<4xbf16>) -> (tensor<4xf16>, tensor<4xf32>, tensor<4xf32>) {
  %0 = mp.cast %x origin(autocast) : tensor<4xbf16> to tensor<4xf16>
  %1 = mp.cast %x origin(autocast) : tensor<4xbf16> to tensor<4xf32>
  %2 = mp.cast %1 origin(autocast) {mp.backward} : tensor<4xf32> to tensor<4xf16>
  %3 = mp.cast %2 origin(autocast) {mp.backward} : tensor<4xf16> to tensor<4xf32>
  %4 = mp.aten "aten.exp.default"(%3) {mp.backward} : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %4 : tensor<4xf16>, tensor<4xf32>, tensor<4xf32>
}

// So it is where mp.round rounds it for the other phase.
// CHECK-LABEL: func.func @not_dropped_rounded_in_place
// CHECK-COUNT-2: mp.cast %
func.func @not_dropped_rounded_in_place(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = mp.cast %x origin(autocast) : tensor<4xf32> to tensor<4xbf16>
  %1 = mp.cast %0 origin(autocast) : tensor<4xbf16> to tensor<4xf32>
  %2 = mp.aten "aten.exp.default"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = mp.round %x to bf16 origin(user) {mp.backward} : tensor<4xf32>
  return %2, %3 : tensor<4xf32>, tensor<4xf32>
}

// The user's rounding is the autocast one from now on: it may not be dropped.
// CHECK-LABEL: func.func @not_dropped_taken_over_by_the_user
// CHECK: mp.cast %{{.*}} origin(user) : tensor<4xf32> to tensor<4xbf16>
func.func @not_dropped_taken_over_by_the_user(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.cast %x origin(autocast) : tensor<4xf32> to tensor<4xbf16>
  %1 = mp.cast %0 origin(autocast) : tensor<4xbf16> to tensor<4xf32>
  %2 = mp.round %1 to bf16 origin(user) {mp.backward} : tensor<4xf32>
  %3 = mp.aten "aten.exp.default"(%2) {mp.backward} : (tensor<4xf32>) -> tensor<4xf32>
  return %3 : tensor<4xf32>
}
