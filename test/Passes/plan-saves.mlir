// RUN: mpopt %s --mp-plan-saves | FileCheck %s

// Both types of one value would be kept: backward rounds the wide one again. A store is
// a wish about forward and is not repeated.
// CHECK-LABEL: func.func @both_types
// CHECK-SAME: rule = "repeat-for-backward"
// CHECK-SAME: for the value that it rounds is kept anyway
// CHECK: %[[E:.*]] = mp.aten "aten.exp.default"(%arg0)
// CHECK: %[[F:.*]] = mp.cast %[[E]]
// CHECK: %[[M:.*]] = mp.materialize %[[F]]
// CHECK: mp.matmul %[[M]], %arg1
// CHECK-NOT: mp.materialize
// CHECK: mp.aten "aten.mul.Tensor"(%[[E]], %arg2)
// CHECK: %[[B:.*]] = mp.cast %[[E]] {{.*}}mp.backward
// CHECK: mp.matmul %[[B]], %arg1
func.func @both_types(%x: tensor<8x8xf32>, %w: tensor<8x8xbf16>, %g: tensor<8x8xf32> {mp.role = "tangent"}) -> (tensor<8x8xbf16>, tensor<8x8xf32>, tensor<8x8xbf16>) {
  %0 = mp.aten "aten.exp.default"(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = mp.cast %0 origin(autocast) : tensor<8x8xf32> to tensor<8x8xbf16>
  %2 = mp.materialize %1 : tensor<8x8xbf16>
  %3 = mp.matmul %2, %w : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  %4 = mp.aten "aten.mul.Tensor"(%0, %g) {mp.backward} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %5 = mp.matmul %2, %w {mp.backward} : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  return %3, %4, %5 : tensor<8x8xbf16>, tensor<8x8xf32>, tensor<8x8xbf16>
}

// Two readers share what backward makes, and a copy that only backward read is gone.
// CHECK-LABEL: func.func @shared
// CHECK: %[[C:.*]] = mp.cast %arg0 {{.*}}mp.backward
// CHECK-NOT: mp.cast
// CHECK: %[[T:.*]] = mp.aten "aten.t.default"(%[[C]]) {{.*}}mp.backward
// CHECK: mp.matmul %arg1, %[[T]]
// CHECK: mp.matmul %[[T]], %arg1
// CHECK: mp.matmul %arg1, %[[C]]
func.func @shared(%w: tensor<8x8xf32> {mp.role = "parameter"}, %g: tensor<8x8xbf16> {mp.role = "tangent"}) -> (tensor<8x8xbf16>, tensor<8x8xbf16>, tensor<8x8xbf16>) {
  %0 = mp.cast %w origin(autocast) : tensor<8x8xf32> to tensor<8x8xbf16>
  %1 = mp.aten "aten.t.default"(%0) : (tensor<8x8xbf16>) -> tensor<8x8xbf16>
  %2 = mp.matmul %g, %1 {mp.backward} : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  %3 = mp.matmul %1, %g {mp.backward} : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  %4 = mp.matmul %g, %0 {mp.backward} : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  return %2, %3, %4 : tensor<8x8xbf16>, tensor<8x8xbf16>, tensor<8x8xbf16>
}

// The half copy is all that is kept: to keep the wide one instead would cost more.
// CHECK-LABEL: func.func @not_the_only_type
// CHECK-COUNT-1: mp.cast
// CHECK-NOT: mp.cast
// CHECK: return
func.func @not_the_only_type(%x: tensor<8x8xf32>, %w: tensor<8x8xbf16>) -> (tensor<8x8xf32>, tensor<8x8xbf16>) {
  %0 = mp.aten "aten.exp.default"(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = mp.cast %0 origin(autocast) : tensor<8x8xf32> to tensor<8x8xbf16>
  %2 = mp.matmul %1, %w {mp.backward} : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  return %0, %2 : tensor<8x8xf32>, tensor<8x8xbf16>
}

// An input of the step need not live on: its half copy is less to keep.
// CHECK-LABEL: func.func @not_an_input
// CHECK: mp.cast %arg0 origin(autocast) :
// CHECK-NOT: mp.cast
// CHECK: return
func.func @not_an_input(%x: tensor<8x8xf32> {mp.role = "input"}, %g: tensor<8x8xbf16>) -> tensor<8x8xbf16> {
  %0 = mp.cast %x origin(autocast) : tensor<8x8xf32> to tensor<8x8xbf16>
  %1 = mp.matmul %0, %g {mp.backward} : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  return %1 : tensor<8x8xbf16>
}

// A checkpointing policy has decided about this one.
// CHECK-LABEL: func.func @not_in_a_checkpointed_region
// CHECK-COUNT-1: mp.cast
// CHECK-NOT: mp.cast
// CHECK: return
func.func @not_in_a_checkpointed_region(%w: tensor<8x8xf32> {mp.role = "parameter"}, %g: tensor<8x8xbf16>) -> tensor<8x8xbf16> {
  %0 = mp.cast %w origin(autocast) {mp.recompute = 0 : i64} : tensor<8x8xf32> to tensor<8x8xbf16>
  %1 = mp.matmul %0, %g {mp.backward} : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  return %1 : tensor<8x8xbf16>
}

// A view of a weight is the weight itself.
// CHECK-LABEL: func.func @not_a_view
// CHECK-NOT: mp.rewrites
// CHECK-COUNT-1: aten.t.default
// CHECK-NOT: aten.t.default
// CHECK: return
func.func @not_a_view(%w: tensor<8x8xf32> {mp.role = "parameter"}, %g: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = mp.aten "aten.t.default"(%w) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = mp.matmul %0, %g {mp.backward} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
