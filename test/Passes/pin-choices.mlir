// Values that decide an index or a truth value.
// RUN: mpopt %s --mp-raise --mp-pin | FileCheck %s

// The router hands on its f32 sum; its operands stay half: an f32 product would
// leave the tensor cores. The stream in front is pinned to where it joins another.
// CHECK-LABEL: func.func @b25_router
// CHECK: aten.add.Tensor"(%arg0, %arg1){{.*}}#mp.pin<fp32 result, "discrete-choice", "aten.add of 32x64: decides aten.topk; bf16 steps by 0.007812 at 1">
// CHECK: aten.mul.Tensor{{.*}}"discrete-choice"
// CHECK: mp.cast
// CHECK-NOT: mp.pin
// CHECK: mp.matmul{{.*}}mp.pin = [#mp.pin<fp32 result, "router", "aten.mm of 32x4: sums of 64 products decide aten.topk; they are f32 already, operands may be half, and bf16 steps by 0.0625 at 10">]
// CHECK: mp.softmax{{.*}}#mp.pin<fp32 result, "discrete-choice"
// CHECK: aten.topk.default{{.*}}#mp.pin<fp32 operands, "discrete-choice", "aten.topk of 32x4: decides by order;
func.func @b25_router(%r: tensor<32x64xf32>, %a: tensor<32x64xf32>, %s: tensor<32x1xf32>, %w: tensor<4x64xf32> {mp.role = "parameter"}) -> (tensor<32x2xf32>, tensor<32x2xi64>) {
  %0 = mp.aten "aten.add.Tensor"(%r, %a) : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x64xf32>
  %1 = mp.aten "aten.mul.Tensor"(%0, %s) : (tensor<32x64xf32>, tensor<32x1xf32>) -> tensor<32x64xf32>
  %2 = mp.cast %1 origin(autocast) : tensor<32x64xf32> to tensor<32x64xbf16>
  %3 = mp.cast %w origin(autocast) : tensor<4x64xf32> to tensor<4x64xbf16>
  %4 = mp.aten "aten.t.default"(%3) : (tensor<4x64xbf16>) -> tensor<64x4xbf16>
  %5 = mp.aten "aten.mm.default"(%2, %4) : (tensor<32x64xbf16>, tensor<64x4xbf16>) -> tensor<32x4xbf16>
  %6 = mp.cast %5 origin(user) : tensor<32x4xbf16> to tensor<32x4xf32>
  %7 = mp.aten "aten._softmax.default"(%6) {args = {dim = -1, half_to_float = false}} : (tensor<32x4xf32>) -> tensor<32x4xf32>
  %8:2 = mp.aten "aten.topk.default"(%7) {args = {k = 2}} : (tensor<32x4xf32>) -> (tensor<32x2xf32>, tensor<32x2xi64>)
  return %8#0, %8#1 : tensor<32x2xf32>, tensor<32x2xi64>
}

// A sigmoid router with a bias, of the model's own f32 region: widened halves. The
// bias is no second stream.
// CHECK-LABEL: func.func @b25_sigmoid_router
// CHECK: mp.matmul{{.*}}#mp.pin<fp32 result, "router"
// CHECK: aten.sigmoid.default{{.*}}"discrete-choice"
// CHECK: aten.add.Tensor{{.*}}"discrete-choice"
func.func @b25_sigmoid_router(%x: tensor<32x64xbf16>, %w: tensor<64x4xbf16>, %b: tensor<4xf32> {mp.role = "parameter"}) -> tensor<32x2xi64> {
  %0 = mp.cast %x origin(user) : tensor<32x64xbf16> to tensor<32x64xf32>
  %1 = mp.cast %w origin(user) : tensor<64x4xbf16> to tensor<64x4xf32>
  %2 = mp.aten "aten.mm.default"(%0, %1) : (tensor<32x64xf32>, tensor<64x4xf32>) -> tensor<32x4xf32>
  %3 = mp.aten "aten.sigmoid.default"(%2) : (tensor<32x4xf32>) -> tensor<32x4xf32>
  %4 = mp.aten "aten.add.Tensor"(%3, %b) : (tensor<32x4xf32>, tensor<4xf32>) -> tensor<32x4xf32>
  %5:2 = mp.aten "aten.topk.default"(%4) {args = {k = 2}} : (tensor<32x4xf32>) -> (tensor<32x2xf32>, tensor<32x2xi64>)
  return %5#1 : tensor<32x2xi64>
}

