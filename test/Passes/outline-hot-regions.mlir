// What a region takes with it, one function per shape.
// RUN: mpopt %s --mp-outline-hot-regions='target=sm_90 all' | FileCheck %s

// Bias in the product, activation behind a view, residual in f32.
// CHECK-LABEL: func.func @epilogue
// CHECK: mp.region matmul "matmul_gelu_add" (%arg0, %arg1, %arg2, %arg3)
// CHECK-SAME: -> tensor<2x4x16xf32>
// CHECK: mp.matmul
// CHECK: "aten.view.default"
// CHECK: mp.gelu
// CHECK: "aten.add.Tensor"
// CHECK-NEXT: mp.yield
func.func @epilogue(%x: tensor<8x32xbf16>, %w: tensor<32x16xbf16>, %b: tensor<16xbf16>, %r: tensor<2x4x16xf32>) -> tensor<2x4x16xf32> {
  %0 = mp.matmul %x, %w bias(%b : tensor<16xbf16>) : (tensor<8x32xbf16>, tensor<32x16xbf16>) -> tensor<8x16xbf16>
  %1 = mp.aten "aten.view.default"(%0) {args = {size = [2, 4, 16]}} : (tensor<8x16xbf16>) -> tensor<2x4x16xbf16>
  %2 = mp.gelu(%1) : (tensor<2x4x16xbf16>) -> tensor<2x4x16xbf16>
  %3 = mp.aten "aten.add.Tensor"(%2, %r) : (tensor<2x4x16xbf16>, tensor<2x4x16xf32>) -> tensor<2x4x16xf32>
  return %3 : tensor<2x4x16xf32>
}

// A transposed weight is a layout; the transposition outside stays for others.
// CHECK-LABEL: func.func @transposed_weight
// CHECK: %[[T:.*]] = mp.aten "aten.permute.default"(%arg1)
// CHECK: mp.region matmul "matmul" (%arg1, %arg0)
// CHECK: ^bb0(%[[W:.*]]: tensor<16x32xbf16>, %[[X:.*]]: tensor<8x32xbf16>):
// CHECK: %[[P:.*]] = mp.aten "aten.permute.default"(%[[W]])
// CHECK: mp.matmul %[[X]], %[[P]]
// CHECK: return %{{.*}}, %[[T]]
func.func @transposed_weight(%x: tensor<8x32xbf16>, %w: tensor<16x32xbf16>) -> (tensor<8x16xbf16>, tensor<32x16xbf16>) {
  %0 = mp.aten "aten.permute.default"(%w) {args = {dims = [1, 0]}} : (tensor<16x32xbf16>) -> tensor<32x16xbf16>
  %1 = mp.matmul %x, %0 : (tensor<8x32xbf16>, tensor<32x16xbf16>) -> tensor<8x16xbf16>
  return %1, %0 : tensor<8x16xbf16>, tensor<32x16xbf16>
}

// The gradient of a weight, turned twice and widened, and that of the bias.
// CHECK-LABEL: func.func @weight_gradient
// CHECK: mp.region matmul "matmul_sum" (%arg0, %arg1) {mp.backward}
// CHECK-SAME: -> (tensor<1x16xbf16>, tensor<16x32xf32>)
// CHECK: mp.yield
func.func @weight_gradient(%g: tensor<8x16xbf16>, %x: tensor<8x32xbf16>) -> (tensor<16x32xf32>, tensor<1x16xbf16>) {
  %0 = mp.aten "aten.permute.default"(%g) {args = {dims = [1, 0]}, mp.backward} : (tensor<8x16xbf16>) -> tensor<16x8xbf16>
  %1 = mp.matmul %0, %x {mp.backward} : (tensor<16x8xbf16>, tensor<8x32xbf16>) -> tensor<16x32xbf16>
  %2 = mp.aten "aten.sum.dim_IntList"(%g) {args = {dim = [0], keepdim = true}, mp.backward} : (tensor<8x16xbf16>) -> tensor<1x16xbf16>
  %3 = mp.aten "aten.permute.default"(%1) {args = {dims = [1, 0]}, mp.backward} : (tensor<16x32xbf16>) -> tensor<32x16xbf16>
  %4 = mp.aten "aten.permute.default"(%3) {args = {dims = [1, 0]}, mp.backward} : (tensor<32x16xbf16>) -> tensor<16x32xbf16>
  %5 = mp.cast %4 origin(user) {mp.backward} : tensor<16x32xbf16> to tensor<16x32xf32>
  return %5, %2 : tensor<16x32xf32>, tensor<1x16xbf16>
}

