// The whole pipeline: framework operators in, framework operators out.
// RUN: mpopt %s --mp-default | FileCheck %s
// RUN: mpopt %s --mp-default=numerics=strict | FileCheck %s --check-prefix=STRICT
// RUN: mpopt %s --mp-default=disable=mp-eliminate-casts,mp-report-casts | FileCheck %s --check-prefix=OFF

// CHECK-LABEL: func.func @linear_view_linear
// CHECK-SAME: rule = "fold-exact-round-trip"
// CHECK-SAME: rule = "keep-cast"
// CHECK: %[[W:.*]] = mp.cast %arg1 origin(autocast) : tensor<8x8xf32> to tensor<8x8xbf16>
// CHECK: %[[N:.*]]:3 = mp.aten "aten.native_layer_norm.default"
// CHECK: %[[C:.*]] = mp.cast %[[N]]#0 origin(autocast) : tensor<2x2x8xf32> to tensor<2x2x8xbf16>
// CHECK: %[[V:.*]] = mp.aten "aten.view.default"(%[[C]])
// CHECK: %[[Y:.*]] = mp.aten "aten.mm.default"(%[[V]], %[[W]])
// CHECK: mp.aten "aten.mm.default"(%[[Y]], %[[W]])
// CHECK-NOT: mp.{{round|matmul|layer_norm}}
// OFF-LABEL: func.func @linear_view_linear
// OFF-NOT: mp.rewrites
// OFF-COUNT-5: mp.cast %
func.func @linear_view_linear(%x: tensor<2x2x8xf32>, %w: tensor<8x8xf32> {mp.role = "parameter"}) -> tensor<4x8xbf16> {
  %0 = mp.aten "aten._to_copy.default"(%w) {args = {dtype = bf16}, mp.origin = #mp.origin<autocast>} : (tensor<8x8xf32>) -> tensor<8x8xbf16>
  %1:3 = mp.aten "aten.native_layer_norm.default"(%x) {args = {normalized_shape = [8]}} : (tensor<2x2x8xf32>) -> (tensor<2x2x8xf32>, tensor<2x2x1xf32>, tensor<2x2x1xf32>)
  %2 = mp.aten "aten.view.default"(%1#0) {args = {size = [4, 8]}} : (tensor<2x2x8xf32>) -> tensor<4x8xf32>
  %3 = mp.aten "aten._to_copy.default"(%2) {args = {dtype = bf16}, mp.origin = #mp.origin<autocast>} : (tensor<4x8xf32>) -> tensor<4x8xbf16>
  %4 = mp.aten "aten.mm.default"(%3, %0) : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
  %5 = mp.aten "aten._to_copy.default"(%4) {args = {dtype = f32}} : (tensor<4x8xbf16>) -> tensor<4x8xf32>
  %6 = mp.aten "aten._to_copy.default"(%5) {args = {dtype = bf16}, mp.origin = #mp.origin<autocast>} : (tensor<4x8xf32>) -> tensor<4x8xbf16>
  %7 = mp.aten "aten._to_copy.default"(%w) {args = {dtype = bf16}, mp.origin = #mp.origin<autocast>} : (tensor<8x8xf32>) -> tensor<8x8xbf16>
  %8 = mp.aten "aten.mm.default"(%6, %7) : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
  return %8 : tensor<4x8xbf16>
}

// The contract decides about autocast's rounding, and nothing about the user's.
// CHECK-LABEL: func.func @roundings
// CHECK-COUNT-2: mp.cast %
// CHECK-NOT: mp.cast %
// STRICT-LABEL: func.func @roundings
// STRICT-COUNT-4: mp.cast %
func.func @roundings(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = mp.cast %x origin(autocast) : tensor<4xf32> to tensor<4xbf16>
  %1 = mp.cast %0 origin(promotion) : tensor<4xbf16> to tensor<4xf32>
  %2 = mp.aten "aten.exp.default"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = mp.cast %x origin(user) : tensor<4xf32> to tensor<4xf16>
  %4 = mp.cast %3 origin(user) : tensor<4xf16> to tensor<4xf32>
  %5 = mp.aten "aten.exp.default"(%4) : (tensor<4xf32>) -> tensor<4xf32>
  return %2, %5 : tensor<4xf32>, tensor<4xf32>
}

// Nothing is converted: nothing changes.
// CHECK-LABEL: func.func @no_casts(
// CHECK-NOT: mp.rewrites
// CHECK-NEXT: mp.aten "aten.mm.default"(%arg0, %arg0) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
// CHECK-NEXT: return
func.func @no_casts(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = mp.aten "aten.mm.default"(%x, %x) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// CHECK-LABEL: func.func private @declaration
func.func private @declaration(tensor<4xf32>) -> tensor<4xbf16>