// Ties are counted: what is compared must not be rounded before.
// CHECK-LABEL: func.func @ties
// CHECK: aten.mul.Tensor{{.*}}#mp.pin<fp32 result, "discrete-choice", "aten.mul of 4x8: decides aten.eq;
// CHECK: aten.amax.default{{.*}}"discrete-choice"
// CHECK: aten.eq.Tensor{{.*}}#mp.pin<fp32 operands, "discrete-choice"
func.func @ties(%x: tensor<4x8xf32>) -> tensor<4x8xi1> {
  %0 = mp.aten "aten.mul.Tensor"(%x) {args = {other = 0.3}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = mp.aten "aten.amax.default"(%0) {args = {dim = [1], keepdim = true}} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %2 = mp.aten "aten.eq.Tensor"(%0, %1) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xi1>
  return %2 : tensor<4x8xi1>
}

// A stream that joins two others in front of the choice is pinned there, and what
// comes before is not; nor is the projection that was half already.
// CHECK-LABEL: func.func @only_this_region
// CHECK: aten.add.Tensor"(%arg0, %arg1)
// CHECK-NOT: mp.pin
// CHECK: mp.matmul
// CHECK-NOT: mp.pin
// CHECK: mp.cast
// CHECK-NOT: mp.pin
// CHECK: aten.add.Tensor{{.*}}#mp.pin<fp32 result, "discrete-choice"
// CHECK: aten.argmax.default
func.func @only_this_region(%r: tensor<8x8xf32>, %a: tensor<8x8xf32>, %h: tensor<8x8xbf16>) -> tensor<8xi64> {
  %0 = mp.aten "aten.add.Tensor"(%r, %a) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = mp.aten "aten.mm.default"(%h, %h) : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  %2 = mp.cast %1 origin(promotion) : tensor<8x8xbf16> to tensor<8x8xf32>
  %3 = mp.aten "aten.add.Tensor"(%0, %2) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %4 = mp.aten "aten.argmax.default"(%3) {args = {dim = 1}} : (tensor<8x8xf32>) -> tensor<8xi64>
  return %4 : tensor<8xi64>
}

// Comparisons with a literal: a rounding keeps the order. Of random numbers, of
// integers, of masks; pooling, in which any of equal elements will do.
// CHECK-LABEL: func.func @no_choice
// CHECK-NOT: mp.pin
// CHECK: return
func.func @no_choice(%x: tensor<1x1x8x8xf32>, %i: tensor<4xi64>) {
  %0 = mp.aten "aten.relu.default"(%x) : (tensor<1x1x8x8xf32>) -> tensor<1x1x8x8xf32>
  %1 = mp.aten "aten.le.Scalar"(%0) {args = {other = 0}} : (tensor<1x1x8x8xf32>) -> tensor<1x1x8x8xi1>
  %2 = mp.aten "aten.rand_like.default"(%x) : (tensor<1x1x8x8xf32>) -> tensor<1x1x8x8xf32>
  %3 = mp.aten "aten.gt.Tensor"(%2, %0) : (tensor<1x1x8x8xf32>, tensor<1x1x8x8xf32>) -> tensor<1x1x8x8xi1>
  %4 = mp.aten "aten.eq.Tensor"(%i, %i) : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi1>
  %5:2 = mp.aten "aten.max_pool2d_with_indices.default"(%0) {args = {kernel_size = [2, 2]}} : (tensor<1x1x8x8xf32>) -> (tensor<1x1x4x4xf32>, tensor<1x1x4x4xi64>)
  return
}
