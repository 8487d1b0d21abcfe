// RUN: mpopt %s --mp-eliminate-casts=numerics=strict | FileCheck %s

// The conversion joins the kernel that makes the value.
// CHECK-LABEL: func.func @over_view_to_producer
// CHECK: %[[E:.*]] = mp.aten "aten.exp.default"
// CHECK: %[[C:.*]] = mp.cast %[[E]] origin(autocast) : tensor<4x8xf32> to tensor<4x8xbf16>
// CHECK: mp.aten "aten.view.default"(%[[C]]) {args = {size = [32]}} : (tensor<4x8xbf16>) -> tensor<32xbf16>
func.func @over_view_to_producer(%x: tensor<4x8xf32>) -> tensor<32xbf16> {
  %0 = mp.aten "aten.exp.default"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = mp.aten "aten.view.default"(%0) {args = {size = [32]}} : (tensor<4x8xf32>) -> tensor<32xf32>
  %2 = mp.cast %1 origin(autocast) : tensor<32xf32> to tensor<32xbf16>
  return %2 : tensor<32xbf16>
}

// CHECK-LABEL: func.func @meets_equal_cast
// CHECK-COUNT-1: mp.cast %
// CHECK-NOT: mp.cast %
func.func @meets_equal_cast(%x: tensor<4x8xf32>) -> tensor<4x4xbf16> {
  %0 = mp.cast %x origin(autocast) : tensor<4x8xf32> to tensor<4x8xbf16>
  %1 = mp.aten "aten.t.default"(%x) : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %2 = mp.cast %1 origin(autocast) : tensor<8x4xf32> to tensor<8x4xbf16>
  %3 = mp.aten "aten.mm.default"(%0, %2) : (tensor<4x8xbf16>, tensor<8x4xbf16>) -> tensor<4x4xbf16>
  return %3 : tensor<4x4xbf16>
}

// Over each data movement a widening is met and both go, sizes known or not.
// CHECK-LABEL: func.func @meets_widening
// CHECK-NOT: mp.cast %
func.func @meets_widening(%x: tensor<?x8xbf16>, %i: tensor<3xi64>) -> tensor<8x3xbf16> {
  %0 = mp.cast %x origin(user) : tensor<?x8xbf16> to tensor<?x8xf32>
  %1 = mp.aten "aten.index_select.default"(%0, %i) {args = {dim = 0, index = "%1"}} : (tensor<?x8xf32>, tensor<3xi64>) -> tensor<3x8xf32>
  %2 = mp.aten "aten.unsqueeze.default"(%1) {args = {dim = 0}} : (tensor<3x8xf32>) -> tensor<1x3x8xf32>
  %3 = mp.aten "aten.view.default"(%2) {args = {size = [3, 8]}} : (tensor<1x3x8xf32>) -> tensor<3x8xf32>
  %4 = mp.aten "aten.t.default"(%3) : (tensor<3x8xf32>) -> tensor<8x3xf32>
  %5 = mp.cast %4 origin(autocast) : tensor<8x3xf32> to tensor<8x3xbf16>
  return %5 : tensor<8x3xbf16>
}

// A view of several readers is free to repeat.
// CHECK-LABEL: func.func @over_view_with_readers
// CHECK-DAG: mp.aten "aten.t.default"(%{{.*}}) : (tensor<4x8xf16>) -> tensor<8x4xf16>
// CHECK-DAG: mp.aten "aten.t.default"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<8x4xf32>
func.func @over_view_with_readers(%x: tensor<4x8xf32>) -> (tensor<8x4xf32>, tensor<8x4xf16>) {
  %0 = mp.aten "aten.sin.default"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = mp.aten "aten.t.default"(%0) : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %2 = mp.aten "aten.exp.default"(%1) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %3 = mp.cast %1 origin(user) : tensor<8x4xf32> to tensor<8x4xf16>
  %4 = mp.aten "aten.exp.default"(%3) : (tensor<8x4xf16>) -> tensor<8x4xf16>
  return %2, %4 : tensor<8x4xf32>, tensor<8x4xf16>
}

