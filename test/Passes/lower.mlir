// mp-lower is the inverse of mp-raise: the whole output is the input.
// RUN: split-file %s %t
// RUN: mpopt %t/same.mlir --mlir-print-debuginfo > %t.before
// RUN: mpopt %t/same.mlir --mp-raise --mp-lower --mlir-print-debuginfo > %t.after
// RUN: diff %t.before %t.after
// RUN: mpopt %t/same.mlir --mp-raise | FileCheck %t/same.mlir --check-prefix=RAISED
// RUN: mpopt %t/lower.mlir --mp-lower | FileCheck %t/lower.mlir

//--- same.mlir

// RAISED-COUNT-10: mp.{{layer_norm|log_softmax|softmax|gelu|matmul|nll_loss}}
func.func @round_trip(%x: tensor<4x8xf32>, %w: tensor<8xf32>, %a: tensor<8x8xbf16>, %t: tensor<4xi64>, %c: tensor<3x8x8xf16>) -> tensor<8x8xbf16> {
  %0:3 = mp.aten "aten.native_layer_norm.default"(%x, %w, %w) {args = {eps = 1.0e-5, normalized_shape = [8]}} : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x1xf32>, tensor<4x1xf32>)
  %1:3 = mp.aten "aten.native_layer_norm_backward.default"(%x, %x, %0#1, %0#2, %w, %w) {args = {output_mask = [true, true, true], normalized_shape = [8]}, mp.backward} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x1xf32>, tensor<4x1xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  %2 = mp.aten "aten._softmax.default"(%0#0) {args = {dim = -1, half_to_float = false}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = mp.aten "aten._log_softmax.default"(%2) {args = {dim = -1, half_to_float = false}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %4:2 = mp.aten "aten.nll_loss_forward.default"(%3, %t) {args = {reduction = 1}} : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<f32>)
  %5 = mp.aten "aten.gelu.default"(%a) {mp.recompute = 0} : (tensor<8x8xbf16>) -> tensor<8x8xbf16>
  %6 = mp.aten "aten.mm.default"(%a, %5) : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  %7 = mp.aten "aten.addmm.default"(%6, %a, %5) : (tensor<8x8xbf16>, tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  %8 = mp.aten "aten.bmm.default"(%c, %c) : (tensor<3x8x8xf16>, tensor<3x8x8xf16>) -> tensor<3x8x8xf16>
  %9 = mp.aten "aten.baddbmm.default"(%8, %c, %c) : (tensor<3x8x8xf16>, tensor<3x8x8xf16>, tensor<3x8x8xf16>) -> tensor<3x8x8xf16>
  %10 = mp.cast %x origin(user) : tensor<4x8xf32> to tensor<4x8xbf16>
  %11 = mp.cast %10 origin(autocast) : tensor<4x8xbf16> to tensor<4x8xf32>
  return %7 : tensor<8x8xbf16>
}

//--- lower.mlir

// The overload `dtype` names a result type wider than the operands'.
// CHECK-LABEL: func.func @wide_result
// CHECK: mp.aten "aten.mm.dtype"(%arg0, %arg0) {args = {out_dtype = f32}} : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xf32>
// CHECK: mp.aten "aten.bmm.dtype"(%arg1, %arg1) {args = {out_dtype = f32}}
// CHECK: mp.aten "aten.addmm.dtype"(%arg2, %arg0, %arg0) {args = {out_dtype = f32}}
func.func @wide_result(%a: tensor<8x8xbf16>, %b: tensor<3x8x8xf16>, %c: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<3x8x8xf32>, tensor<8x8xf32>) {
  %0 = mp.matmul %a, %a : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xf32>
  %1 = mp.matmul %b, %b : (tensor<3x8x8xf16>, tensor<3x8x8xf16>) -> tensor<3x8x8xf32>
  %2 = mp.matmul %a, %a bias(%c : tensor<8x8xf32>) : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xf32>
  return %0, %1, %2 : tensor<8x8xf32>, tensor<3x8x8xf32>, tensor<8x8xf32>
}

// CHECK-LABEL: func.func @rounding
// CHECK: %[[N:.*]] = mp.cast %arg0 origin(user) : tensor<4xf32> to tensor<4xf16>
// CHECK: mp.cast %[[N]] origin(user) : tensor<4xf16> to tensor<4xf32>
func.func @rounding(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.round %x to f16 origin(user) : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// The operator promotes by itself: such a cast is no node of its own.
// CHECK-LABEL: func.func @implicit_again
// CHECK-NEXT: mp.aten "aten.add.Tensor"(%arg0, %arg1) : (tensor<4xbf16>, tensor<4xf32>)
func.func @implicit_again(%x: tensor<4xbf16>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.cast %x origin(promotion) {mp.implicit} : tensor<4xbf16> to tensor<4xf32>
  %1 = mp.aten "aten.add.Tensor"(%0, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// Without the cast the operator would add in bf16.
// CHECK-LABEL: func.func @not_implicit_nothing_promotes
// CHECK-COUNT-2: mp.cast %
func.func @not_implicit_nothing_promotes(%x: tensor<4xbf16>, %y: tensor<4xbf16>) -> tensor<4xf32> {
  %0 = mp.cast %x origin(promotion) {mp.implicit} : tensor<4xbf16> to tensor<4xf32>
  %1 = mp.cast %y origin(promotion) {mp.implicit} : tensor<4xbf16> to tensor<4xf32>
  %2 = mp.aten "aten.add.Tensor"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
