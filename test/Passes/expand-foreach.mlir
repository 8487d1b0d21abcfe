// Each shape of a list operator, each guard, and the proof of the check.
// RUN: mpopt %s --mp-normalize --mp-expand-foreach -o %t.mlir && FileCheck %s < %t.mlir
// RUN: mpopt check %s %t.mlir
// RUN: mpopt %s --mp-normalize --mp-expand-foreach --mp-expand-foreach | diff %t.mlir -

// CHECK-LABEL: func.func @unary
// CHECK: mp.aten "aten.sqrt.default"(%arg0)
// CHECK: mp.aten "aten.sqrt.default"(%arg1)
func.func @unary(%a: tensor<8xf32>, %b: tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>) {
  %0:2 = mp.aten "aten._foreach_sqrt.default"(%a, %b) {args = {self = ["%0", "%1"]}} : (tensor<8xf32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>)
  return %0#0, %0#1 : tensor<8xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @one_number_each
// CHECK: mp.aten "aten.div.Scalar"(%arg0) {args = {other = 2.000000e+00 : f64}}
// CHECK: mp.aten "aten.div.Scalar"(%arg1) {args = {other = 3.000000e+00 : f64}}
func.func @one_number_each(%a: tensor<8xf32>, %b: tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>) {
  %0:2 = mp.aten "aten._foreach_div.ScalarList"(%a, %b) {args = {self = ["%0", "%1"], scalars = [2.0, 3.0]}}
      : (tensor<8xf32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>)
  return %0#0, %0#1 : tensor<8xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @one_tensor_for_all
// CHECK: mp.aten "aten.mul.Tensor"(%arg0, %arg2)
// CHECK: mp.aten "aten.mul.Tensor"(%arg1, %arg2)
func.func @one_tensor_for_all(%a: tensor<8xf32>, %b: tensor<4xf32>, %c: tensor<f32>) -> (tensor<8xf32>, tensor<4xf32>) {
  %0:2 = mp.aten "aten._foreach_mul.Tensor"(%a, %b, %c) {args = {self = ["%0", "%1"], other = "%2"}}
      : (tensor<8xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<4xf32>)
  return %0#0, %0#1 : tensor<8xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @three_lists
// CHECK: mp.aten "aten.addcdiv.default"(%arg0, %arg1, %arg2) {args = {value = -1.000000e-03 : f64}}
func.func @three_lists(%a: tensor<8xf32>, %b: tensor<8xf32>, %c: tensor<8xf32>) -> tensor<8xf32> {
  %0 = mp.aten "aten._foreach_addcdiv.ScalarList"(%a, %b, %c) {args = {self = ["%0"], tensor1 = ["%1"], tensor2 = ["%2"], scalars = [-0.001]}}
      : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// The inverse scale is marked where it comes in, also behind a reciprocal.
// CHECK-LABEL: func.func @unscale_half
// CHECK-SAME: %arg2: tensor<f32> {mp.loss_scale = 1 : i64}
// CHECK: %[[I:.*]] = mp.aten "aten.reciprocal.default"(%arg2)
// CHECK: %[[W:.*]] = mp.cast %arg0 origin(decomposition) : tensor<8xf16> to tensor<8xf32>
// CHECK: %[[P:.*]] = mp.aten "aten.mul.Tensor"(%[[W]], %[[I]])
// CHECK: %[[U:.*]] = mp.cast %[[P]] origin(decomposition) : tensor<8xf32> to tensor<8xf16>
// CHECK: mp.aten "aten.isfinite.default"(%arg0)
// CHECK: %[[B:.*]] = mp.aten "aten.any.default"
// CHECK: %[[F:.*]] = mp.aten "aten.masked_fill.Scalar"(%arg1, %[[B]]) {args = {value = 1 : i64}}
// CHECK: return %[[U]], %[[F]]
func.func @unscale_half(%g: tensor<8xf16>, %found: tensor<f32>, %scale: tensor<f32>) -> (tensor<8xf16>, tensor<f32>) {
  %inverse = mp.aten "aten.reciprocal.default"(%scale) : (tensor<f32>) -> tensor<f32>
  %0:2 = mp.aten "aten._amp_foreach_non_finite_check_and_unscale.default"(%g, %found, %inverse) {args = {self = ["%0"], found_inf = "%1", inv_scale = "%2"}}
      : (tensor<8xf16>, tensor<f32>, tensor<f32>) -> (tensor<8xf16>, tensor<f32>)
  return %0#0, %0#1 : tensor<8xf16>, tensor<f32>
}

// A flag of rank 1, as PyTorch's documentation has it.
// CHECK-LABEL: func.func @unscale_two
// CHECK: %[[O:.*]] = mp.aten "aten.logical_or.default"
// CHECK: %[[V:.*]] = mp.aten "aten.view.default"(%[[O]]) {args = {size = [1]}} : (tensor<i1>) -> tensor<1xi1>
// CHECK: mp.aten "aten.masked_fill.Scalar"(%arg2, %[[V]])
func.func @unscale_two(%g: tensor<8xf32>, %h: tensor<4xf32>, %found: tensor<1xf32>, %inverse: tensor<f32>) -> (tensor<8xf32>, tensor<4xf32>, tensor<1xf32>) {
  %0:3 = mp.aten "aten._amp_foreach_non_finite_check_and_unscale.default"(%g, %h, %found, %inverse) {args = {self = ["%0", "%1"], found_inf = "%2", inv_scale = "%3"}}
      : (tensor<8xf32>, tensor<4xf32>, tensor<1xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<4xf32>, tensor<1xf32>)
  return %0#0, %0#1, %0#2 : tensor<8xf32>, tensor<4xf32>, tensor<1xf32>
}

// CHECK-LABEL: func.func @lists_of_two_lengths
// CHECK-SAME: why = "its arguments are no lists of one length and constants"
// CHECK: "aten._foreach_add.List"
func.func @lists_of_two_lengths(%a: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0:2 = mp.aten "aten._foreach_add.List"(%a, %b, %a) {args = {self = ["%0", "%1"], other = ["%2"]}}
      : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %0#0, %0#1 : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @in_place
// CHECK-SAME: why = "it writes in place"
// CHECK: effects "aten._foreach_sqrt.default"
func.func @in_place(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = mp.aten effects "aten._foreach_sqrt.default"(%a) {args = {self = ["%0"]}} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: func.func @no_scaler
// CHECK-SAME: why = "it has other operands than gradients, a flag and a scale"
func.func @no_scaler(%g: tensor<8xf32>, %found: tensor<f32>) -> (tensor<8xf32>, tensor<f32>) {
  %0:2 = mp.aten "aten._amp_foreach_non_finite_check_and_unscale.default"(%g, %found) {args = {self = ["%0"], found_inf = "%1"}}
      : (tensor<8xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<f32>)
  return %0#0, %0#1 : tensor<8xf32>, tensor<f32>
}
