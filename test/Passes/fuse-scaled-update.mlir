// What is one sweep, what is none, the way back, and the proof of the check.
// RUN: mpopt %s --mp-normalize --mp-fuse-scaled-update -o %t.mlir && FileCheck %s < %t.mlir
// RUN: mpopt check %s %t.mlir
// RUN: mpopt %t.mlir --mp-lower -o %t.lower.mlir && mpopt check %s %t.lower.mlir
// RUN: FileCheck %s --check-prefix=LOWER < %t.lower.mlir
// RUN: mpopt %s --mp-normalize --mp-fuse-scaled-update --mp-fuse-scaled-update | diff %t.mlir -

// LOWER-NOT: mp.scaled_update

// Two parameters are two sweeps, a weight and its moment are one.
// CHECK-LABEL: func.func @momentum
// CHECK-SAME: why = "2 operations in one sweep that reads 96 bytes and writes 64"
// CHECK-SAME: why = "1 operations in one sweep that reads 32 bytes and writes 16"
// CHECK: %[[B:.*]] = mp.scaled_update
// CHECK: %[[A:.*]]:2 = mp.scaled_update
// CHECK: return %[[A]]#0, %[[A]]#1, %[[B]]
func.func @momentum(%w: tensor<8xf32>, %m: tensor<8xf32>, %g: tensor<8xf32>, %b: tensor<4xf32>, %h: tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<4xf32>) {
  %0 = mp.aten "aten.lerp.Scalar"(%m, %g) {args = {weight = 0.1}} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %1 = mp.aten "aten.add.Tensor"(%w, %0) {args = {alpha = -0.1}} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %2 = mp.aten "aten.add.Tensor"(%b, %h) {args = {alpha = -0.1}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1, %0, %2 : tensor<8xf32>, tensor<8xf32>, tensor<4xf32>
}

// The state is written where it lies; the update comes before.
// CHECK-LABEL: func.func @copied
// CHECK: %[[U:.*]] = mp.scaled_update
// CHECK: effects "aten.copy_.default"(%arg0, %[[U]])
func.func @copied(%w: tensor<8xf32>, %g: tensor<8xf32>, %found: tensor<i1>) {
  %0 = mp.aten "aten.sub.Tensor"(%w, %g) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %1 = mp.aten "aten.where.self"(%found, %w, %0) : (tensor<i1>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %2 = mp.aten effects "aten.copy_.default"(%w, %1) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return
}

// An activation is no update: nothing of its type came in.
// CHECK-LABEL: func.func @activation
// CHECK-SAME: why = "no result takes the place of an argument"
// CHECK-NOT: mp.scaled_update
func.func @activation(%x: tensor<8xbf16>, %y: tensor<8xbf16>) -> tensor<8xf32> {
  %0 = mp.aten "aten.mul.Tensor"(%x, %y) : (tensor<8xbf16>, tensor<8xbf16>) -> tensor<8xbf16>
  %1 = mp.cast %0 origin(user) : tensor<8xbf16> to tensor<8xf32>
  return %1 : tensor<8xf32>
}

// CHECK-LABEL: func.func @decay_alone
// CHECK-SAME: why = "it reads one array only"
// CHECK-NOT: mp.scaled_update
func.func @decay_alone(%w: tensor<8xf32>) -> tensor<8xf32> {
  %0 = mp.aten "aten.mul.Scalar"(%w) {args = {other = 0.99}} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// The trust ratio of LAMB needs the norm of the new moment before the weight can be
// known: it is computed for the norm, and again in the sweep, instead of stored.
// CHECK-LABEL: func.func @trust_ratio
// CHECK: %[[M:.*]] = mp.aten "aten.lerp.Scalar"(%arg1, %arg2)
// CHECK: mp.aten "aten.linalg_vector_norm.default"(%[[M]])
// CHECK: %[[U:.*]]:2 = mp.scaled_update
// CHECK: mp.aten "aten.lerp.Scalar"
// CHECK: return %[[U]]#0, %[[U]]#1
func.func @trust_ratio(%w: tensor<8xf32>, %m: tensor<8xf32>, %g: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = mp.aten "aten.lerp.Scalar"(%m, %g) {args = {weight = 0.1}} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %n = mp.aten "aten.linalg_vector_norm.default"(%0) : (tensor<8xf32>) -> tensor<f32>
  %1 = mp.aten "aten.div.Tensor"(%0, %n) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %2 = mp.aten "aten.sub.Tensor"(%w, %1) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %2, %0 : tensor<8xf32>, tensor<8xf32>
}

// A mean over elements is no part of a sweep, a dynamic size has no record of bytes.
// CHECK-LABEL: func.func @dynamic
// CHECK-NOT: mp.scaled_update
func.func @dynamic(%w: tensor<?xf32>, %g: tensor<?xf32>) -> tensor<?xf32> {
  %0 = mp.aten "aten.sub.Tensor"(%w, %g) : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
