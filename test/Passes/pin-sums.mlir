// Sums of more terms than a half counts.
// RUN: mpopt %s --mp-pin=half=bf16 | FileCheck %s --check-prefixes=CHECK,BF16
// RUN: mpopt %s --mp-pin=half=f16 | FileCheck %s --check-prefixes=CHECK,F16

// The depth is the product of the sizes that are summed over, not their number.
// CHECK-LABEL: func.func @t5_depth
// BF16: aten.sum.dim_IntList{{.*}}dim = [0, 1]{{.*}}#mp.pin<fp32 result, "reduction-depth", "aten.sum of 8: 16384 terms add up; in bf16 a sum of equal terms stops growing at 256, and rounding 16384 times by 0.003906 can cost 64 times the sum">
// BF16: aten.mean.dim{{.*}}"reduction-depth", "aten.mean of 32x8: 512 terms
// F16: aten.sum.dim_IntList{{.*}}dim = [0, 1]{{.*}}"reduction-depth", "aten.sum of 8: 16384 terms add up; in f16 a sum of equal terms stops growing at 2048, and rounding 16384 times by 0.0004883 can cost 8 times the sum">
// F16-NOT: reduction-depth
// CHECK: return
func.func @t5_depth(%x: tensor<32x512x8xf32>) -> (tensor<8xf32>, tensor<32x8xf32>) {
  %0 = mp.aten "aten.sum.dim_IntList"(%x) {args = {dim = [0, 1]}} : (tensor<32x512x8xf32>) -> tensor<8xf32>
  %1 = mp.aten "aten.mean.dim"(%x) {args = {dim = [1]}} : (tensor<32x512x8xf32>) -> tensor<32x8xf32>
  return %0, %1 : tensor<8xf32>, tensor<32x8xf32>
}

// Exactly 256 terms are counted; so are few; the largest of many is no sum; f64.
// CHECK-LABEL: func.func @shallow
// CHECK-NOT: mp.pin
// CHECK: return
func.func @shallow(%x: tensor<4x256xf32>, %y: tensor<4x4096xf32>, %z: tensor<4x4096xf64>) {
  %0 = mp.aten "aten.sum.dim_IntList"(%x) {args = {dim = [1]}} : (tensor<4x256xf32>) -> tensor<4xf32>
  %1 = mp.aten "aten.amax.default"(%y) {args = {dim = [1]}} : (tensor<4x4096xf32>) -> tensor<4xf32>
  %2 = mp.aten "aten.sum.dim_IntList"(%z) {args = {dim = [1]}} : (tensor<4x4096xf64>) -> tensor<4xf64>
  return
}

// CHECK-LABEL: func.func @unknown_depth
// CHECK: #mp.pin<fp32 result, "reduction-depth", "aten.sum of 4: an unknown number of terms add up; in {{b?}}f16 a sum of equal terms stops growing at {{256|2048}}">
func.func @unknown_depth(%x: tensor<4x?xf32>) -> tensor<4xf32> {
  %0 = mp.aten "aten.sum.dim_IntList"(%x) {args = {dim = [1]}} : (tensor<4x?xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// Tokens may all be one; the framework's operator and what it is made of.
// CHECK-LABEL: func.func @embedding_gradient
// CHECK: aten.embedding_dense_backward.default{{.*}}#mp.pin<fp32 result, "embedding-gradient", "aten.embedding_dense_backward of 99x16: 4096 terms add up;
// CHECK: aten.index_put.default{{.*}}"embedding-gradient"
func.func @embedding_gradient(%g: tensor<8x512x16xf32>, %t: tensor<8x512xi64>) -> (tensor<99x16xf32>, tensor<99x16xf32>) {
  %0 = mp.aten "aten.embedding_dense_backward.default"(%g, %t) {args = {num_weights = 99, padding_idx = -1, scale_grad_by_freq = false}, mp.backward} : (tensor<8x512x16xf32>, tensor<8x512xi64>) -> tensor<99x16xf32>
  %1 = mp.aten "aten.full.default"() {args = {size = [99, 16], fill_value = 0, dtype = f32}, mp.backward} : () -> tensor<99x16xf32>
  %2 = mp.aten "aten.index_put.default"(%1, %t, %g) {args = {indices = ["%1"], values = "%2", accumulate = true}, mp.backward} : (tensor<99x16xf32>, tensor<8x512xi64>, tensor<8x512x16xf32>) -> tensor<99x16xf32>
  return %0, %2 : tensor<99x16xf32>, tensor<99x16xf32>
}

// The slots of a router are computed, and do not repeat; nothing is added where
// rows are put; in forward; few rows.
// CHECK-LABEL: func.func @no_embedding_gradient
// CHECK-NOT: mp.pin
// CHECK: return
func.func @no_embedding_gradient(%g: tensor<4096x16xf32>, %t: tensor<4096xi64>, %z: tensor<4096x16xf32>, %few: tensor<64xi64>, %rows: tensor<64x16xf32>) {
  %0 = mp.aten "aten.add.Tensor"(%t) {args = {other = 1}, mp.backward} : (tensor<4096xi64>) -> tensor<4096xi64>
  %1 = mp.aten "aten.index_put.default"(%z, %0, %g) {args = {indices = ["%1"], values = "%2", accumulate = true}, mp.backward} : (tensor<4096x16xf32>, tensor<4096xi64>, tensor<4096x16xf32>) -> tensor<4096x16xf32>
  %2 = mp.aten "aten.index_put.default"(%z, %t, %g) {args = {indices = ["%1"], values = "%2"}, mp.backward} : (tensor<4096x16xf32>, tensor<4096xi64>, tensor<4096x16xf32>) -> tensor<4096x16xf32>
  %3 = mp.aten "aten.index_put.default"(%z, %t, %g) {args = {indices = ["%1"], values = "%2", accumulate = true}} : (tensor<4096x16xf32>, tensor<4096xi64>, tensor<4096x16xf32>) -> tensor<4096x16xf32>
  %4 = mp.aten "aten.embedding_dense_backward.default"(%rows, %few) {args = {num_weights = 99, padding_idx = -1, scale_grad_by_freq = false}, mp.backward} : (tensor<64x16xf32>, tensor<64xi64>) -> tensor<99x16xf32>
  return
}
