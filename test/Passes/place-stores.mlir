// RUN: mpopt %s --mp-place-stores=min-elements=16 | FileCheck %s
// RUN: mpopt %s --mp-place-stores | FileCheck %s --check-prefix=DEFAULT

// The wide value has a reader of its own, and a matrix product reads the narrow one
// through a reshape.
// CHECK-LABEL: func.func @placed
// CHECK-SAME: rule = "place-store"
// CHECK: %[[C:.*]] = mp.cast
// CHECK-NEXT: %[[M:.*]] = mp.materialize %[[C]] : tensor<2x4x8xbf16>
// CHECK-NEXT: mp.aten "aten.view.default"(%[[M]])
// DEFAULT-LABEL: func.func @placed
// DEFAULT-NOT: mp.materialize
// DEFAULT-LABEL: func.func @not_placed_argument
func.func @placed(%x: tensor<2x4x8xf32>, %w: tensor<8x8xbf16>) -> (tensor<2x4x8xf32>, tensor<8x8xbf16>) {
  %0 = mp.aten "aten.exp.default"(%x) : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %1 = mp.cast %0 origin(autocast) : tensor<2x4x8xf32> to tensor<2x4x8xbf16>
  %2 = mp.aten "aten.view.default"(%1) {args = {size = [8, 8]}} : (tensor<2x4x8xbf16>) -> tensor<8x8xbf16>
  %3 = mp.aten "aten.mm.default"(%2, %w) : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  return %0, %3 : tensor<2x4x8xf32>, tensor<8x8xbf16>
}

// A weight has no producer to join.
// CHECK-LABEL: func.func @not_placed_argument
// CHECK-NOT: mp.materialize
func.func @not_placed_argument(%x: tensor<2x4x8xf32>, %w: tensor<8x8xbf16>) -> (tensor<2x4x8xf32>, tensor<8x8xbf16>) {
  %0 = mp.aten "aten.exp.default"(%x) : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %1 = mp.cast %x origin(autocast) : tensor<2x4x8xf32> to tensor<2x4x8xbf16>
  %2 = mp.aten "aten.view.default"(%1) {args = {size = [8, 8]}} : (tensor<2x4x8xbf16>) -> tensor<8x8xbf16>
  %3 = mp.aten "aten.mm.default"(%2, %w) : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  return %0, %3 : tensor<2x4x8xf32>, tensor<8x8xbf16>
}

// The fuser computes the only reader's operand inside the conversion already.
// CHECK-LABEL: func.func @not_placed_one_reader
// CHECK-NOT: mp.materialize
func.func @not_placed_one_reader(%x: tensor<2x4x8xf32>, %w: tensor<8x8xbf16>) -> tensor<8x8xbf16> {
  %0 = mp.aten "aten.exp.default"(%x) : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %1 = mp.cast %0 origin(autocast) : tensor<2x4x8xf32> to tensor<2x4x8xbf16>
  %2 = mp.aten "aten.view.default"(%1) {args = {size = [8, 8]}} : (tensor<2x4x8xbf16>) -> tensor<8x8xbf16>
  %3 = mp.aten "aten.mm.default"(%2, %w) : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  return %3 : tensor<8x8xbf16>
}

