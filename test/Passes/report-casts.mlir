// RUN: mpopt %s --mp-report-casts | FileCheck %s

// One record for each activation's conversion, none for a weight's, a
// gradient's or an integer's; the graph stays.
// CHECK-LABEL: func.func @report
// CHECK-SAME: mp.rewrites = [
// CHECK-SAME: contract = "strict", module = "", node = -1 : i64, op = "mp.cast", rule = "keep-cast", status = "missed", why = "autocast asked for f32 to bf16; read by aten.mm.default; contracts strict and precise keep the half value that a reader sees; fits into the kernel of aten.exp.default"
// CHECK-NOT: keep-cast
// CHECK-SAME: ]
// CHECK-COUNT-4: mp.cast %
func.func @report(%x: tensor<8x8xf32>, %w: tensor<8x8xf32> {mp.role = "parameter"}, %i: tensor<4xi64>) -> (tensor<8x8xbf16>, tensor<4xf32>, tensor<8x8xf32>) {
  %0 = mp.aten "aten.exp.default"(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = mp.cast %0 origin(autocast) : tensor<8x8xf32> to tensor<8x8xbf16>
  %2 = mp.aten "aten.t.default"(%w) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = mp.cast %2 origin(autocast) : tensor<8x8xf32> to tensor<8x8xbf16>
  %4 = mp.aten "aten.mm.default"(%1, %3) : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  %5 = mp.cast %i origin(user) : tensor<4xi64> to tensor<4xf32>
  %6 = mp.aten "aten.mm.default"(%4, %4) {mp.backward} : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  %7 = mp.cast %6 origin(autocast) {mp.backward} : tensor<8x8xbf16> to tensor<8x8xf32>
  return %4, %5, %7 : tensor<8x8xbf16>, tensor<4xf32>, tensor<8x8xf32>
}

// CHECK-LABEL: func.func @user_rounding
// CHECK-SAME: why = "user asked for f32 to f16; it is a graph output, whose type stays; a rounding that the user wrote is never dropped; stands alone: it converts an input of the graph, and no generated kernel is next to it"
func.func @user_rounding(%x: tensor<4xf32>) -> tensor<4xf16> {
  %0 = mp.cast %x origin(user) : tensor<4xf32> to tensor<4xf16>
  return %0 : tensor<4xf16>
}

// Seen through views; the reader that comes first is named.
// CHECK-LABEL: func.func @first_reader
// CHECK-SAME: read by aten.sin.default; exact, changes no value
func.func @first_reader(%x: tensor<4x4xbf16>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = mp.cast %x origin(promotion) : tensor<4x4xbf16> to tensor<4x4xf32>
  %1 = mp.aten "aten.t.default"(%0) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = mp.aten "aten.sin.default"(%1) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = mp.aten "aten.cos.default"(%1) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %2, %3 : tensor<4x4xf32>, tensor<4x4xf32>
}

// Nothing converted, nothing recorded.
// CHECK-LABEL: func.func @nothing
// CHECK-NOT: mp.rewrites
func.func @nothing(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// CHECK-LABEL: func.func @reader_has_a_kernel
// CHECK-SAME: exact, changes no value; fits into the kernel of aten.cat.default
func.func @reader_has_a_kernel(%x: tensor<2x4xbf16>, %y: tensor<4x4xbf16>, %z: tensor<1x4xf32>) -> tensor<3x4xf32> {
  %0 = mp.aten "aten.mm.default"(%x, %y) : (tensor<2x4xbf16>, tensor<4x4xbf16>) -> tensor<2x4xbf16>
  %1 = mp.cast %0 origin(promotion) : tensor<2x4xbf16> to tensor<2x4xf32>
  %2 = mp.aten "aten.cat.default"(%z, %1) {args = {tensors = ["%0", "%1"]}} : (tensor<1x4xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  return %2 : tensor<3x4xf32>
}

// CHECK-LABEL: func.func @alone_between_libraries
// CHECK-SAME: stands alone: it converts the result of aten.mm.default, and no generated kernel is next to it
func.func @alone_between_libraries(%x: tensor<4x4xf32>, %w: tensor<4x4xbf16>) -> tensor<4x4xbf16> {
  %0 = mp.aten "aten.mm.default"(%x, %x) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = mp.cast %0 origin(autocast) : tensor<4x4xf32> to tensor<4x4xbf16>
  %2 = mp.aten "aten.mm.default"(%1, %w) : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<4x4xbf16>
  return %2 : tensor<4x4xbf16>
}

// CHECK-LABEL: func.func @alone_after_a_slice
// CHECK-SAME: stands alone: aten.slice.Tensor leaves out elements that the kernel of aten.exp.default would convert for nobody
func.func @alone_after_a_slice(%x: tensor<5x4xf32>, %w: tensor<4x4xbf16>) -> (tensor<5x4xf32>, tensor<4x4xbf16>) {
  %0 = mp.aten "aten.exp.default"(%x) : (tensor<5x4xf32>) -> tensor<5x4xf32>
  %1 = mp.aten "aten.slice.Tensor"(%0) {args = {dim = 0, start = 1, end = 5}} : (tensor<5x4xf32>) -> tensor<4x4xf32>
  %2 = mp.cast %1 origin(autocast) : tensor<4x4xf32> to tensor<4x4xbf16>
  %3 = mp.aten "aten.mm.default"(%2, %w) : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<4x4xbf16>
  return %0, %3 : tensor<5x4xf32>, tensor<4x4xbf16>
}
