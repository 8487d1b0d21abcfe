// opt(opt(g)) = opt(g), the record of rewrites and the locations included; and the
// same input gives the same text every time.
// RUN: mpopt %s --mp-default --mlir-print-debuginfo > %t.once
// RUN: mpopt %t.once --mp-default --mlir-print-debuginfo > %t.twice
// RUN: diff %t.once %t.twice
// RUN: mpopt %s --mp-default --mp-default --mlir-print-debuginfo > %t.both
// RUN: diff %t.once %t.both
// RUN: mpopt %s --mp-default --mlir-print-debuginfo | diff %t.once -
// RUN: mpopt %s --mp-default=numerics=strict --mlir-print-debuginfo > %t.strict
// RUN: mpopt %t.strict --mp-default=numerics=strict --mlir-print-debuginfo | diff %t.strict -
// RUN: FileCheck %s < %t.once

// CHECK: status = "applied"
// CHECK: status = "missed"
func.func @block(%x: tensor<4x8xf32>, %w: tensor<8x8xf32> {mp.role = "parameter"}, %m: tensor<4x8xi1>, %b: tensor<4x8xbf16>) -> (tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xbf16>, tensor<4xi64>) {
  %0 = mp.aten "aten._to_copy.default"(%w) {args = {dtype = bf16}, mp.origin = #mp.origin<autocast>} : (tensor<8x8xf32>) -> tensor<8x8xbf16>
  %1 = mp.aten "aten.add.Tensor"(%x, %b) : (tensor<4x8xf32>, tensor<4x8xbf16>) -> tensor<4x8xf32>
  %2:3 = mp.aten "aten.native_layer_norm.default"(%1) {args = {normalized_shape = [8]}} : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x1xf32>, tensor<4x1xf32>)
  %3 = mp.aten "aten.view.default"(%2#0) {args = {size = [4, 8]}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = mp.cast %3 origin(autocast) : tensor<4x8xf32> to tensor<4x8xbf16>
  %5 = mp.aten "aten.view.default"(%2#0) {args = {size = [4, 8]}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %6 = mp.cast %5 origin(autocast) : tensor<4x8xf32> to tensor<4x8xbf16>
  %7 = mp.aten "aten.mm.default"(%4, %0) : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
  %8 = mp.aten "aten.mm.default"(%6, %0) : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
  %9 = mp.cast %7 origin(autocast) : tensor<4x8xbf16> to tensor<4x8xf32>
  %10 = mp.aten "aten.masked_fill.Scalar"(%9, %m) {args = {value = -3.4028234663852886e+38}} : (tensor<4x8xf32>, tensor<4x8xi1>) -> tensor<4x8xf32>
  %11 = mp.aten "aten._softmax.default"(%10) {args = {dim = -1, half_to_float = false}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %12 = mp.cast %11 origin(autocast) : tensor<4x8xf32> to tensor<4x8xbf16>
  %13 = mp.cast %12 origin(promotion) : tensor<4x8xbf16> to tensor<4x8xf32>
  %14 = mp.aten "aten.argmax.default"(%13) {args = {dim = 1}} : (tensor<4x8xf32>) -> tensor<4xi64>
  %15 = mp.aten "aten.relu.default"(%13) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %16 = mp.aten "aten.t.default"(%8) {mp.backward} : (tensor<4x8xbf16>) -> tensor<8x4xbf16>
  %17 = mp.aten "aten.mm.default"(%16, %4) {mp.backward} : (tensor<8x4xbf16>, tensor<4x8xbf16>) -> tensor<8x8xbf16>
  %18 = mp.cast %17 origin(autocast) {mp.backward} : tensor<8x8xbf16> to tensor<8x8xf32>
  %19 = mp.cast %15 origin(user) : tensor<4x8xf32> to tensor<4x8xbf16>
  return %15, %18, %19, %14 : tensor<4x8xf32>, tensor<8x8xf32>, tensor<4x8xbf16>, tensor<4xi64>
}
