// RUN: mpopt %s --mp-normalize | FileCheck %s

// CHECK-LABEL: func.func @spellings
// CHECK: mp.cast %arg0 origin(user) : tensor<4x?xf32> to tensor<4x?xbf16>
// CHECK: mp.cast %arg0 origin(user) : tensor<4x?xf32> to tensor<4x?xf16>
// CHECK: mp.cast %arg0 origin(user) : tensor<4x?xf32> to tensor<4x?xf64>
// CHECK: mp.cast %arg0 origin(user) : tensor<4x?xf32> to tensor<4x?xbf16>
// CHECK-NOT: mp.aten
func.func @spellings(%x: tensor<4x?xf32>, %y: tensor<2xbf16>) -> (tensor<4x?xbf16>, tensor<4x?xf16>, tensor<4x?xf64>, tensor<4x?xbf16>) {
  %0 = mp.aten "aten.to.dtype"(%x) {args = {dtype = bf16}} : (tensor<4x?xf32>) -> tensor<4x?xbf16>
  %1 = mp.aten "aten._to_copy.default"(%x) {args = {dtype = f16}} : (tensor<4x?xf32>) -> tensor<4x?xf16>
  %2 = mp.aten "prims.convert_element_type.default"(%x) {args = {dtype = f64}} : (tensor<4x?xf32>) -> tensor<4x?xf64>
  %3 = mp.aten "aten.type_as.default"(%x, %y) : (tensor<4x?xf32>, tensor<2xbf16>) -> tensor<4x?xbf16>
  return %0, %1, %2, %3 : tensor<4x?xbf16>, tensor<4x?xf16>, tensor<4x?xf64>, tensor<4x?xbf16>
}

// CHECK-LABEL: func.func @known_origin
// CHECK: mp.cast %arg0 origin(autocast) {mp.backward} : tensor<4xf32> to tensor<4xbf16>
func.func @known_origin(%x: tensor<4xf32>) -> tensor<4xbf16> {
  %0 = mp.aten "aten._to_copy.default"(%x) {args = {dtype = bf16}, mp.origin = #mp.origin<autocast>, mp.backward} : (tensor<4xf32>) -> tensor<4xbf16>
  return %0 : tensor<4xbf16>
}

// CHECK-LABEL: func.func @integers_and_booleans
// CHECK: mp.cast %arg0 origin(user) : tensor<4xi64> to tensor<4xf32>
// CHECK: mp.cast %{{.*}} origin(user) : tensor<4xf32> to tensor<4xi1>
func.func @integers_and_booleans(%x: tensor<4xi64>) -> tensor<4xi1> {
  %0 = mp.aten "aten.to.dtype"(%x) {args = {dtype = f32, copy = false, memory_format = unit}} : (tensor<4xi64>) -> tensor<4xf32>
  %1 = mp.aten "aten.to.dtype"(%0) {args = {dtype = i1}} : (tensor<4xf32>) -> tensor<4xi1>
  return %1 : tensor<4xi1>
}

// The operator widens the bf16 operand by itself: that is a conversion as well.
// CHECK-LABEL: func.func @promotion
// CHECK: %[[W:.*]] = mp.cast %arg0 origin(promotion) {mp.implicit} : tensor<4xbf16> to tensor<4xf32>
// CHECK: mp.aten "aten.add.Tensor"(%[[W]], %arg1)
func.func @promotion(%x: tensor<4xbf16>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.aten "aten.add.Tensor"(%x, %y) : (tensor<4xbf16>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// f16 + bf16 is computed in f32, which no operand brings in.
// CHECK-LABEL: func.func @not_promoted_two_halves
// CHECK-NOT: mp.cast %
func.func @not_promoted_two_halves(%x: tensor<4xbf16>, %y: tensor<4xf16>) -> tensor<4xf32> {
  %0 = mp.aten "aten.add.Tensor"(%x, %y) : (tensor<4xbf16>, tensor<4xf16>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// A tensor without dimensions does not promote one with dimensions.
// CHECK-LABEL: func.func @not_promoted_by_a_scalar
// CHECK-NOT: mp.cast %
func.func @not_promoted_by_a_scalar(%x: tensor<4xbf16>, %s: tensor<f32>) -> tensor<4xbf16> {
  %0 = mp.aten "aten.mul.Tensor"(%x, %s) : (tensor<4xbf16>, tensor<f32>) -> tensor<4xbf16>
  return %0 : tensor<4xbf16>
}

// Another device, another memory format, a copy that somebody asked for.
// CHECK-LABEL: func.func @not_normalized_does_more
// CHECK-COUNT-3: mp.aten
// CHECK-NOT: mp.cast %
func.func @not_normalized_does_more(%x: tensor<4x4x4x4xf32>) -> (tensor<4x4x4x4xbf16>, tensor<4x4x4x4xbf16>, tensor<4x4x4x4xf32>) {
  %0 = mp.aten "aten._to_copy.default"(%x) {args = {dtype = bf16, device = "cuda:0"}} : (tensor<4x4x4x4xf32>) -> tensor<4x4x4x4xbf16>
  %1 = mp.aten "aten._to_copy.default"(%x) {args = {dtype = bf16, memory_format = "channels_last"}} : (tensor<4x4x4x4xf32>) -> tensor<4x4x4x4xbf16>
  %2 = mp.aten "aten.to.dtype"(%x) {args = {dtype = f32, copy = true}} : (tensor<4x4x4x4xf32>) -> tensor<4x4x4x4xf32>
  return %0, %1, %2 : tensor<4x4x4x4xbf16>, tensor<4x4x4x4xbf16>, tensor<4x4x4x4xf32>
}

// CHECK-LABEL: func.func @not_normalized_with_effects
// CHECK: mp.aten effects
func.func @not_normalized_with_effects(%x: tensor<4xf32>) -> tensor<4xbf16> {
  %0 = mp.aten effects "aten.to.dtype"(%x) {args = {dtype = bf16}} : (tensor<4xf32>) -> tensor<4xbf16>
  return %0 : tensor<4xbf16>
}

// CHECK-LABEL: func.func private @declaration
func.func private @declaration(tensor<4xf32>) -> tensor<4xf32>
