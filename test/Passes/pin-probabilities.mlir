// Logarithms of probabilities.
// RUN: mpopt %s --mp-pin | FileCheck %s

// CHECK-LABEL: func.func @log_of_softmax
// CHECK: aten._softmax.default{{.*}}#mp.pin<fp32 result, "probability-loss", "aten._softmax of 4x8: a probability whose logarithm is taken; next to 1 bf16 has 0.9961">
// CHECK: aten.add.Tensor{{.*}}"probability-loss"
// CHECK: aten.log.default{{.*}}#mp.pin<fp32 operands, "probability-loss"
func.func @log_of_softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = mp.aten "aten._softmax.default"(%x) {args = {dim = -1, half_to_float = false}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = mp.aten "aten.add.Tensor"(%0) {args = {other = 0.01}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = mp.aten "aten.log.default"(%1) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// Both halves of a binary cross entropy: p and 1 - p, through a clamp, a negation
// and a view.
// CHECK-LABEL: func.func @binary_cross_entropy_by_hand
// CHECK: aten.sigmoid.default{{.*}}"probability-loss"
// CHECK: aten.clamp.default{{.*}}"probability-loss"
// CHECK: aten.view.default
// CHECK-NOT: mp.pin
// CHECK: aten.log.default
// CHECK: aten.rsub.Scalar{{.*}}"probability-loss"
// CHECK: aten.neg.default{{.*}}"probability-loss"
func.func @binary_cross_entropy_by_hand(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0 = mp.aten "aten.sigmoid.default"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = mp.aten "aten.clamp.default"(%0) {args = {min = 0.01, max = 0.99}} : (tensor<8xf32>) -> tensor<8xf32>
  %2 = mp.aten "aten.view.default"(%1) {args = {size = [8]}} : (tensor<8xf32>) -> tensor<8xf32>
  %3 = mp.aten "aten.log.default"(%2) : (tensor<8xf32>) -> tensor<8xf32>
  %4 = mp.aten "aten.rsub.Scalar"(%0) {args = {other = 1}} : (tensor<8xf32>) -> tensor<8xf32>
  %5 = mp.aten "aten.log.default"(%4) : (tensor<8xf32>) -> tensor<8xf32>
  %6 = mp.aten "aten.neg.default"(%0) : (tensor<8xf32>) -> tensor<8xf32>
  %7 = mp.aten "aten.log1p.default"(%6) : (tensor<8xf32>) -> tensor<8xf32>
  return %3, %5, %7 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// The logarithm of something else, of a probability times values, of an argument; a
// softmax without a logarithm.
// CHECK-LABEL: func.func @no_probability
// CHECK-NOT: probability-loss
// CHECK: return
func.func @no_probability(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = mp.aten "aten._softmax.default"(%x) {args = {dim = -1, half_to_float = false}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = mp.aten "aten.mul.Tensor"(%0, %y) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = mp.aten "aten.log.default"(%1) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = mp.aten "aten.exp.default"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = mp.aten "aten.log1p.default"(%3) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %5 = mp.aten "aten.log.default"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %2, %4, %5 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}
