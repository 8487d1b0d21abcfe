// RUN: mpopt %s --mp-eliminate-casts=numerics=strict | FileCheck %s

// CHECK-LABEL: func.func @under_clone
// CHECK: %[[C:.*]] = mp.aten "aten.clone.default"(%arg0) : (tensor<?x8xbf16>) -> tensor<?x8xbf16>
// CHECK: mp.cast %[[C]] origin(autocast) : tensor<?x8xbf16> to tensor<?x8xf32>
func.func @under_clone(%x: tensor<?x8xbf16>) -> tensor<?x8xf32> {
  %0 = mp.cast %x origin(autocast) : tensor<?x8xbf16> to tensor<?x8xf32>
  %1 = mp.aten "aten.clone.default"(%0) : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}

// All operands are widened from one type; one of them is read twice.
// CHECK-LABEL: func.func @under_cat
// CHECK: %[[C:.*]] = mp.aten "aten.cat.default"(%arg0, %arg1, %arg0){{.*}} -> tensor<12xf16>
// CHECK: mp.cast %[[C]]
// CHECK-NOT: mp.cast %
func.func @under_cat(%x: tensor<4xf16>, %y: tensor<4xf16>) -> tensor<12xf32> {
  %0 = mp.cast %x origin(autocast) : tensor<4xf16> to tensor<4xf32>
  %1 = mp.cast %y origin(user) : tensor<4xf16> to tensor<4xf32>
  %2 = mp.aten "aten.cat.default"(%0, %1, %0) {args = {tensors = ["%0", "%1", "%2"]}} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<12xf32>
  return %2 : tensor<12xf32>
}

