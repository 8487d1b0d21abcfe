// The form that regions get. sed puts the lines of the text on lines.
// RUN: mpopt %s --mp-lower-regions-to-linalg | sed 's/\\0A/\n/g; s/\\22/"/g' | FileCheck %s
// RUN: mpopt %s --mp-lower-regions-to-linalg --mp-verify-backend-contract -o /dev/null
// RUN: mpopt %s --mp-lower-regions-to-linalg --remark-policy=all --remarks-filter='.*' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: [Missed] lower-region {{.*}}odd has no kernel: {{.*}}aten.lgamma has no expansion

// The rounding between the sums of products and the bias stays; a weight that
// is stored turned is read turned; rows of two dimensions are rows.
// CHECK-LABEL: func.func @rounds_before_bias
// CHECK: func.func @kernel(%[[X:.*]]: tensor<8x32xbf16>, %[[W:.*]]: tensor<16x32xbf16>, %[[B:.*]]: tensor<16xf32>) -> tensor<2x4x16xf32> {
// CHECK: %[[ACC:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%[[X]], %[[W]]
// CHECK: arith.extf
// CHECK-NEXT: arith.extf
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: arith.addf
// CHECK-NEXT: linalg.yield
// CHECK: %[[Y:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%[[ACC]], %[[B]]
// CHECK-NEXT: ^bb0(%[[A:[^:]*]]: f32, %[[BIAS:[^:]*]]: f32
// CHECK-NEXT: %[[R:.*]] = arith.truncf %[[A]] : f32 to bf16
// CHECK-NEXT: %[[V:.*]] = arith.extf %[[R]] : bf16 to f32
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[V]], %[[BIAS]] : f32
// CHECK-NEXT: linalg.yield %[[S]]
// CHECK: tensor.expand_shape %[[Y]] {{\[\[}}0, 1], [2]]
func.func @rounds_before_bias(%x: tensor<8x32xbf16>, %w: tensor<16x32xbf16>, %b: tensor<16xf32>) -> tensor<2x4x16xf32> {
  %0 = mp.region matmul "linear" (%x, %w, %b) : (tensor<8x32xbf16>, tensor<16x32xbf16>, tensor<16xf32>) -> tensor<2x4x16xf32> {
  ^bb0(%xx: tensor<8x32xbf16>, %ww: tensor<16x32xbf16>, %bb: tensor<16xf32>):
    %1 = mp.aten "aten.t.default"(%ww) : (tensor<16x32xbf16>) -> tensor<32x16xbf16>
    %2 = mp.matmul %xx, %1 : (tensor<8x32xbf16>, tensor<32x16xbf16>) -> tensor<8x16xbf16>
    %3 = mp.aten "aten.view.default"(%2) {args = {size = [2, 4, 16]}} : (tensor<8x16xbf16>) -> tensor<2x4x16xbf16>
    %4 = mp.aten "aten.add.Tensor"(%3, %bb) : (tensor<2x4x16xbf16>, tensor<16xf32>) -> tensor<2x4x16xf32>
    mp.yield %4 : tensor<2x4x16xf32>
  }
  return %0 : tensor<2x4x16xf32>
}

// An f32 product without more is the accumulator itself. The gradient of the
// bias is the sum of a factor.
// CHECK-LABEL: func.func @accumulator
// CHECK: %[[ACC:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d2, d0)>, affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK: %[[SUM:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]} ins(%arg0
// CHECK: %[[HALF:.*]] = linalg.generic {{.*}} ins(%[[SUM]]
// CHECK: arith.truncf
// CHECK: return %[[ACC]], %[[HALF]]
func.func @accumulator(%g: tensor<8x16xbf16>, %x: tensor<8x32xbf16>) -> (tensor<16x32xf32>, tensor<16xbf16>) {
  %0:2 = mp.region matmul "wgrad" (%g, %x) : (tensor<8x16xbf16>, tensor<8x32xbf16>) -> (tensor<16x32xf32>, tensor<16xbf16>) {
  ^bb0(%gg: tensor<8x16xbf16>, %xx: tensor<8x32xbf16>):
    %1 = mp.aten "aten.t.default"(%gg) : (tensor<8x16xbf16>) -> tensor<16x8xbf16>
    %2 = mp.matmul %1, %xx : (tensor<16x8xbf16>, tensor<8x32xbf16>) -> tensor<16x32xf32>
    %3 = mp.aten "aten.sum.dim_IntList"(%gg) {args = {dim = [0]}} : (tensor<8x16xbf16>) -> tensor<16xbf16>
    mp.yield %2, %3 : tensor<16x32xf32>, tensor<16xbf16>
  }
  return %0#0, %0#1 : tensor<16x32xf32>, tensor<16xbf16>
}

