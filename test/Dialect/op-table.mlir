// What each kind promises, seen through mp-eliminate-casts: a narrowing passes the
// operator and cancels with the widening before it, or it does not.
// RUN: mpopt %s --mp-eliminate-casts=numerics=strict | FileCheck %s
// RUN: mpopt %s --mp-eliminate-casts=numerics=precise | FileCheck %s --check-prefix=PRECISE

// CHECK-LABEL: func.func @view
// CHECK-NOT: mp.cast %
func.func @view(%x: tensor<4x8xbf16>) -> tensor<2x8xbf16> {
  %0 = mp.cast %x origin(user) : tensor<4x8xbf16> to tensor<4x8xf32>
  %1 = mp.aten "aten.permute.default"(%0) {args = {dims = [1, 0]}} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %2 = mp.aten "aten.transpose.int"(%1) {args = {dim0 = 0, dim1 = 1}} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %3 = mp.aten "aten.slice.Tensor"(%2) {args = {dim = 0, start = 0, end = 2}} : (tensor<4x8xf32>) -> tensor<2x8xf32>
  %4 = mp.aten "aten.expand.default"(%3) {args = {size = [2, 8]}} : (tensor<2x8xf32>) -> tensor<2x8xf32>
  %5 = mp.cast %4 origin(user) : tensor<2x8xf32> to tensor<2x8xbf16>
  %6 = mp.aten "aten.exp.default"(%5) : (tensor<2x8xbf16>) -> tensor<2x8xbf16>
  return %6 : tensor<2x8xbf16>
}

// CHECK-LABEL: func.func @reshape
// CHECK-NOT: mp.cast %
func.func @reshape(%x: tensor<4x8xbf16>) -> tensor<1x32xbf16> {
  %0 = mp.cast %x origin(user) : tensor<4x8xbf16> to tensor<4x8xf32>
  %1 = mp.aten "aten.view.default"(%0) {args = {size = [32]}} : (tensor<4x8xf32>) -> tensor<32xf32>
  %2 = mp.aten "aten.unsqueeze.default"(%1) {args = {dim = 0}} : (tensor<32xf32>) -> tensor<1x32xf32>
  %3 = mp.cast %2 origin(user) : tensor<1x32xf32> to tensor<1x32xbf16>
  %4 = mp.aten "aten.exp.default"(%3) : (tensor<1x32xbf16>) -> tensor<1x32xbf16>
  return %4 : tensor<1x32xbf16>
}

// CHECK-LABEL: func.func @movement
// CHECK-NOT: mp.cast %
func.func @movement(%x: tensor<8xbf16>) -> tensor<10xbf16> {
  %0 = mp.cast %x origin(user) : tensor<8xbf16> to tensor<8xf32>
  %1 = mp.aten "aten.flip.default"(%0) {args = {dims = [0]}} : (tensor<8xf32>) -> tensor<8xf32>
  %2 = mp.aten "aten.constant_pad_nd.default"(%1) {args = {pad = [1, 1], value = 0.5}} : (tensor<8xf32>) -> tensor<10xf32>
  %3 = mp.cast %2 origin(user) : tensor<10xf32> to tensor<10xbf16>
  return %3 : tensor<10xbf16>
}