// The mask and the indices are no values; f32 to f64 widens as well.
// CHECK-LABEL: func.func @under_where_and_embedding
// CHECK: mp.aten "aten.where.self"({{.*}}) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
// CHECK: mp.aten "aten.embedding.default"({{.*}}) : (tensor<9x4xbf16>, tensor<2xi64>) -> tensor<2x4xbf16>
func.func @under_where_and_embedding(%c: tensor<4xi1>, %x: tensor<4xf32>, %w: tensor<9x4xbf16>, %i: tensor<2xi64>) -> (tensor<4xf64>, tensor<2x4xf32>) {
  %0 = mp.cast %x origin(user) : tensor<4xf32> to tensor<4xf64>
  %1 = mp.aten "aten.where.self"(%c, %0, %0) : (tensor<4xi1>, tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %2 = mp.cast %w origin(user) : tensor<9x4xbf16> to tensor<9x4xf32>
  %3 = mp.aten "aten.embedding.default"(%2, %i) : (tensor<9x4xf32>, tensor<2xi64>) -> tensor<2x4xf32>
  return %1, %3 : tensor<4xf64>, tensor<2x4xf32>
}

// CHECK-LABEL: func.func @not_sunk_under_arithmetic
// CHECK: mp.aten "aten.exp.default"{{.*}} -> tensor<4xf32>
func.func @not_sunk_under_arithmetic(%x: tensor<4xbf16>) -> tensor<4xf32> {
  %0 = mp.cast %x origin(autocast) : tensor<4xbf16> to tensor<4xf32>
  %1 = mp.aten "aten.exp.default"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// A view copies nothing in either type.
// CHECK-LABEL: func.func @not_sunk_under_view
// CHECK: mp.aten "aten.t.default"{{.*}} -> tensor<4x4xf32>
func.func @not_sunk_under_view(%x: tensor<4x4xbf16>) -> tensor<4x4xf32> {
  %0 = mp.cast %x origin(autocast) : tensor<4x4xbf16> to tensor<4x4xf32>
  %1 = mp.aten "aten.t.default"(%0) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

// One operand of the concatenation stays wide.
// CHECK-LABEL: func.func @not_sunk_wide_operand
// CHECK: mp.aten "aten.cat.default"{{.*}} -> tensor<8xf32>
func.func @not_sunk_wide_operand(%x: tensor<4xbf16>, %y: tensor<4xf32>) -> tensor<8xf32> {
  %0 = mp.cast %x origin(autocast) : tensor<4xbf16> to tensor<4xf32>
  %1 = mp.aten "aten.cat.default"(%0, %y) {args = {tensors = ["%0", "%1"]}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// Two half types have no common half type.
// CHECK-LABEL: func.func @not_sunk_two_halves
// CHECK: mp.aten "aten.cat.default"{{.*}} -> tensor<8xf32>
func.func @not_sunk_two_halves(%x: tensor<4xbf16>, %y: tensor<4xf16>) -> tensor<8xf32> {
  %0 = mp.cast %x origin(autocast) : tensor<4xbf16> to tensor<4xf32>
  %1 = mp.cast %y origin(autocast) : tensor<4xf16> to tensor<4xf32>
  %2 = mp.aten "aten.cat.default"(%0, %1) {args = {tensors = ["%0", "%1"]}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}

// copy converts its source: an f64 would be rounded to bf16 instead of f32.
// CHECK-LABEL: func.func @not_sunk_mixed_operands
// CHECK: mp.aten "aten.copy.default"{{.*}} -> tensor<4xf32>
func.func @not_sunk_mixed_operands(%x: tensor<4xbf16>, %s: tensor<4xf64>) -> tensor<4xf32> {
  %0 = mp.cast %x origin(user) : tensor<4xbf16> to tensor<4xf32>
  %1 = mp.aten "aten.copy.default"(%0, %s) : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// The smallest f32 is no bf16.
// CHECK-LABEL: func.func @not_sunk_inexact_filler
// CHECK: mp.aten "aten.masked_fill.Scalar"{{.*}} -> tensor<4xf32>
func.func @not_sunk_inexact_filler(%x: tensor<4xbf16>, %m: tensor<4xi1>) -> tensor<4xf32> {
  %0 = mp.cast %x origin(autocast) : tensor<4xbf16> to tensor<4xf32>
  %1 = mp.aten "aten.masked_fill.Scalar"(%0, %m) {args = {value = -3.4028234663852886e+38}} : (tensor<4xf32>, tensor<4xi1>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// The wide value is needed anyway.
// CHECK-LABEL: func.func @not_sunk_other_reader
// CHECK: mp.aten "aten.clone.default"{{.*}} -> tensor<4xf32>
func.func @not_sunk_other_reader(%x: tensor<4xbf16>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = mp.cast %x origin(autocast) : tensor<4xbf16> to tensor<4xf32>
  %1 = mp.aten "aten.clone.default"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = mp.aten "aten.exp.default"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1, %2 : tensor<4xf32>, tensor<4xf32>
}

// An integer is converted, not copied.
// CHECK-LABEL: func.func @not_sunk_integer
// CHECK: mp.aten "aten.clone.default"{{.*}} -> tensor<4xf32>
func.func @not_sunk_integer(%i: tensor<4xi16>) -> tensor<4xf32> {
  %0 = mp.cast %i origin(user) : tensor<4xi16> to tensor<4xf32>
  %1 = mp.aten "aten.clone.default"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: func.func @not_sunk_phases_differ
// CHECK: mp.aten "aten.clone.default"{{.*}} -> tensor<4xf32>
func.func @not_sunk_phases_differ(%x: tensor<4xbf16>) -> tensor<4xf32> {
  %0 = mp.cast %x origin(autocast) : tensor<4xbf16> to tensor<4xf32>
  %1 = mp.aten "aten.clone.default"(%0) {mp.backward} : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: func.func @not_sunk_into_recomputed_region
// CHECK: mp.aten "aten.clone.default"{{.*}} -> tensor<4xf32>
func.func @not_sunk_into_recomputed_region(%x: tensor<4xbf16>) -> tensor<4xf32> {
  %0 = mp.cast %x origin(autocast) : tensor<4xbf16> to tensor<4xf32>
  %1 = mp.aten "aten.clone.default"(%0) {mp.recompute = 0} : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: func.func @not_sunk_kept
// CHECK: mp.aten "aten.clone.default"{{.*}} -> tensor<4xf32>
func.func @not_sunk_kept(%x: tensor<4xbf16>) -> tensor<4xf32> {
  %0 = mp.cast %x origin(autocast) : tensor<4xbf16> to tensor<4xf32>
  %1 = mp.aten "aten.clone.default"(%0) {mp.pin = [#mp.pin<keep both, "policy", "off">]} : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
