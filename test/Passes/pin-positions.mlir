// Positions that reach a cosine or sine.
// RUN: mpopt %s --mp-raise --mp-pin=half=bf16 | FileCheck %s
// RUN: mpopt %s --mp-pin=half=f16 | FileCheck %s --check-prefix=F16

// bf16 steps by 512 at 65536: neighbours would share one phase. The product is
// pinned with its operands: it is on autocast's list.
// CHECK-LABEL: func.func @b23_rotary_embedding
// CHECK: aten.arange.start{{.*}} -> tensor<512xi64>
// CHECK: mp.cast{{.*}}tensor<512xi64> to tensor<512xf32>
// CHECK: mp.matmul{{.*}}#mp.pin<fp32 both, "positions", "aten.mm of 512x8: positions up to 66047 reach aten.cos; bf16 steps by 512 at 66047">
// CHECK: aten.cat.default
// CHECK: aten.cos.default{{.*}}#mp.pin<fp32 operands, "positions"
// CHECK: aten.sin.default{{.*}}#mp.pin<fp32 operands, "positions"
// Only the results are narrowed.
// CHECK: mp.cast
// CHECK-NOT: mp.pin
// CHECK: return
// F16-LABEL: func.func @b23_rotary_embedding
// F16: positions up to 66047 reach aten.cos; f16 steps by 64 at 66047
func.func @b23_rotary_embedding(%f: tensor<1x8xf32>) -> (tensor<512x16xbf16>, tensor<512x16xbf16>) {
  %0 = mp.aten "aten.arange.start"() {args = {start = 65536, end = 66048, dtype = i64}} : () -> tensor<512xi64>
  %1 = mp.cast %0 origin(user) : tensor<512xi64> to tensor<512xf32>
  %2 = mp.aten "aten.view.default"(%1) {args = {size = [512, 1]}} : (tensor<512xf32>) -> tensor<512x1xf32>
  %3 = mp.aten "aten.mm.default"(%2, %f) : (tensor<512x1xf32>, tensor<1x8xf32>) -> tensor<512x8xf32>
  %4 = mp.aten "aten.cat.default"(%3, %3) {args = {tensors = ["%0", "%1"], dim = -1}} : (tensor<512x8xf32>, tensor<512x8xf32>) -> tensor<512x16xf32>
  %5 = mp.aten "aten.cos.default"(%4) : (tensor<512x16xf32>) -> tensor<512x16xf32>
  %6 = mp.aten "aten.sin.default"(%4) : (tensor<512x16xf32>) -> tensor<512x16xf32>
  %7 = mp.cast %5 origin(autocast) : tensor<512x16xf32> to tensor<512x16xbf16>
  %8 = mp.cast %6 origin(autocast) : tensor<512x16xf32> to tensor<512x16xbf16>
  return %7, %8 : tensor<512x16xbf16>, tensor<512x16xbf16>
}

// Given positions, of which nothing is known; frequencies that are computed.
// CHECK-LABEL: func.func @given_positions
// CHECK: aten.mul.Tensor"(%{{.*}}) {args = {other = -1.15{{.*}}"positions", "aten.mul of 8: integers that reach aten.cos; bf16 keeps them apart up to 256">
// CHECK: aten.exp.default{{.*}}"positions"
// CHECK: aten.mul.Tensor{{.*}}"positions"
// CHECK: aten.cos.default{{.*}}"positions"
func.func @given_positions(%p: tensor<4xi64>) -> tensor<4x8xf32> {
  %0 = mp.aten "prims.iota.default"() {args = {length = 8, start = 0, step = 1, dtype = i64}} : () -> tensor<8xi64>
  %1 = mp.cast %0 origin(promotion) : tensor<8xi64> to tensor<8xf32>
  %2 = mp.aten "aten.mul.Tensor"(%1) {args = {other = -1.1512925465}} : (tensor<8xf32>) -> tensor<8xf32>
  %3 = mp.aten "aten.exp.default"(%2) : (tensor<8xf32>) -> tensor<8xf32>
  %4 = mp.cast %p origin(user) : tensor<4xi64> to tensor<4xf32>
  %5 = mp.aten "aten.unsqueeze.default"(%4) {args = {dim = 1}} : (tensor<4xf32>) -> tensor<4x1xf32>
  %6 = mp.aten "aten.mul.Tensor"(%5, %3) : (tensor<4x1xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %7 = mp.aten "aten.cos.default"(%6) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %7 : tensor<4x8xf32>
}

// No position reaches an angle: tokens that look up, a mask, a bias by distance,
// a cosine of activations.
// CHECK-LABEL: func.func @no_positions
// CHECK-NOT: "positions"
// CHECK: return
func.func @no_positions(%x: tensor<4x8xf32>, %w: tensor<99x8xf32>, %t: tensor<4xi64>, %m: tensor<4x8xi1>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = mp.aten "aten.embedding.default"(%w, %t) : (tensor<99x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
  %1 = mp.aten "aten.cos.default"(%0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = mp.cast %m origin(user) : tensor<4x8xi1> to tensor<4x8xf32>
  %3 = mp.aten "aten.mul.Tensor"(%x, %2) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = mp.aten "aten.sin.default"(%3) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %5 = mp.aten "aten.arange.default"() {args = {end = 8, dtype = i64}} : () -> tensor<8xi64>
  %6 = mp.cast %5 origin(user) : tensor<8xi64> to tensor<8xf32>
  %7 = mp.aten "aten.add.Tensor"(%x, %6) : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return %1, %4, %7 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}
