// Products that leave the range of f16; bf16 needs none of these pins.
// RUN: mpopt %s --mp-raise --mp-pin=half=f16 | FileCheck %s
// RUN: mpopt %s --mp-raise --mp-pin=half=bf16 | FileCheck %s --check-prefix=BF16
// BF16-NOT: residual-stream
// BF16-NOT: attention-scores

// One element of 66246 is inf in f16, and the norm makes NaN of its row.
// CHECK-LABEL: func.func @b20_feed_forward
// CHECK: mp.matmul{{.*}}#mp.pin<fp32 result, "residual-stream", "aten.mm of 8x16: 64 products add up and join the residual stream; beyond 65504 the norm behind makes NaN of the row">
// CHECK: aten.mul.Tensor
// CHECK-NOT: mp.pin
// CHECK: aten.add.Tensor{{.*}}#mp.pin<fp32 result, "residual-stream"
func.func @b20_feed_forward(%r: tensor<8x16xf16>, %h: tensor<8x64xf16>, %w: tensor<64x16xf16>, %keep: tensor<8x16xf16>, %n: tensor<16xf16>) -> tensor<8x16xf16> {
  %0 = mp.aten "aten.mm.default"(%h, %w) : (tensor<8x64xf16>, tensor<64x16xf16>) -> tensor<8x16xf16>
  %1 = mp.aten "aten.mul.Tensor"(%0, %keep) : (tensor<8x16xf16>, tensor<8x16xf16>) -> tensor<8x16xf16>
  %2 = mp.aten "aten.add.Tensor"(%r, %1) : (tensor<8x16xf16>, tensor<8x16xf16>) -> tensor<8x16xf16>
  %3:3 = mp.aten "aten.native_layer_norm.default"(%2, %n, %n) {args = {eps = 1.0e-5, normalized_shape = [16]}} : (tensor<8x16xf16>, tensor<16xf16>, tensor<16xf16>) -> (tensor<8x16xf16>, tensor<8x1xf32>, tensor<8x1xf32>)
  return %3#0 : tensor<8x16xf16>
}

// A stream that no norm reads; a product plus a bias; a stream without a product.
// CHECK-LABEL: func.func @no_residual_stream
// CHECK-NOT: residual-stream
// CHECK: return
func.func @no_residual_stream(%r: tensor<8x16xf16>, %h: tensor<8x64xf16>, %w: tensor<64x16xf16>, %b: tensor<16xf16> {mp.role = "parameter"}) -> (tensor<8x16xf16>, tensor<8x1xf16>, tensor<8x1xf16>) {
  %0 = mp.aten "aten.mm.default"(%h, %w) : (tensor<8x64xf16>, tensor<64x16xf16>) -> tensor<8x16xf16>
  %1 = mp.aten "aten.add.Tensor"(%r, %0) : (tensor<8x16xf16>, tensor<8x16xf16>) -> tensor<8x16xf16>
  %2 = mp.aten "aten.relu.default"(%1) : (tensor<8x16xf16>) -> tensor<8x16xf16>
  %3 = mp.aten "aten.add.Tensor"(%0, %b) : (tensor<8x16xf16>, tensor<16xf16>) -> tensor<8x16xf16>
  %4 = mp.aten "aten.mean.dim"(%3) {args = {dim = [1], keepdim = true}} : (tensor<8x16xf16>) -> tensor<8x1xf16>
  %5 = mp.aten "aten.add.Tensor"(%r, %2) : (tensor<8x16xf16>, tensor<8x16xf16>) -> tensor<8x16xf16>
  %6 = mp.aten "aten.mean.dim"(%5) {args = {dim = [1], keepdim = true}} : (tensor<8x16xf16>) -> tensor<8x1xf16>
  return %2, %4, %6 : tensor<8x16xf16>, tensor<8x1xf16>, tensor<8x1xf16>
}

