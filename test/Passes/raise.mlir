// RUN: mpopt %s --mp-raise | FileCheck %s

// CHECK-LABEL: func.func @whole_operators
// CHECK: mp.layer_norm(%arg0, %arg1, %arg1) {args = {eps = 1.000000e-05 : f64, normalized_shape = [8]}}
// CHECK: mp.softmax(%{{.*}}) {args = {dim = -1 : i64, half_to_float = false}}
// CHECK: mp.gelu(%{{.*}}) {args = {approximate = "tanh"}, mp.backward}
// CHECK: mp.silu
// CHECK-NOT: mp.aten
func.func @whole_operators(%x: tensor<4x8xf32>, %w: tensor<8xf32>) -> tensor<4x8xf32> {
  %0:3 = mp.aten "aten.native_layer_norm.default"(%x, %w, %w) {args = {eps = 1.0e-5, normalized_shape = [8]}} : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x1xf32>, tensor<4x1xf32>)
  %1 = mp.aten "aten._softmax.default"(%0#0) {args = {dim = -1, half_to_float = false}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = mp.aten "aten.gelu.default"(%1) {args = {approximate = "tanh"}, mp.backward} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = mp.aten "aten.silu.default"(%2) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %3 : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @cross_entropy
// CHECK: mp.log_softmax
// CHECK: mp.nll_loss
func.func @cross_entropy(%x: tensor<4x8xf32>, %t: tensor<4xi64>) -> tensor<f32> {
  %0 = mp.aten "aten._log_softmax.default"(%x) {args = {dim = 1, half_to_float = false}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1:2 = mp.aten "aten.nll_loss_forward.default"(%0, %t) {args = {weight = unit, reduction = 1, ignore_index = -100}} : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<f32>)
  return %1#0 : tensor<f32>
}

// CHECK-LABEL: func.func @matrix_products
// CHECK: mp.matmul %arg0, %arg1 : (tensor<?x8xbf16>, tensor<8x2xbf16>) -> tensor<?x2xbf16>
// CHECK: mp.matmul %arg0, %arg1 bias(%arg2 : tensor<2xbf16>)
// CHECK: mp.matmul %arg3, %arg3 : (tensor<3x4x4xf32>
func.func @matrix_products(%a: tensor<?x8xbf16>, %b: tensor<8x2xbf16>, %c: tensor<2xbf16>, %d: tensor<3x4x4xf32>) -> (tensor<?x2xbf16>, tensor<?x2xbf16>, tensor<3x4x4xf32>) {
  %0 = mp.aten "aten.mm.default"(%a, %b) : (tensor<?x8xbf16>, tensor<8x2xbf16>) -> tensor<?x2xbf16>
  %1 = mp.aten "aten.addmm.default"(%c, %a, %b) : (tensor<2xbf16>, tensor<?x8xbf16>, tensor<8x2xbf16>) -> tensor<?x2xbf16>
  %2 = mp.aten "aten.bmm.default"(%d, %d) : (tensor<3x4x4xf32>, tensor<3x4x4xf32>) -> tensor<3x4x4xf32>
  return %0, %1, %2 : tensor<?x2xbf16>, tensor<?x2xbf16>, tensor<3x4x4xf32>
}

// alpha and beta scale the two terms: the op has no word for them.
// CHECK-LABEL: func.func @not_raised_scaled
// CHECK: mp.aten "aten.addmm.default"
func.func @not_raised_scaled(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>, %c: tensor<2xf32>) -> tensor<4x2xf32> {
  %0 = mp.aten "aten.addmm.default"(%c, %a, %b) {args = {beta = 2, alpha = 1}} : (tensor<2xf32>, tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// CHECK-LABEL: func.func @not_raised_integers
// CHECK: mp.aten "aten.mm.default"
func.func @not_raised_integers(%a: tensor<4x4xi64>) -> tensor<4x4xi64> {
  %0 = mp.aten "aten.mm.default"(%a, %a) : (tensor<4x4xi64>, tensor<4x4xi64>) -> tensor<4x4xi64>
  return %0 : tensor<4x4xi64>
}

// As traced inside an autocast block whose casts are not in the graph.
// CHECK-LABEL: func.func @not_raised_types_do_not_fit
// CHECK: mp.aten "aten.mm.default"
func.func @not_raised_types_do_not_fit(%a: tensor<4x4xf32>) -> tensor<4x4xbf16> {
  %0 = mp.aten "aten.mm.default"(%a, %a) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xbf16>
  return %0 : tensor<4x4xbf16>
}

// CHECK-LABEL: func.func @not_raised_with_effects
// CHECK: mp.aten effects "aten.silu.default"
func.func @not_raised_with_effects(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.aten effects "aten.silu.default"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// Only the default overload has the op's meaning.
// CHECK-LABEL: func.func @not_raised_other_overload
// CHECK: mp.aten "aten._softmax.out"
func.func @not_raised_other_overload(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.aten "aten._softmax.out"(%x, %x) {args = {dim = 0}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// A rounding that the user means: its origin protects it, and either half may
// still meet another conversion.
// CHECK-LABEL: func.func @not_raised_pair_of_conversions
// CHECK-COUNT-2: mp.cast %
// CHECK-NOT: mp.round
func.func @not_raised_pair_of_conversions(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.cast %x origin(user) : tensor<4xf32> to tensor<4xbf16>
  %1 = mp.cast %0 origin(user) : tensor<4xbf16> to tensor<4xf32>
  return %1 : tensor<4xf32>
}
