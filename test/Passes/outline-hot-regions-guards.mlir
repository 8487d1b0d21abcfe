// Where growth stops, and what is no region: one function per guard.
// RUN: mpopt %s --mp-outline-hot-regions='target=sm_90 all' | FileCheck %s
// RUN: mpopt %s --mp-outline-hot-regions=target=off | FileCheck %s --check-prefix=OFF

// RUN: mpopt %s --mp-outline-hot-regions='target=sm_90 all numerics=strict' | FileCheck %s --check-prefix=STRICT

// OFF-NOT: mp.region

// STRICT-LABEL: func.func @unknown_operator
// STRICT-SAME: would not keep the bits that numerics \22strict\22 asks for
// STRICT-NOT: mp.region

// An operator without a row.
// CHECK-LABEL: func.func @unknown_operator
// CHECK: %[[R:.*]] = mp.region matmul "matmul"
// CHECK: "aten.lgamma.default"(%[[R]])
func.func @unknown_operator(%x: tensor<8x32xbf16>, %w: tensor<32x16xbf16>) -> tensor<8x16xbf16> {
  %0 = mp.matmul %x, %w : (tensor<8x32xbf16>, tensor<32x16xbf16>) -> tensor<8x16xbf16>
  %1 = mp.aten "aten.lgamma.default"(%0) : (tensor<8x16xbf16>) -> tensor<8x16xbf16>
  return %1 : tensor<8x16xbf16>
}

// An operator with a row, in a type that kernels do not have.
// CHECK-LABEL: func.func @unknown_type
// CHECK: %[[R:.*]] = mp.region matmul "matmul"
// CHECK: mp.cast %[[R]]
func.func @unknown_type(%x: tensor<8x32xf32>, %w: tensor<32x16xf32>) -> tensor<8x16xf64> {
  %0 = mp.matmul %x, %w : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  %1 = mp.cast %0 origin(user) : tensor<8x16xf32> to tensor<8x16xf64>
  return %1 : tensor<8x16xf64>
}

// Forward and backward are not one kernel.
// CHECK-LABEL: func.func @phases
// CHECK: %[[R:.*]] = mp.region matmul "matmul"
// CHECK: "aten.relu.default"(%[[R]]) {mp.backward}
func.func @phases(%x: tensor<8x32xbf16>, %w: tensor<32x16xbf16>) -> tensor<8x16xbf16> {
  %0 = mp.matmul %x, %w : (tensor<8x32xbf16>, tensor<32x16xbf16>) -> tensor<8x16xbf16>
  %1 = mp.aten "aten.relu.default"(%0) {mp.backward} : (tensor<8x16xbf16>) -> tensor<8x16xbf16>
  return %1 : tensor<8x16xbf16>
}

