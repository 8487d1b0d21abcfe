// What keeps a narrowing from moving towards its definition.
// RUN: mpopt %s --mp-eliminate-casts=numerics=strict | FileCheck %s

// round(x * y) is not round(x) * round(y).
// CHECK-LABEL: func.func @not_hoisted_over_mul
// CHECK: mp.aten "aten.mul.Tensor"{{.*}} -> tensor<4xf32>
func.func @not_hoisted_over_mul(%x: tensor<4xbf16>, %y: tensor<4xbf16>) -> tensor<4xbf16> {
  %0 = mp.cast %x origin(user) : tensor<4xbf16> to tensor<4xf32>
  %1 = mp.cast %y origin(user) : tensor<4xbf16> to tensor<4xf32>
  %2 = mp.aten "aten.mul.Tensor"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = mp.cast %2 origin(user) : tensor<4xf32> to tensor<4xbf16>
  return %3 : tensor<4xbf16>
}

// relu(-1e-9) is +0; rounded first it is -0 in f16, and relu(-0) is -0.
// CHECK-LABEL: func.func @not_hoisted_sign_of_zero
// CHECK: mp.aten "aten.relu.default"{{.*}} -> tensor<4xf32>
// CHECK: mp.aten "aten.maximum.default"{{.*}} -> tensor<4xf32>
func.func @not_hoisted_sign_of_zero(%x: tensor<4xf32>, %y: tensor<4xf16>) -> (tensor<4xf16>, tensor<4xf16>) {
  %0 = mp.aten "aten.exp.default"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = mp.aten "aten.relu.default"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = mp.cast %1 origin(user) : tensor<4xf32> to tensor<4xf16>
  %3 = mp.cast %y origin(user) : tensor<4xf16> to tensor<4xf32>
  %4 = mp.aten "aten.maximum.default"(%3, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %5 = mp.cast %4 origin(user) : tensor<4xf32> to tensor<4xf16>
  return %2, %5 : tensor<4xf16>, tensor<4xf16>
}

// The smallest f32 (finfo.min) is no bf16: it would become -inf, and a row that
// is masked everywhere would become NaN in softmax.
// CHECK-LABEL: func.func @not_hoisted_inexact_filler
// CHECK: mp.aten "aten.masked_fill.Scalar"{{.*}} -> tensor<8xf32>
func.func @not_hoisted_inexact_filler(%x: tensor<8xbf16>, %m: tensor<8xi1>) -> tensor<8xbf16> {
  %0 = mp.cast %x origin(user) : tensor<8xbf16> to tensor<8xf32>
  %1 = mp.aten "aten.masked_fill.Scalar"(%0, %m) {args = {value = -3.4028234663852886e+38}} : (tensor<8xf32>, tensor<8xi1>) -> tensor<8xf32>
  %2 = mp.cast %1 origin(user) : tensor<8xf32> to tensor<8xbf16>
  return %2 : tensor<8xbf16>
}

// 257 is no bf16. As an integer it is a filler too.
// CHECK-LABEL: func.func @not_hoisted_integer_filler
// CHECK: mp.aten "aten.constant_pad_nd.default"{{.*}} -> tensor<9xf32>
func.func @not_hoisted_integer_filler(%x: tensor<8xbf16>) -> tensor<9xbf16> {
  %0 = mp.cast %x origin(user) : tensor<8xbf16> to tensor<8xf32>
  %1 = mp.aten "aten.constant_pad_nd.default"(%0) {args = {pad = [0, 1], value = 257}} : (tensor<8xf32>) -> tensor<9xf32>
  %2 = mp.cast %1 origin(user) : tensor<9xf32> to tensor<9xbf16>
  return %2 : tensor<9xbf16>
}

// A number known at run time only, as a scalar and as a size.
// CHECK-LABEL: func.func @not_hoisted_symbolic_filler
// CHECK-COUNT-2: mp.aten "aten.masked_fill.Scalar"{{.*}} -> tensor<8xf32>
func.func @not_hoisted_symbolic_filler(%x: tensor<8xbf16>, %m: tensor<8xi1>, %s: f64, %n: index) -> (tensor<8xbf16>, tensor<8xbf16>) {
  %0 = mp.cast %x origin(user) : tensor<8xbf16> to tensor<8xf32>
  %1 = mp.aten "aten.masked_fill.Scalar"(%0, %m, %s) {args = {value = "%2"}} : (tensor<8xf32>, tensor<8xi1>, f64) -> tensor<8xf32>
  %2 = mp.cast %1 origin(user) : tensor<8xf32> to tensor<8xbf16>
  %3 = mp.aten "aten.masked_fill.Scalar"(%0, %m, %n) {args = {value = "%2"}} : (tensor<8xf32>, tensor<8xi1>, index) -> tensor<8xf32>
  %4 = mp.cast %3 origin(user) : tensor<8xf32> to tensor<8xbf16>
  return %2, %4 : tensor<8xbf16>, tensor<8xbf16>
}

// cat of bf16 and f16 has the type f32, whatever the graph says.
// CHECK-LABEL: func.func @not_hoisted_mixed_operands
// CHECK: mp.aten "aten.cat.default"{{.*}} -> tensor<8xf32>
func.func @not_hoisted_mixed_operands(%x: tensor<4xbf16>, %y: tensor<4xf16>) -> tensor<8xbf16> {
  %0 = mp.cast %x origin(user) : tensor<4xbf16> to tensor<4xf32>
  %1 = mp.aten "aten.cat.default"(%0, %y) {args = {tensors = ["%0", "%1"]}} : (tensor<4xf32>, tensor<4xf16>) -> tensor<8xf32>
  %2 = mp.cast %1 origin(user) : tensor<8xf32> to tensor<8xbf16>
  return %2 : tensor<8xbf16>
}

// The i64 operand is a value: i64 to f32 to bf16 rounds twice.
// CHECK-LABEL: func.func @not_hoisted_integer_operand
// CHECK: mp.aten "aten.where.self"{{.*}} -> tensor<4xf32>
func.func @not_hoisted_integer_operand(%c: tensor<4xi1>, %x: tensor<4xbf16>, %i: tensor<4xi64>) -> tensor<4xbf16> {
  %0 = mp.cast %x origin(user) : tensor<4xbf16> to tensor<4xf32>
  %1 = mp.aten "aten.where.self"(%c, %0, %i) : (tensor<4xi1>, tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>
  %2 = mp.cast %1 origin(user) : tensor<4xf32> to tensor<4xbf16>
  return %2 : tensor<4xbf16>
}

// CHECK-LABEL: func.func @not_hoisted_unknown_operator
// CHECK: mp.aten "mylib.shuffle.default"{{.*}} -> tensor<4xf32>
func.func @not_hoisted_unknown_operator(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  %0 = mp.cast %x origin(user) : tensor<4xbf16> to tensor<4xf32>
  %1 = mp.aten "mylib.shuffle.default"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = mp.cast %1 origin(user) : tensor<4xf32> to tensor<4xbf16>
  return %2 : tensor<4xbf16>
}

// CHECK-LABEL: func.func @not_hoisted_over_effects
// CHECK: mp.aten effects "aten.clone.default"{{.*}} -> tensor<4xf32>
func.func @not_hoisted_over_effects(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  %0 = mp.cast %x origin(user) : tensor<4xbf16> to tensor<4xf32>
  %1 = mp.aten effects "aten.clone.default"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = mp.cast %1 origin(user) : tensor<4xf32> to tensor<4xbf16>
  return %2 : tensor<4xbf16>
}

// The other result keeps its type.
// CHECK-LABEL: func.func @not_hoisted_several_results
// CHECK: mp.aten "aten.split.Tensor"{{.*}} -> (tensor<4xf32>, tensor<4xf32>)
func.func @not_hoisted_several_results(%x: tensor<8xbf16>) -> (tensor<4xbf16>, tensor<4xf32>) {
  %0 = mp.cast %x origin(user) : tensor<8xbf16> to tensor<8xf32>
  %1:2 = mp.aten "aten.split.Tensor"(%0) {args = {split_size = 4}} : (tensor<8xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %2 = mp.cast %1#0 origin(user) : tensor<4xf32> to tensor<4xbf16>
  return %2, %1#1 : tensor<4xbf16>, tensor<4xf32>
}

// The copy would be made in both types.
// CHECK-LABEL: func.func @not_hoisted_two_readers
// CHECK-COUNT-1: mp.aten "aten.clone.default"{{.*}} -> tensor<4xf32>
// CHECK-NOT: mp.aten "aten.clone.default"
func.func @not_hoisted_two_readers(%x: tensor<4xf32>) -> (tensor<4xbf16>, tensor<4xf32>) {
  %1 = mp.aten "aten.exp.default"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = mp.aten "aten.clone.default"(%1) {args = {memory_format = "contiguous"}} : (tensor<4xf32>) -> tensor<4xf32>
  %4 = mp.cast %2 origin(user) : tensor<4xf32> to tensor<4xbf16>
  %5 = mp.aten "aten.exp.default"(%2) : (tensor<4xf32>) -> tensor<4xf32>
  return %4, %5 : tensor<4xbf16>, tensor<4xf32>
}

// CHECK-LABEL: func.func @not_hoisted_phases_differ
// CHECK: mp.aten "aten.t.default"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<8x4xf32>
func.func @not_hoisted_phases_differ(%x: tensor<4x8xf32>) -> tensor<8x4xbf16> {
  %0 = mp.aten "aten.exp.default"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = mp.aten "aten.t.default"(%0) : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %2 = mp.cast %1 origin(user) {mp.backward} : tensor<8x4xf32> to tensor<8x4xbf16>
  return %2 : tensor<8x4xbf16>
}

// A checkpointed region runs twice; it must not round what is outside of it.
// CHECK-LABEL: func.func @not_hoisted_out_of_recomputed_region
// CHECK: mp.aten "aten.t.default"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<8x4xf32>
func.func @not_hoisted_out_of_recomputed_region(%x: tensor<4x8xf32>) -> tensor<8x4xbf16> {
  %0 = mp.aten "aten.exp.default"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = mp.aten "aten.t.default"(%0) : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %2 = mp.cast %1 origin(user) {mp.recompute = 0} : tensor<8x4xf32> to tensor<8x4xbf16>
  return %2 : tensor<8x4xbf16>
}

// One row of a table is read: converting the whole table stores more.
// CHECK-LABEL: func.func @not_hoisted_more_elements
// CHECK: mp.aten "aten.select.int"{{.*}} -> tensor<8xf32>
func.func @not_hoisted_more_elements(%x: tensor<4x8xf32>) -> tensor<8xbf16> {
  %0 = mp.aten "aten.exp.default"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = mp.aten "aten.select.int"(%0) {args = {dim = 0, index = 1}} : (tensor<4x8xf32>) -> tensor<8xf32>
  %2 = mp.cast %1 origin(autocast) : tensor<8xf32> to tensor<8xbf16>
  return %2 : tensor<8xbf16>
}

// Of a dynamic size it is not known which side has fewer elements.
// CHECK-LABEL: func.func @not_hoisted_dynamic_size
// CHECK: mp.aten "aten.slice.Tensor"{{.*}} -> tensor<?xf32>
func.func @not_hoisted_dynamic_size(%x: tensor<?xf32>) -> tensor<?xbf16> {
  %0 = mp.aten "aten.exp.default"(%x) : (tensor<?xf32>) -> tensor<?xf32>
  %1 = mp.aten "aten.slice.Tensor"(%0) {args = {dim = 0, start = 1}} : (tensor<?xf32>) -> tensor<?xf32>
  %2 = mp.cast %1 origin(autocast) : tensor<?xf32> to tensor<?xbf16>
  return %2 : tensor<?xbf16>
}

// Nothing makes the input: the conversion would be a kernel there as here.
// CHECK-LABEL: func.func @not_hoisted_gains_nothing
// CHECK: mp.aten "aten.t.default"(%arg0) : (tensor<4x8xf32>) -> tensor<8x4xf32>
func.func @not_hoisted_gains_nothing(%x: tensor<4x8xf32>) -> tensor<8x4xbf16> {
  %0 = mp.aten "aten.t.default"(%x) : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %1 = mp.cast %0 origin(autocast) : tensor<8x4xf32> to tensor<8x4xbf16>
  return %1 : tensor<8x4xbf16>
}

// No part is stored narrow: one conversion of the whole stays.
// CHECK-LABEL: func.func @over_cat_of_wide_parts
// CHECK: mp.aten "aten.cat.default"(%arg0, %arg1)
// CHECK-NEXT: mp.cast
func.func @over_cat_of_wide_parts(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<8xbf16> {
  %0 = mp.aten "aten.cat.default"(%x, %y) {args = {tensors = ["%0", "%1"]}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %1 = mp.cast %0 origin(autocast) : tensor<8xf32> to tensor<8xbf16>
  return %1 : tensor<8xbf16>
}

// CHECK-LABEL: func.func @not_hoisted_kept
// CHECK: mp.aten "aten.t.default"({{.*}}) {{.*}} : (tensor<4x8xf32>) -> tensor<8x4xf32>
func.func @not_hoisted_kept(%x: tensor<4x8xf32>) -> tensor<8x4xbf16> {
  %0 = mp.aten "aten.sin.default"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = mp.aten "aten.t.default"(%0) {mp.pin = [#mp.pin<keep both, "policy", "off">]} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %2 = mp.cast %1 origin(autocast) : tensor<8x4xf32> to tensor<8x4xbf16>
  return %2 : tensor<8x4xbf16>
}