// Rounding ignores the sign: -round(x) is round(-x), for zeros and NaN too.
// CHECK-LABEL: func.func @over_neg_and_abs
// CHECK: %[[C:.*]] = mp.cast %{{.*}} : tensor<4xf64> to tensor<4xf32>
// CHECK: %[[N:.*]] = mp.aten "aten.neg.default"(%[[C]])
// CHECK: mp.aten "aten.abs.default"(%[[N]])
func.func @over_neg_and_abs(%x: tensor<4xf64>) -> tensor<4xf32> {
  %0 = mp.aten "aten.exp.default"(%x) : (tensor<4xf64>) -> tensor<4xf64>
  %1 = mp.aten "aten.neg.default"(%0) : (tensor<4xf64>) -> tensor<4xf64>
  %2 = mp.aten "aten.abs.default"(%1) : (tensor<4xf64>) -> tensor<4xf64>
  %3 = mp.cast %2 origin(user) : tensor<4xf64> to tensor<4xf32>
  return %3 : tensor<4xf32>
}

// Of values that are halves already, max picks the same half; NaN stays NaN.
// CHECK-LABEL: func.func @over_max_of_halves
// CHECK-NEXT: mp.aten "aten.maximum.default"(%arg0, %arg1) : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
// CHECK-NEXT: mp.aten "aten.relu.default"
// CHECK-NEXT: return
func.func @over_max_of_halves(%x: tensor<4xbf16>, %y: tensor<4xbf16>) -> tensor<4xbf16> {
  %0 = mp.cast %x origin(user) : tensor<4xbf16> to tensor<4xf32>
  %1 = mp.cast %y origin(user) : tensor<4xbf16> to tensor<4xf32>
  %2 = mp.aten "aten.maximum.default"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = mp.cast %2 origin(user) : tensor<4xf32> to tensor<4xbf16>
  %4 = mp.aten "aten.relu.default"(%3) : (tensor<4xbf16>) -> tensor<4xbf16>
  return %4 : tensor<4xbf16>
}

// -inf is a value of every half type. One operand is narrowed on its own.
// CHECK-LABEL: func.func @over_cat_and_exact_filler
// CHECK: %[[N:.*]] = mp.cast %arg1 origin(user) : tensor<4xf32> to tensor<4xbf16>
// CHECK: mp.aten "aten.cat.default"(%arg0, %[[N]])
// CHECK: mp.aten "aten.masked_fill.Scalar"({{.*}}) {args = {value = 0xFFF0000000000000 : f64}} : (tensor<8xbf16>, tensor<8xi1>) -> tensor<8xbf16>
func.func @over_cat_and_exact_filler(%x: tensor<4xbf16>, %y: tensor<4xf32>, %m: tensor<8xi1>) -> tensor<8xbf16> {
  %0 = mp.cast %x origin(user) : tensor<4xbf16> to tensor<4xf32>
  %1 = mp.aten "aten.cat.default"(%0, %y) {args = {tensors = ["%0", "%1"]}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %2 = mp.aten "aten.masked_fill.Scalar"(%1, %m) {args = {value = 0xFFF0000000000000 : f64}} : (tensor<8xf32>, tensor<8xi1>) -> tensor<8xf32>
  %3 = mp.cast %2 origin(user) : tensor<8xf32> to tensor<8xbf16>
  return %3 : tensor<8xbf16>
}

// The same operand twice.
// CHECK-LABEL: func.func @over_cat_of_one_value
// CHECK-NEXT: mp.aten "aten.cat.default"(%arg0, %arg0)
func.func @over_cat_of_one_value(%x: tensor<4xbf16>) -> tensor<8xbf16> {
  %0 = mp.cast %x origin(user) : tensor<4xbf16> to tensor<4xf32>
  %1 = mp.aten "aten.cat.default"(%0, %0) {args = {tensors = ["%0", "%1"]}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %2 = mp.cast %1 origin(user) : tensor<8xf32> to tensor<8xbf16>
  return %2 : tensor<8xbf16>
}

// A part of what is laid side by side is stored narrow already: the others are
// converted on the way.
// CHECK-LABEL: func.func @over_cat_to_equal
// CHECK: %[[N:.*]] = mp.cast %arg0
// CHECK: %[[M:.*]] = mp.cast %arg1
// CHECK: mp.aten "aten.cat.default"(%[[N]], %[[M]])
// CHECK-NOT: mp.cast
func.func @over_cat_to_equal(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xbf16>, tensor<8xbf16>) {
  %0 = mp.cast %x origin(autocast) : tensor<4xf32> to tensor<4xbf16>
  %1 = mp.aten "aten.cat.default"(%x, %y) {args = {tensors = ["%0", "%1"]}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  %2 = mp.cast %1 origin(autocast) : tensor<8xf32> to tensor<8xbf16>
  return %0, %2 : tensor<4xbf16>, tensor<8xbf16>
}