// What the user pinned to its traced type.
// CHECK-LABEL: func.func @kept
// CHECK: %[[R:.*]] = mp.region matmul "matmul"
// CHECK: "aten.relu.default"(%[[R]])
func.func @kept(%x: tensor<8x32xbf16>, %w: tensor<32x16xbf16>) -> tensor<8x16xbf16> {
  %0 = mp.matmul %x, %w : (tensor<8x32xbf16>, tensor<32x16xbf16>) -> tensor<8x16xbf16>
  %1 = mp.aten "aten.relu.default"(%0) {mp.pin = [#mp.pin<keep result, "policy", "asked for">]} : (tensor<8x16xbf16>) -> tensor<8x16xbf16>
  return %1 : tensor<8x16xbf16>
}

// No operation changes its place among those with effects.
// CHECK-LABEL: func.func @effects
// CHECK: %[[R:.*]] = mp.region matmul "matmul"
// CHECK: mp.aten effects
// CHECK: "aten.relu.default"(%[[R]])
func.func @effects(%x: tensor<8x32xbf16>, %w: tensor<32x16xbf16>, %b: tensor<4xf32>) -> tensor<8x16xbf16> {
  %0 = mp.matmul %x, %w : (tensor<8x32xbf16>, tensor<32x16xbf16>) -> tensor<8x16xbf16>
  %1 = mp.aten effects "aten.copy_.default"(%b, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = mp.aten "aten.relu.default"(%0) : (tensor<8x16xbf16>) -> tensor<8x16xbf16>
  return %2 : tensor<8x16xbf16>
}

// The residual waits for what reads the product: it is of another kernel.
// CHECK-LABEL: func.func @not_at_once
// CHECK: %[[R:.*]] = mp.region matmul "matmul"
// CHECK: %[[C:.*]] = mp.aten "aten.cumsum.default"(%[[R]])
// CHECK: "aten.add.Tensor"(%[[R]], %[[C]])
func.func @not_at_once(%x: tensor<8x32xbf16>, %w: tensor<32x16xbf16>) -> tensor<8x16xbf16> {
  %0 = mp.matmul %x, %w : (tensor<8x32xbf16>, tensor<32x16xbf16>) -> tensor<8x16xbf16>
  %1 = mp.aten "aten.cumsum.default"(%0) {args = {dim = 0}} : (tensor<8x16xbf16>) -> tensor<8x16xbf16>
  %2 = mp.aten "aten.add.Tensor"(%0, %1) : (tensor<8x16xbf16>, tensor<8x16xbf16>) -> tensor<8x16xbf16>
  return %2 : tensor<8x16xbf16>
}

// One number for some of the rows: neither a row's nor a column's.
// CHECK-LABEL: func.func @mixed_spread
// CHECK: %[[R:.*]] = mp.region matmul "matmul" (%arg0, %arg1)
// CHECK: "aten.add.Tensor"(%{{.*}}, %arg2)
func.func @mixed_spread(%x: tensor<8x32xbf16>, %w: tensor<32x16xbf16>, %p: tensor<1x4x16xbf16>) -> tensor<2x4x16xbf16> {
  %0 = mp.matmul %x, %w : (tensor<8x32xbf16>, tensor<32x16xbf16>) -> tensor<8x16xbf16>
  %1 = mp.aten "aten.view.default"(%0) {args = {size = [2, 4, 16]}} : (tensor<8x16xbf16>) -> tensor<2x4x16xbf16>
  %2 = mp.aten "aten.add.Tensor"(%1, %p) : (tensor<2x4x16xbf16>, tensor<1x4x16xbf16>) -> tensor<2x4x16xbf16>
  return %2 : tensor<2x4x16xbf16>
}

// A reader of a sum over rows would have to wait for all rows.
// CHECK-LABEL: func.func @reads_sum
// CHECK: %[[R:.*]]:2 = mp.region matmul "matmul_sum"
// CHECK: "aten.mul.Tensor"(%[[R]]#0, %[[R]]#1)
func.func @reads_sum(%x: tensor<8x32xf32>, %w: tensor<32x16xf32>) -> tensor<8x16xf32> {
  %0 = mp.matmul %x, %w : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  %1 = mp.aten "aten.sum.dim_IntList"(%0) {args = {dim = [0]}} : (tensor<8x16xf32>) -> tensor<16xf32>
  %2 = mp.aten "aten.mul.Tensor"(%0, %1) : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}

// A transposed result has no place in a kernel's memory.
// CHECK-LABEL: func.func @transposed_result
// CHECK: %[[R:.*]] = mp.region matmul "matmul"
// CHECK: %[[T:.*]] = mp.aten "aten.t.default"(%[[R]])
// CHECK: "aten.relu.default"(%[[T]])
func.func @transposed_result(%x: tensor<8x32xbf16>, %w: tensor<32x16xbf16>) -> tensor<16x8xbf16> {
  %0 = mp.matmul %x, %w : (tensor<8x32xbf16>, tensor<32x16xbf16>) -> tensor<8x16xbf16>
  %1 = mp.aten "aten.t.default"(%0) : (tensor<8x16xbf16>) -> tensor<16x8xbf16>
  %2 = mp.aten "aten.relu.default"(%1) : (tensor<16x8xbf16>) -> tensor<16x8xbf16>
  return %2 : tensor<16x8xbf16>
}

// A widening at the border would double what crosses it.
// CHECK-LABEL: func.func @wide_border
// CHECK: %[[R:.*]] = mp.region matmul "matmul" {{.*}} -> tensor<8x16xbf16>
// CHECK: %[[W:.*]] = mp.cast %[[R]]
// CHECK: "aten.cumsum.default"(%[[W]])
func.func @wide_border(%x: tensor<8x32xbf16>, %w: tensor<32x16xbf16>) -> tensor<16xf32> {
  %0 = mp.matmul %x, %w : (tensor<8x32xbf16>, tensor<32x16xbf16>) -> tensor<8x16xbf16>
  %1 = mp.cast %0 origin(autocast) : tensor<8x16xbf16> to tensor<8x16xf32>
  %2 = mp.aten "aten.cumsum.default"(%1) {args = {dim = 0}} : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %3 = mp.aten "aten.prod.dim_int"(%2) {args = {dim = 0}} : (tensor<8x16xf32>) -> tensor<16xf32>
  return %3 : tensor<16xf32>
}

// Of one row, rows and columns could not be told apart.
// CHECK-LABEL: func.func @one_row
// CHECK-NOT: mp.region
func.func @one_row(%x: tensor<1x32xbf16>, %w: tensor<32x16xbf16>) -> tensor<1x16xbf16> {
  %0 = mp.matmul %x, %w : (tensor<1x32xbf16>, tensor<32x16xbf16>) -> tensor<1x16xbf16>
  return %0 : tensor<1x16xbf16>
}

// A sum over the middle is of no row.
// CHECK-LABEL: func.func @middle
// CHECK-NOT: mp.region
func.func @middle(%x: tensor<4x8x16xf32>) -> tensor<4x16xf32> {
  %0 = mp.aten "aten.sum.dim_IntList"(%x) {args = {dim = [1]}} : (tensor<4x8x16xf32>) -> tensor<4x16xf32>
  return %0 : tensor<4x16xf32>
}

// CHECK-LABEL: func.func @inner_dynamic
// CHECK-SAME: an extent behind the first is dynamic
// CHECK-NOT: mp.region
func.func @inner_dynamic(%x: tensor<8x?xbf16>, %w: tensor<?x16xbf16>) -> tensor<8x16xbf16> {
  %0 = mp.matmul %x, %w : (tensor<8x?xbf16>, tensor<?x16xbf16>) -> tensor<8x16xbf16>
  return %0 : tensor<8x16xbf16>
}