// The gradient of an input with that of the activation before it, a dropout
// mask, and the sum of rows that is the gradient of the bias there.
// CHECK-LABEL: func.func @input_gradient
// CHECK: mp.region matmul "matmul_mul_gelu_backward_sum" (%arg0, %arg1, %arg2, %arg3) {mp.backward}
// CHECK-SAME: -> (tensor<8x32xbf16>, tensor<32xbf16>)
func.func @input_gradient(%g: tensor<8x16xbf16>, %w: tensor<16x32xbf16>, %mask: tensor<8x32xi1>, %h: tensor<8x32xbf16>) -> (tensor<8x32xbf16>, tensor<32xbf16>) {
  %0 = mp.matmul %g, %w {mp.backward} : (tensor<8x16xbf16>, tensor<16x32xbf16>) -> tensor<8x32xbf16>
  %1 = mp.aten "aten.mul.Tensor"(%0, %mask) {mp.backward} : (tensor<8x32xbf16>, tensor<8x32xi1>) -> tensor<8x32xbf16>
  %2 = mp.aten "aten.gelu_backward.default"(%1, %h) {mp.backward} : (tensor<8x32xbf16>, tensor<8x32xbf16>) -> tensor<8x32xbf16>
  %3 = mp.aten "aten.sum.dim_IntList"(%2) {args = {dim = [0]}, mp.backward} : (tensor<8x32xbf16>) -> tensor<32xbf16>
  return %2, %3 : tensor<8x32xbf16>, tensor<32xbf16>
}

// A batch of products with a scale.
// CHECK-LABEL: func.func @batched
// CHECK: mp.region matmul "matmul_mul" (%arg0, %arg1)
func.func @batched(%q: tensor<4x8x16xbf16>, %k: tensor<4x16x8xbf16>) -> tensor<4x8x8xbf16> {
  %0 = mp.matmul %q, %k : (tensor<4x8x16xbf16>, tensor<4x16x8xbf16>) -> tensor<4x8x8xbf16>
  %1 = mp.aten "aten.mul.Tensor"(%0) {args = {other = 0.125}} : (tensor<4x8x8xbf16>) -> tensor<4x8x8xbf16>
  return %1 : tensor<4x8x8xbf16>
}