// It is stored in its own shape anyway.
// CHECK-LABEL: func.func @not_placed_read_in_own_shape
// CHECK-NOT: mp.materialize
func.func @not_placed_read_in_own_shape(%x: tensor<8x8xf32>, %w: tensor<8x8xbf16>) -> (tensor<8x8xf32>, tensor<8x8xbf16>) {
  %0 = mp.aten "aten.exp.default"(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = mp.cast %0 origin(autocast) : tensor<8x8xf32> to tensor<8x8xbf16>
  %2 = mp.aten "aten.mm.default"(%1, %w) : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  return %0, %2 : tensor<8x8xf32>, tensor<8x8xbf16>
}

// No library call reads it: the fuser need not store it at all.
// CHECK-LABEL: func.func @not_placed_no_library
// CHECK-NOT: mp.materialize
func.func @not_placed_no_library(%x: tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<8x8xbf16>) {
  %0 = mp.aten "aten.exp.default"(%x) : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %1 = mp.cast %0 origin(autocast) : tensor<2x4x8xf32> to tensor<2x4x8xbf16>
  %2 = mp.aten "aten.view.default"(%1) {args = {size = [8, 8]}} : (tensor<2x4x8xbf16>) -> tensor<8x8xbf16>
  %3 = mp.aten "aten.sin.default"(%2) : (tensor<8x8xbf16>) -> tensor<8x8xbf16>
  return %0, %3 : tensor<2x4x8xf32>, tensor<8x8xbf16>
}

// CHECK-LABEL: func.func @not_placed_dynamic_shape
// CHECK-NOT: mp.materialize
func.func @not_placed_dynamic_shape(%x: tensor<?x4x8xf32>, %w: tensor<8x8xbf16>) -> (tensor<?x4x8xf32>, tensor<?x8xbf16>) {
  %0 = mp.aten "aten.exp.default"(%x) : (tensor<?x4x8xf32>) -> tensor<?x4x8xf32>
  %1 = mp.cast %0 origin(autocast) : tensor<?x4x8xf32> to tensor<?x4x8xbf16>
  %2 = mp.aten "aten.view.default"(%1) {args = {size = [-1, 8]}} : (tensor<?x4x8xbf16>) -> tensor<?x8xbf16>
  %3 = mp.aten "aten.mm.default"(%2, %w) : (tensor<?x8xbf16>, tensor<8x8xbf16>) -> tensor<?x8xbf16>
  return %0, %3 : tensor<?x4x8xf32>, tensor<?x8xbf16>
}

// A wish was made already.
// CHECK-LABEL: func.func @not_placed_twice
// CHECK-COUNT-1: mp.materialize
// CHECK-NOT: mp.materialize
func.func @not_placed_twice(%x: tensor<2x4x8xf32>, %w: tensor<8x8xbf16>) -> (tensor<2x4x8xf32>, tensor<8x8xbf16>) {
  %0 = mp.aten "aten.exp.default"(%x) : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %1 = mp.cast %0 origin(autocast) : tensor<2x4x8xf32> to tensor<2x4x8xbf16>
  %2 = mp.materialize %1 : tensor<2x4x8xbf16>
  %3 = mp.aten "aten.view.default"(%2) {args = {size = [8, 8]}} : (tensor<2x4x8xbf16>) -> tensor<8x8xbf16>
  %4 = mp.aten "aten.mm.default"(%3, %w) : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  return %0, %4 : tensor<2x4x8xf32>, tensor<8x8xbf16>
}

// The views before the conversion come after it: the kernel of the source stores both.
// CHECK-LABEL: func.func @placed_before_views
// CHECK: %[[E:.*]] = mp.aten "aten.exp.default"
// CHECK-NEXT: %[[C:.*]] = mp.cast %[[E]] origin(autocast) : tensor<2x4x8xf32> to tensor<2x4x8xbf16>
// CHECK-NEXT: %[[M:.*]] = mp.materialize %[[C]] : tensor<2x4x8xbf16>
// CHECK-NEXT: %[[V:.*]] = mp.aten "aten.view.default"(%[[M]]) {{.*}} -> tensor<8x8xbf16>
// CHECK-NEXT: %[[P:.*]] = mp.aten "aten.permute.default"(%[[V]]) {{.*}} -> tensor<8x8xbf16>
// CHECK-NEXT: %[[R:.*]] = mp.aten "aten.mm.default"(%[[P]]
// CHECK-NEXT: return %[[E]], %[[R]]
func.func @placed_before_views(%x: tensor<2x4x8xf32>, %w: tensor<8x8xbf16>) -> (tensor<2x4x8xf32>, tensor<8x8xbf16>) {
  %0 = mp.aten "aten.exp.default"(%x) : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %1 = mp.aten "aten.view.default"(%0) {args = {size = [8, 8]}} : (tensor<2x4x8xf32>) -> tensor<8x8xf32>
  %2 = mp.aten "aten.permute.default"(%1) {args = {dims = [1, 0]}} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = mp.cast %2 origin(autocast) : tensor<8x8xf32> to tensor<8x8xbf16>
  %4 = mp.aten "aten.mm.default"(%3, %w) : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  return %0, %4 : tensor<2x4x8xf32>, tensor<8x8xbf16>
}

// A slice is not all of its source: that would round more than is read.
// CHECK-LABEL: func.func @not_placed_before_slice
// CHECK-NOT: mp.materialize
func.func @not_placed_before_slice(%x: tensor<9x8xf32>, %w: tensor<8x8xbf16>) -> (tensor<9x8xf32>, tensor<8x8xbf16>) {
  %0 = mp.aten "aten.exp.default"(%x) : (tensor<9x8xf32>) -> tensor<9x8xf32>
  %1 = mp.aten "aten.slice.Tensor"(%0) {args = {dim = 0, start = 1, end = 9}} : (tensor<9x8xf32>) -> tensor<8x8xf32>
  %2 = mp.cast %1 origin(autocast) : tensor<8x8xf32> to tensor<8x8xbf16>
  %3 = mp.aten "aten.mm.default"(%2, %w) : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  return %0, %3 : tensor<9x8xf32>, tensor<8x8xbf16>
}

// A convolution would copy what is permuted.
// CHECK-LABEL: func.func @not_placed_permuted_for_convolution
// CHECK-NOT: mp.materialize
func.func @not_placed_permuted_for_convolution(%x: tensor<2x4x4x3xf32>, %w: tensor<8x3x1x1xbf16>) -> (tensor<2x4x4x3xf32>, tensor<2x8x4x4xbf16>) {
  %0 = mp.aten "aten.exp.default"(%x) : (tensor<2x4x4x3xf32>) -> tensor<2x4x4x3xf32>
  %1 = mp.aten "aten.permute.default"(%0) {args = {dims = [0, 3, 1, 2]}} : (tensor<2x4x4x3xf32>) -> tensor<2x3x4x4xf32>
  %2 = mp.cast %1 origin(autocast) : tensor<2x3x4x4xf32> to tensor<2x3x4x4xbf16>
  %3 = mp.aten "aten.convolution.default"(%2, %w) {args = {bias = unit, stride = [1, 1], padding = [0, 0], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1}} : (tensor<2x3x4x4xbf16>, tensor<8x3x1x1xbf16>) -> tensor<2x8x4x4xbf16>
  return %0, %3 : tensor<2x4x4x3xf32>, tensor<2x8x4x4xbf16>
}

// A library call has no kernel of ours to join.
// CHECK-LABEL: func.func @not_placed_after_library
// CHECK-NOT: mp.materialize
func.func @not_placed_after_library(%x: tensor<2x4x8xf32>, %y: tensor<2x8x8xf32>, %w: tensor<8x8xbf16>) -> (tensor<2x4x8xf32>, tensor<8x8xbf16>) {
  %0 = mp.aten "aten.bmm.default"(%x, %y) : (tensor<2x4x8xf32>, tensor<2x8x8xf32>) -> tensor<2x4x8xf32>
  %1 = mp.cast %0 origin(autocast) : tensor<2x4x8xf32> to tensor<2x4x8xbf16>
  %2 = mp.aten "aten.view.default"(%1) {args = {size = [8, 8]}} : (tensor<2x4x8xbf16>) -> tensor<8x8xbf16>
  %3 = mp.aten "aten.mm.default"(%2, %w) : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  return %0, %3 : tensor<2x4x8xf32>, tensor<8x8xbf16>
}

// Two readers see one value through different views: one copy is stored.
// CHECK-LABEL: func.func @one_copy_for_two_views
// CHECK: mp.aten "aten.exp.default"
// CHECK-NEXT: %[[C:.*]] = mp.cast
// CHECK-NEXT: %[[M:.*]] = mp.materialize %[[C]] : tensor<2x4x8xbf16>
// CHECK-NOT: mp.cast
// CHECK-NOT: mp.materialize
// CHECK: return
func.func @one_copy_for_two_views(%x: tensor<2x4x8xf32>, %w: tensor<8x8xbf16>) -> (tensor<2x4x8xf32>, tensor<8x8xbf16>, tensor<8x8xbf16>, tensor<2x4x8xbf16>) {
  %0 = mp.aten "aten.exp.default"(%x) : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %1 = mp.aten "aten.view.default"(%0) {args = {size = [8, 8]}} : (tensor<2x4x8xf32>) -> tensor<8x8xf32>
  %2 = mp.aten "aten.permute.default"(%1) {args = {dims = [1, 0]}} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = mp.cast %2 origin(autocast) : tensor<8x8xf32> to tensor<8x8xbf16>
  %4 = mp.aten "aten.mm.default"(%3, %w) : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  %5 = mp.cast %0 origin(autocast) : tensor<2x4x8xf32> to tensor<2x4x8xbf16>
  %6 = mp.aten "aten.view.default"(%5) {args = {size = [8, 8]}} : (tensor<2x4x8xbf16>) -> tensor<8x8xbf16>
  %7 = mp.aten "aten.mm.default"(%6, %w) : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  return %0, %4, %7, %5 : tensor<2x4x8xf32>, tensor<8x8xbf16>, tensor<8x8xbf16>, tensor<2x4x8xbf16>
}

// The first one stores it in place; the second one reads that.
// CHECK-LABEL: func.func @reads_what_is_stored
// CHECK: %[[C:.*]] = mp.cast
// CHECK-NEXT: %[[M:.*]] = mp.materialize %[[C]] : tensor<2x4x8xbf16>
// CHECK-NOT: mp.cast
// CHECK-NOT: mp.materialize
// CHECK: return
func.func @reads_what_is_stored(%x: tensor<2x4x8xf32>, %w: tensor<8x8xbf16>) -> (tensor<2x4x8xf32>, tensor<8x8xbf16>, tensor<8x8xbf16>) {
  %0 = mp.aten "aten.exp.default"(%x) : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %1 = mp.cast %0 origin(autocast) : tensor<2x4x8xf32> to tensor<2x4x8xbf16>
  %2 = mp.aten "aten.view.default"(%1) {args = {size = [8, 8]}} : (tensor<2x4x8xbf16>) -> tensor<8x8xbf16>
  %3 = mp.aten "aten.mm.default"(%2, %w) : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  %4 = mp.aten "aten.view.default"(%0) {args = {size = [8, 8]}} : (tensor<2x4x8xf32>) -> tensor<8x8xf32>
  %5 = mp.aten "aten.permute.default"(%4) {args = {dims = [1, 0]}} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %6 = mp.cast %5 origin(autocast) : tensor<8x8xf32> to tensor<8x8xbf16>
  %7 = mp.aten "aten.mm.default"(%6, %w) : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  return %0, %3, %7 : tensor<2x4x8xf32>, tensor<8x8xbf16>, tensor<8x8xbf16>
}