// Integer operands are positions, masks choose.
// CHECK-LABEL: func.func @gather
// CHECK-NOT: mp.cast %
func.func @gather(%w: tensor<9x8xbf16>, %i: tensor<4xi64>, %m: tensor<4x8xi1>) -> tensor<4x8xbf16> {
  %0 = mp.cast %w origin(user) : tensor<9x8xbf16> to tensor<9x8xf32>
  %1 = mp.aten "aten.embedding.default"(%0, %i) : (tensor<9x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
  %2 = mp.aten "aten.where.self"(%m, %1, %1) : (tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = mp.cast %2 origin(user) : tensor<4x8xf32> to tensor<4x8xbf16>
  return %3 : tensor<4x8xbf16>
}

// CHECK-LABEL: func.func @sign_and_monotone
// CHECK-NOT: mp.cast %
func.func @sign_and_monotone(%x: tensor<4x8xf16>, %y: tensor<4x8xf16>) -> tensor<4xf16> {
  %0 = mp.cast %x origin(user) : tensor<4x8xf16> to tensor<4x8xf32>
  %1 = mp.cast %y origin(user) : tensor<4x8xf16> to tensor<4x8xf32>
  %2 = mp.aten "aten.neg.default"(%0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = mp.cast %2 origin(user) : tensor<4x8xf32> to tensor<4x8xf16>
  %4 = mp.cast %3 origin(user) : tensor<4x8xf16> to tensor<4x8xf32>
  %5 = mp.aten "aten.minimum.default"(%4, %1) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %6 = mp.cast %5 origin(user) : tensor<4x8xf32> to tensor<4x8xf16>
  %7 = mp.cast %6 origin(user) : tensor<4x8xf16> to tensor<4x8xf32>
  %8 = mp.aten "aten.amax.default"(%7) {args = {dim = [1]}} : (tensor<4x8xf32>) -> tensor<4xf32>
  %9 = mp.cast %8 origin(user) : tensor<4xf32> to tensor<4xf16>
  return %9 : tensor<4xf16>
}

// A row may name one overload: max of two tensors picks, max over a dimension
// returns an index as well; view with a dtype reinterprets bits.
// CHECK-LABEL: func.func @overloads_differ
// CHECK: mp.aten "aten.max.other"{{.*}} -> tensor<4xbf16>
// CHECK: mp.aten "aten.max.dim"{{.*}} -> (tensor<f32>, tensor<i64>)
// CHECK: mp.aten "aten.view.dtype"{{.*}} : (tensor<4xf32>) -> tensor<4xf32>
func.func @overloads_differ(%x: tensor<4xbf16>, %y: tensor<4xbf16>) -> (tensor<4xbf16>, tensor<bf16>, tensor<4xbf16>) {
  %0 = mp.cast %x origin(user) : tensor<4xbf16> to tensor<4xf32>
  %1 = mp.cast %y origin(user) : tensor<4xbf16> to tensor<4xf32>
  %2 = mp.aten "aten.max.other"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = mp.cast %2 origin(user) : tensor<4xf32> to tensor<4xbf16>
  %4:2 = mp.aten "aten.max.dim"(%0) {args = {dim = 0}} : (tensor<4xf32>) -> (tensor<f32>, tensor<i64>)
  %5 = mp.cast %4#0 origin(user) : tensor<f32> to tensor<bf16>
  %6 = mp.aten "aten.view.dtype"(%0) {args = {dtype = f32}} : (tensor<4xf32>) -> tensor<4xf32>
  %7 = mp.cast %6 origin(user) : tensor<4xf32> to tensor<4xbf16>
  return %3, %5, %7 : tensor<4xbf16>, tensor<bf16>, tensor<4xbf16>
}

// Arithmetic, sums, norms, attention: rounding does not commute.
// CHECK-LABEL: func.func @compute
// CHECK: mp.aten "aten.sigmoid.default"{{.*}} -> tensor<4xf32>
// CHECK: mp.aten "aten.cumsum.default"{{.*}} -> tensor<4xf32>
// CHECK: mp.aten "aten.clamp.default"{{.*}} -> tensor<4xf32>
func.func @compute(%x: tensor<4xbf16>) -> (tensor<4xbf16>, tensor<4xbf16>, tensor<4xbf16>) {
  %0 = mp.cast %x origin(user) : tensor<4xbf16> to tensor<4xf32>
  %1 = mp.aten "aten.sigmoid.default"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = mp.cast %1 origin(user) : tensor<4xf32> to tensor<4xbf16>
  %3 = mp.aten "aten.cumsum.default"(%0) {args = {dim = 0}} : (tensor<4xf32>) -> tensor<4xf32>
  %4 = mp.cast %3 origin(user) : tensor<4xf32> to tensor<4xbf16>
  %5 = mp.aten "aten.clamp.default"(%0) {args = {min = 0.1}} : (tensor<4xf32>) -> tensor<4xf32>
  %6 = mp.cast %5 origin(user) : tensor<4xf32> to tensor<4xbf16>
  return %2, %4, %6 : tensor<4xbf16>, tensor<4xbf16>, tensor<4xbf16>
}

// Observers, one of each kind: the rounding before them stays.
// PRECISE-LABEL: func.func @observers
// PRECISE-COUNT-12: mp.cast %
func.func @observers(%x: tensor<4xf32>) {
  %0 = mp.cast %x origin(autocast) : tensor<4xf32> to tensor<4xbf16>
  %1 = mp.cast %0 origin(autocast) : tensor<4xbf16> to tensor<4xf32>
  %2 = mp.aten effects "aten.ge.Scalar"(%1) {args = {other = 0.5}} : (tensor<4xf32>) -> tensor<4xi1>
  %3 = mp.cast %x origin(autocast) {mp.recompute = 0} : tensor<4xf32> to tensor<4xbf16>
  %4 = mp.cast %3 origin(autocast) {mp.recompute = 0} : tensor<4xbf16> to tensor<4xf32>
  %5:2 = mp.aten effects "aten.topk.default"(%4) {args = {k = 2}} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi64>)
  %6 = mp.cast %x origin(autocast) {mp.recompute = 1} : tensor<4xf32> to tensor<4xbf16>
  %7 = mp.cast %6 origin(autocast) {mp.recompute = 1} : tensor<4xbf16> to tensor<4xf32>
  %8 = mp.aten effects "aten.round.default"(%7) : (tensor<4xf32>) -> tensor<4xf32>
  %9 = mp.cast %x origin(autocast) {mp.recompute = 2} : tensor<4xf32> to tensor<4xbf16>
  %10 = mp.cast %9 origin(autocast) {mp.recompute = 2} : tensor<4xbf16> to tensor<4xf32>
  %11 = mp.aten effects "aten.view.dtype"(%10) {args = {dtype = i32}} : (tensor<4xf32>) -> tensor<4xi32>
  %12 = mp.cast %x origin(autocast) {mp.recompute = 3} : tensor<4xf32> to tensor<4xbf16>
  %13 = mp.cast %12 origin(autocast) {mp.recompute = 3} : tensor<4xbf16> to tensor<4xf32>
  %14 = mp.aten effects "aten._local_scalar_dense.default"(%13) : (tensor<4xf32>) -> f64
  %15 = mp.cast %x origin(autocast) {mp.recompute = 4} : tensor<4xf32> to tensor<4xbf16>
  %16 = mp.cast %15 origin(autocast) {mp.recompute = 4} : tensor<4xbf16> to tensor<4xf32>
  %17 = mp.aten effects "mylib.anything.default"(%16) : (tensor<4xf32>) -> tensor<4xf32>
  return
}
