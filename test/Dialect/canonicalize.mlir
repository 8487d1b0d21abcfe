// Folds and canonicalization: only what changes no bit.
// RUN: mpopt %s --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @same_type
// CHECK-NEXT: return %arg0
func.func @same_type(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.cast %x origin(user) : tensor<4xf32> to tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @widen_and_back
// CHECK-NEXT: return %arg0, %arg1
func.func @widen_and_back(%x: tensor<4xf16>, %y: tensor<?xbf16>) -> (tensor<4xf16>, tensor<?xbf16>) {
  %0 = mp.cast %x origin(user) : tensor<4xf16> to tensor<4xf32>
  %1 = mp.cast %0 origin(user) : tensor<4xf32> to tensor<4xf16>
  %2 = mp.cast %y origin(autocast) : tensor<?xbf16> to tensor<?xf64>
  %3 = mp.cast %2 origin(user) : tensor<?xf64> to tensor<?xbf16>
  return %1, %3 : tensor<4xf16>, tensor<?xbf16>
}

// CHECK-LABEL: func.func @merge_after_exact
// CHECK-NEXT: mp.cast %arg0 origin(user) : tensor<4xf16> to tensor<4xbf16>
// CHECK-NEXT: return
func.func @merge_after_exact(%x: tensor<4xf16>) -> tensor<4xbf16> {
  %0 = mp.cast %x origin(autocast) : tensor<4xf16> to tensor<4xf32>
  %1 = mp.cast %0 origin(user) : tensor<4xf32> to tensor<4xbf16>
  return %1 : tensor<4xbf16>
}

// CHECK-LABEL: func.func @round_twice
// CHECK-NEXT: %[[R:.*]] = mp.round %arg0 to bf16 origin(user)
// CHECK-NEXT: return %[[R]]
func.func @round_twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.round %x to bf16 origin(user) : tensor<4xf32>
  %1 = mp.round %0 to bf16 origin(autocast) : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// f32 to bf16 and back is a rounding.
// CHECK-LABEL: func.func @not_folded_narrow_and_back
// CHECK-COUNT-2: mp.cast %
func.func @not_folded_narrow_and_back(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.cast %x origin(autocast) : tensor<4xf32> to tensor<4xbf16>
  %1 = mp.cast %0 origin(autocast) : tensor<4xbf16> to tensor<4xf32>
  return %1 : tensor<4xf32>
}

// 1e5 is a bf16 and no f16: neither half type holds the other.
// CHECK-LABEL: func.func @not_folded_other_half
// CHECK-COUNT-2: mp.cast %
func.func @not_folded_other_half(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  %0 = mp.cast %x origin(user) : tensor<4xbf16> to tensor<4xf16>
  %1 = mp.cast %0 origin(user) : tensor<4xf16> to tensor<4xbf16>
  return %1 : tensor<4xbf16>
}

// 1 + 2^-8 + 2^-23 rounds to 1 by way of f16, to 1.0078125 directly.
// CHECK-LABEL: func.func @not_merged_double_rounding
// CHECK-COUNT-2: mp.cast %
func.func @not_merged_double_rounding(%x: tensor<4xf32>) -> tensor<4xbf16> {
  %0 = mp.cast %x origin(user) : tensor<4xf32> to tensor<4xf16>
  %1 = mp.cast %0 origin(user) : tensor<4xf16> to tensor<4xbf16>
  return %1 : tensor<4xbf16>
}

// f32 does not hold 2^31 + 2^23 + 1.
// CHECK-LABEL: func.func @not_merged_wide_integer
// CHECK-COUNT-2: mp.cast %
func.func @not_merged_wide_integer(%x: tensor<4xi64>) -> tensor<4xbf16> {
  %0 = mp.cast %x origin(promotion) : tensor<4xi64> to tensor<4xf32>
  %1 = mp.cast %0 origin(autocast) : tensor<4xf32> to tensor<4xbf16>
  return %1 : tensor<4xbf16>
}

// -1 from i8 to ui8 is 255; f32 to ui8 of -1.0 is whatever the machine does.
// CHECK-LABEL: func.func @not_merged_integer_to_integer
// CHECK-COUNT-2: mp.cast %
func.func @not_merged_integer_to_integer(%x: tensor<4xi8>) -> tensor<4xui8> {
  %0 = mp.cast %x origin(user) : tensor<4xi8> to tensor<4xf32>
  %1 = mp.cast %0 origin(user) : tensor<4xf32> to tensor<4xui8>
  return %1 : tensor<4xui8>
}

// Unequal formats: the second rounding still changes values.
// CHECK-LABEL: func.func @not_folded_two_formats
// CHECK-COUNT-2: mp.round
func.func @not_folded_two_formats(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.round %x to bf16 origin(user) : tensor<4xf32>
  %1 = mp.round %0 to f16 origin(user) : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: func.func @materialize_twice
// CHECK-NEXT: %[[M:.*]] = mp.materialize %arg0
// CHECK-NEXT: return %[[M]]
func.func @materialize_twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.materialize %x : tensor<4xf32>
  %1 = mp.materialize %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// Folds reach into the body, which may then hand on what it got.
// CHECK-LABEL: func.func @folded_in_update
// CHECK: mp.scaled_update(%arg0)
// CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<4xbf16>):
// CHECK-NEXT: mp.yield %[[A]] : tensor<4xbf16>
func.func @folded_in_update(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  %0 = mp.scaled_update(%x) : (tensor<4xbf16>) -> tensor<4xbf16> {
  ^bb0(%a: tensor<4xbf16>):
    %1 = mp.cast %a origin(user) : tensor<4xbf16> to tensor<4xf32>
    %2 = mp.cast %1 origin(user) : tensor<4xf32> to tensor<4xbf16>
    mp.yield %2 : tensor<4xbf16>
  }
  return %0 : tensor<4xbf16>
}

// An update that nobody reads has no effect.
// CHECK-LABEL: func.func @unread_update
// CHECK-NEXT: return %arg0
func.func @unread_update(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.scaled_update(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %1 = mp.aten "aten.neg.default"(%a) : (tensor<4xf32>) -> tensor<4xf32>
    mp.yield %1 : tensor<4xf32>
  }
  return %x : tensor<4xf32>
}