// The residual stream is stored by the kernel that normalizes it; the
// deviation is a result, for backward reads it.
// CHECK-LABEL: func.func @norm
// CHECK: %[[R:.*]]:3 = mp.region rows "var_mean_add_rsqrt_sub_mul" (%arg0, %arg1, %arg2)
// CHECK-SAME: -> (tensor<2x4x16xf32>, tensor<2x4x1xf32>, tensor<2x4x16xbf16>)
// CHECK: %[[N:.*]] = mp.aten "aten.neg.default"(%[[R]]#1) {mp.backward}
// CHECK: return %[[R]]#2, %[[R]]#0, %[[N]]
func.func @norm(%p: tensor<8x16xbf16>, %h: tensor<2x4x16xf32>, %w: tensor<16xf32>) -> (tensor<2x4x16xbf16>, tensor<2x4x16xf32>, tensor<2x4x1xf32>) {
  %0 = mp.aten "aten.view.default"(%p) {args = {size = [2, 4, 16]}} : (tensor<8x16xbf16>) -> tensor<2x4x16xbf16>
  %1 = mp.aten "aten.add.Tensor"(%h, %0) : (tensor<2x4x16xf32>, tensor<2x4x16xbf16>) -> tensor<2x4x16xf32>
  %2:2 = mp.aten "aten.var_mean.correction"(%1) {args = {correction = 0, dim = [2], keepdim = true}} : (tensor<2x4x16xf32>) -> (tensor<2x4x1xf32>, tensor<2x4x1xf32>)
  %3 = mp.aten "aten.add.Tensor"(%2#0) {args = {other = 1.0e-5}} : (tensor<2x4x1xf32>) -> tensor<2x4x1xf32>
  %4 = mp.aten "aten.rsqrt.default"(%3) : (tensor<2x4x1xf32>) -> tensor<2x4x1xf32>
  %5 = mp.aten "aten.sub.Tensor"(%1, %2#1) : (tensor<2x4x16xf32>, tensor<2x4x1xf32>) -> tensor<2x4x16xf32>
  %6 = mp.aten "aten.mul.Tensor"(%5, %4) : (tensor<2x4x16xf32>, tensor<2x4x1xf32>) -> tensor<2x4x16xf32>
  %7 = mp.aten "aten.mul.Tensor"(%6, %w) : (tensor<2x4x16xf32>, tensor<16xf32>) -> tensor<2x4x16xf32>
  %8 = mp.cast %7 origin(autocast) : tensor<2x4x16xf32> to tensor<2x4x16xbf16>
  %9 = mp.aten "aten.neg.default"(%4) {mp.backward} : (tensor<2x4x1xf32>) -> tensor<2x4x1xf32>
  return %8, %1, %9 : tensor<2x4x16xbf16>, tensor<2x4x16xf32>, tensor<2x4x1xf32>
}

// A norm kept whole, and its gradients.
// CHECK-LABEL: func.func @norm_backward
// CHECK: mp.region rows "native_layer_norm_backward_add" (%arg0, %arg1, %arg2, %arg3, %arg4, %arg5) {mp.backward}
// CHECK-SAME: -> (tensor<16xf32>, tensor<16xf32>, tensor<8x16xf32>)
func.func @norm_backward(%g: tensor<8x16xf32>, %x: tensor<8x16xf32>, %mean: tensor<8x1xf32>, %rstd: tensor<8x1xf32>, %w: tensor<16xf32>, %h: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<16xf32>, tensor<16xf32>) {
  %0:3 = mp.layer_norm_backward(%g, %x, %mean, %rstd, %w) {args = {normalized_shape = [16], output_mask = [true, true, true]}, mp.backward}
      : (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x1xf32>, tensor<8x1xf32>, tensor<16xf32>) -> (tensor<8x16xf32>, tensor<16xf32>, tensor<16xf32>)
  %1 = mp.aten "aten.add.Tensor"(%h, %0#0) {mp.backward} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  return %1, %0#1, %0#2 : tensor<8x16xf32>, tensor<16xf32>, tensor<16xf32>
}

// Cross entropy forward: the row of a label is found by its number.
// CHECK-LABEL: func.func @cross_entropy
// CHECK: mp.region rows "_log_softmax_gather_neg" (%arg0, %arg1)
// CHECK-SAME: -> tensor<8x1xf32>
func.func @cross_entropy(%x: tensor<8x16xbf16>, %label: tensor<8xi64>) -> tensor<8x1xf32> {
  %0 = mp.cast %x origin(autocast) : tensor<8x16xbf16> to tensor<8x16xf32>
  %1 = mp.log_softmax(%0) {args = {dim = 1, half_to_float = false}} : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %2 = mp.aten "aten.unsqueeze.default"(%label) {args = {dim = 1}} : (tensor<8xi64>) -> tensor<8x1xi64>
  %3 = mp.aten "aten.gather.default"(%1, %2) {args = {dim = 1}} : (tensor<8x16xf32>, tensor<8x1xi64>) -> tensor<8x1xf32>
  %4 = mp.aten "aten.neg.default"(%3) : (tensor<8x1xf32>) -> tensor<8x1xf32>
  return %4 : tensor<8x1xf32>
}

// A filled tensor is a number; it is not read from memory.
// CHECK-LABEL: func.func @constant
// CHECK: mp.region rows "amax_sub_maximum" (%arg0)
// CHECK: "aten.full.default"
func.func @constant(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = mp.aten "aten.full.default"() {args = {fill_value = -1.0, size = [8, 16]}} : () -> tensor<8x16xf32>
  %1 = mp.aten "aten.amax.default"(%x) {args = {dim = [1], keepdim = true}} : (tensor<8x16xf32>) -> tensor<8x1xf32>
  %2 = mp.aten "aten.sub.Tensor"(%x, %1) : (tensor<8x16xf32>, tensor<8x1xf32>) -> tensor<8x16xf32>
  %3 = mp.aten "aten.maximum.default"(%2, %0) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  return %3 : tensor<8x16xf32>
}

// The number of rows may be known only at run time.
// CHECK-LABEL: func.func @dynamic_rows
// CHECK: mp.region matmul "matmul_relu" (%arg0, %arg1) : (tensor<?x32xbf16>, tensor<32x16xbf16>) -> tensor<?x16xbf16>
func.func @dynamic_rows(%x: tensor<?x32xbf16>, %w: tensor<32x16xbf16>) -> tensor<?x16xbf16> {
  %0 = mp.matmul %x, %w : (tensor<?x32xbf16>, tensor<32x16xbf16>) -> tensor<?x16xbf16>
  %1 = mp.aten "aten.relu.default"(%0) : (tensor<?x16xbf16>) -> tensor<?x16xbf16>
  return %1 : tensor<?x16xbf16>
}
