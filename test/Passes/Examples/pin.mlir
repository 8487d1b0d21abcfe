// The example that the reference of mp-pin shows.
// RUN: mpopt %s --mp-pin | FileCheck %s

// CHECK-LABEL: func.func @rms_norm_by_hand
func.func @rms_norm_by_hand(%x: tensor<4x768xf32>) -> tensor<4x768xf32> {
  // CHECK: mp.aten "aten.square.default"{{.*}}#mp.pin<fp32 result, "root-mean-square", "aten.square of 4x768: 768 squared elements add up; bf16 rounds each by up to 0.3906 %">
  %0 = mp.aten "aten.square.default"(%x) : (tensor<4x768xf32>) -> tensor<4x768xf32>
  // CHECK: mp.aten "aten.mean.dim"{{.*}}#mp.pin<fp32 result, "reduction-depth", "aten.mean of 4x1: 768 terms add up; in bf16 a sum of equal terms stops growing at 256
  %1 = mp.aten "aten.mean.dim"(%0) {args = {dim = [1], keepdim = true}} : (tensor<4x768xf32>) -> tensor<4x1xf32>
  // CHECK: mp.aten "aten.add.Tensor"{{.*}}#mp.pin<fp32 result, "small-epsilon", "aten.add of 4x1: epsilon 1e-05 vanishes when it is added to 1 in bf16, whose step there is 0.007812">
  %2 = mp.aten "aten.add.Tensor"(%1) {args = {other = 1.0e-5}} : (tensor<4x1xf32>) -> tensor<4x1xf32>
  // CHECK: mp.aten "aten.rsqrt.default"{{.*}}#mp.pin<fp32 both, "inverse"
  %3 = mp.aten "aten.rsqrt.default"(%2) : (tensor<4x1xf32>) -> tensor<4x1xf32>
  // What the statistics scale may be stored in a half.
  // CHECK: mp.aten "aten.mul.Tensor"
  // CHECK-NOT: mp.pin
  %4 = mp.aten "aten.mul.Tensor"(%x, %3) : (tensor<4x768xf32>, tensor<4x1xf32>) -> tensor<4x768xf32>
  return %4 : tensor<4x768xf32>
}