// The raw product overflows before the scale; that it is scaled first does not
// help enough.
// CHECK-LABEL: func.func @b21_eager_attention
// CHECK: aten.div.Tensor"(%arg0)
// CHECK: mp.matmul{{.*}}#mp.pin<fp32 result, "attention-scores", "aten.bmm of 2x8x8: 64 products of queries and keys add up; beyond 65504 a score is infinite before it is scaled">
// CHECK: aten.masked_fill.Scalar
// CHECK: mp.softmax{{.*}}#mp.pin<fp32 operands, "softmax"
// CHECK: mp.matmul
// CHECK-NOT: mp.pin
// CHECK: return
// BF16-LABEL: func.func @b21_eager_attention
// BF16: mp.softmax{{.*}}#mp.pin<fp32 operands, "softmax"
func.func @b21_eager_attention(%q: tensor<2x8x64xf16>, %k: tensor<2x64x8xf16>, %v: tensor<2x8x64xf16>, %m: tensor<8x8xi1>) -> tensor<2x8x64xf16> {
  %0 = mp.aten "aten.div.Tensor"(%q) {args = {other = 8.0}} : (tensor<2x8x64xf16>) -> tensor<2x8x64xf16>
  %1 = mp.aten "aten.bmm.default"(%0, %k) : (tensor<2x8x64xf16>, tensor<2x64x8xf16>) -> tensor<2x8x8xf16>
  %2 = mp.aten "aten.mul.Tensor"(%1) {args = {other = 0.5}} : (tensor<2x8x8xf16>) -> tensor<2x8x8xf16>
  %3 = mp.aten "aten.masked_fill.Scalar"(%2, %m) {args = {value = -1.0e4}} : (tensor<2x8x8xf16>, tensor<8x8xi1>) -> tensor<2x8x8xf16>
  %4 = mp.cast %3 origin(autocast) : tensor<2x8x8xf16> to tensor<2x8x8xf32>
  %5 = mp.aten "aten._softmax.default"(%4) {args = {dim = -1, half_to_float = false}} : (tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  %6 = mp.cast %5 origin(autocast) : tensor<2x8x8xf32> to tensor<2x8x8xf16>
  %7 = mp.aten "aten.bmm.default"(%6, %v) : (tensor<2x8x8xf16>, tensor<2x8x64xf16>) -> tensor<2x8x64xf16>
  return %7 : tensor<2x8x64xf16>
}

// A softmax that was decomposed, as the fuser's graphs have it.
// CHECK-LABEL: func.func @b21_decomposed
// CHECK: mp.matmul{{.*}}"attention-scores"
func.func @b21_decomposed(%q: tensor<2x8x64xf16>, %k: tensor<2x64x8xf16>) -> tensor<2x8x8xf32> {
  %0 = mp.aten "aten.bmm.default"(%q, %k) : (tensor<2x8x64xf16>, tensor<2x64x8xf16>) -> tensor<2x8x8xf16>
  %1 = mp.cast %0 origin(autocast) : tensor<2x8x8xf16> to tensor<2x8x8xf32>
  %2 = mp.aten "aten.amax.default"(%1) {args = {dim = [-1], keepdim = true}} : (tensor<2x8x8xf32>) -> tensor<2x8x1xf32>
  %3 = mp.aten "aten.sub.Tensor"(%1, %2) : (tensor<2x8x8xf32>, tensor<2x8x1xf32>) -> tensor<2x8x8xf32>
  %4 = mp.aten "aten.exp.default"(%3) : (tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  return %4 : tensor<2x8x8xf32>
}

// Logits of a classifier: one factor is a weight.
// CHECK-LABEL: func.func @no_scores
// CHECK-NOT: attention-scores
// CHECK: return
func.func @no_scores(%x: tensor<8x64xf16>, %w: tensor<64x8xf16> {mp.role = "parameter"}) -> tensor<8x8xf16> {
  %0 = mp.aten "aten.mm.default"(%x, %w) : (tensor<8x64xf16>, tensor<64x8xf16>) -> tensor<8x8xf16>
  %1 = mp.aten "aten._softmax.default"(%0) {args = {dim = -1, half_to_float = false}} : (tensor<8x8xf16>) -> tensor<8x8xf16>
  return %1 : tensor<8x8xf16>
}