// A softmax: maximum, exponentials, their sum, the quotient. What two stages
// read is stored; the widening is done again.
// CHECK-LABEL: func.func @softmax
// CHECK: %[[MAX:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<8x16xbf16>)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.extf
// CHECK-NEXT: arith.maximumf
// CHECK: %[[E:.*]] = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"]} ins(%arg0, %[[MAX]]
// CHECK: arith.subf
// CHECK-NEXT: math.exp
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%[[E]]
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} ins(%[[E]], %[[SUM]]
// CHECK: arith.divf
// CHECK-NEXT: arith.truncf
// CHECK: return %[[Y]]
func.func @softmax(%x: tensor<8x16xbf16>) -> tensor<8x16xbf16> {
  %0 = mp.region rows "softmax" (%x) : (tensor<8x16xbf16>) -> tensor<8x16xbf16> {
  ^bb0(%a: tensor<8x16xbf16>):
    %1 = mp.softmax(%a) {args = {dim = -1, half_to_float = false}} : (tensor<8x16xbf16>) -> tensor<8x16xbf16>
    mp.yield %1 : tensor<8x16xbf16>
  }
  return %0 : tensor<8x16xbf16>
}

// One element of a row, by its number.
// CHECK-LABEL: func.func @gather
// CHECK: linalg.index 1
// CHECK: arith.cmpi eq
// CHECK: arith.select
// CHECK: arith.addf
func.func @gather(%x: tensor<8x16xf32>, %i: tensor<8x1xi64>) -> tensor<8x1xf32> {
  %0 = mp.region rows "gather" (%x, %i) : (tensor<8x16xf32>, tensor<8x1xi64>) -> tensor<8x1xf32> {
  ^bb0(%a: tensor<8x16xf32>, %n: tensor<8x1xi64>):
    %1 = mp.log_softmax(%a) {args = {dim = -1, half_to_float = false}} : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %2 = mp.aten "aten.gather.default"(%1, %n) {args = {dim = 1}} : (tensor<8x16xf32>, tensor<8x1xi64>) -> tensor<8x1xf32>
    mp.yield %2 : tensor<8x1xf32>
  }
  return %0 : tensor<8x1xf32>
}

// Rows that are known only at run time, spread over two dimensions.
// CHECK-LABEL: func.func @dynamic
// CHECK: %[[M:.*]] = tensor.collapse_shape %arg0 {{\[\[}}0, 1], [2]] : tensor<?x4x16xf32> into tensor<?x16xf32>
// CHECK: %[[ROWS:.*]] = tensor.dim %[[M]]
// CHECK: tensor.empty(%[[ROWS]])
// CHECK: tensor.expand_shape {{.*}} : tensor<?x16xf32> into tensor<?x4x16xf32>
func.func @dynamic(%x: tensor<?x4x16xf32>) -> tensor<?x4x16xf32> {
  %0 = mp.region rows "softmax" (%x) : (tensor<?x4x16xf32>) -> tensor<?x4x16xf32> {
  ^bb0(%a: tensor<?x4x16xf32>):
    %1 = mp.softmax(%a) {args = {dim = -1, half_to_float = false}} : (tensor<?x4x16xf32>) -> tensor<?x4x16xf32>
    mp.yield %1 : tensor<?x4x16xf32>
  }
  return %0 : tensor<?x4x16xf32>
}

// CHECK-LABEL: func.func @odd
// CHECK-NOT: kernel
func.func @odd(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = mp.region rows "odd" (%x) : (tensor<8x16xf32>) -> tensor<8x16xf32> {
  ^bb0(%a: tensor<8x16xf32>):
    %1 = mp.softmax(%a) {args = {dim = -1, half_to_float = false}} : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %2 = mp.aten "aten.lgamma.default"(%1) : (tensor<8x16xf32>) -> tensor<8x16xf32>
    mp.yield %2 : tensor<8x16xf32>
  }
  return %0 : tensor<8x16xf32>
}
