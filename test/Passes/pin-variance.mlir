// Variances and root mean squares by hand.
// RUN: mpopt %s --mp-pin | FileCheck %s
// RUN: mpopt %s --mp-pin=half=f16 | FileCheck %s --check-prefix=F16

// An outlier of 800 among 768 zeros: its square is infinite in f16, and the row
// would be the bias. No infinity is seen downstream.
// CHECK-LABEL: func.func @b24_layer_norm_by_hand
// F16-LABEL: func.func @b24_layer_norm_by_hand
// F16: aten.mean.dim{{.*}}#mp.pin<fp32 result, "variance", "aten.mean of 4x1: 768 squared deviations add up; beyond 255.9 a square is infinite in f16">
// F16: aten.sub.Tensor
// F16-NOT: mp.pin
// F16: aten.pow.Tensor_Scalar{{.*}}#mp.pin<fp32 result, "variance", "aten.pow of 4x768: 768 squared deviations
// F16: aten.mean.dim{{.*}}#mp.pin<fp32 result, "variance"
// F16: aten.add.Tensor{{.*}}#mp.pin<fp32 result, "small-epsilon", "aten.add of 4x1: epsilon 1e-05 is below f16's smallest normal number, 6.104e-05">
// F16: aten.sqrt.default{{.*}}#mp.pin<fp32 result, "root-mean-square"
// F16: aten.div.Tensor
// F16-NOT: mp.pin
// F16: return
func.func @b24_layer_norm_by_hand(%x: tensor<4x768xf16>) -> tensor<4x768xf16> {
  %0 = mp.aten "aten.mean.dim"(%x) {args = {dim = [-1], keepdim = true}} : (tensor<4x768xf16>) -> tensor<4x1xf16>
  %1 = mp.aten "aten.sub.Tensor"(%x, %0) : (tensor<4x768xf16>, tensor<4x1xf16>) -> tensor<4x768xf16>
  %2 = mp.aten "aten.pow.Tensor_Scalar"(%1) {args = {exponent = 2}} : (tensor<4x768xf16>) -> tensor<4x768xf16>
  %3 = mp.aten "aten.mean.dim"(%2) {args = {dim = [-1], keepdim = true}} : (tensor<4x768xf16>) -> tensor<4x1xf16>
  %4 = mp.aten "aten.add.Tensor"(%3) {args = {other = 1.0e-5}} : (tensor<4x1xf16>) -> tensor<4x1xf16>
  %5 = mp.aten "aten.sqrt.default"(%4) : (tensor<4x1xf16>) -> tensor<4x1xf16>
  %6 = mp.aten "aten.div.Tensor"(%1, %5) : (tensor<4x768xf16>, tensor<4x1xf16>) -> tensor<4x768xf16>
  return %6 : tensor<4x768xf16>
}

// Seen through conversions and views, as a product, and summed.
// CHECK-LABEL: func.func @variance_in_other_words
// CHECK: aten.mean.dim{{.*}}"variance", "aten.mean of 8x1: 16 squared deviations add up; bf16 rounds each by up to 0.3906 %"
// CHECK: aten.mul.Tensor{{.*}}"variance"
// CHECK: aten.sum.dim_IntList{{.*}}"variance"
func.func @variance_in_other_words(%x: tensor<8x16xbf16>) -> tensor<8xf32> {
  %0 = mp.cast %x origin(user) : tensor<8x16xbf16> to tensor<8x16xf32>
  %1 = mp.aten "aten.mean.dim"(%0) {args = {dim = [1], keepdim = true}} : (tensor<8x16xf32>) -> tensor<8x1xf32>
  %2 = mp.aten "aten.expand.default"(%1) {args = {size = [8, 16]}} : (tensor<8x1xf32>) -> tensor<8x16xf32>
  %3 = mp.aten "aten.sub.Tensor"(%2, %0) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %4 = mp.aten "aten.mul.Tensor"(%3, %3) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %5 = mp.aten "aten.sum.dim_IntList"(%4) {args = {dim = [1]}} : (tensor<8x16xf32>) -> tensor<8xf32>
  return %5 : tensor<8xf32>
}

// CHECK-LABEL: func.func @difference_of_means
// CHECK: aten.square.default{{.*}}"variance"
// CHECK: aten.sub.Tensor{{.*}}#mp.pin<fp32 result, "variance", "aten.sub of 8: a variance as the difference of two means of 16 elements: where they agree in 8 bits, nothing of it is left in bf16">
// F16-LABEL: func.func @difference_of_means
// F16: where they agree in 11 bits, nothing of it is left in f16
func.func @difference_of_means(%x: tensor<8x16xf32>) -> tensor<8xf32> {
  %0 = mp.aten "aten.square.default"(%x) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = mp.aten "aten.mean.dim"(%0) {args = {dim = [1]}} : (tensor<8x16xf32>) -> tensor<8xf32>
  %2 = mp.aten "aten.mean.dim"(%x) {args = {dim = [1]}} : (tensor<8x16xf32>) -> tensor<8xf32>
  %3 = mp.aten "aten.square.default"(%2) : (tensor<8xf32>) -> tensor<8xf32>
  %4 = mp.aten "aten.sub.Tensor"(%1, %3) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %4 : tensor<8xf32>
}

// Hand-written RMSNorm: forward, and what autograd leaves of it.
// CHECK-LABEL: func.func @rms_norm_and_its_gradient
// CHECK: aten.pow.Tensor_Scalar{{.*}}exponent = 2{{.*}}"root-mean-square", "aten.pow of 8x16: 16 squared elements
// CHECK: aten.mean.dim{{.*}}"root-mean-square"
// CHECK: aten.add.Scalar{{.*}}"root-mean-square"
// CHECK: aten.rsqrt.default{{.*}}"root-mean-square"
// CHECK: aten.mul.Tensor"(%arg0,
// CHECK-NOT: mp.pin
// CHECK: aten.alias.default
// CHECK-NOT: mp.pin
// CHECK: aten.pow.Tensor_Scalar{{.*}}exponent = 3{{.*}}#mp.pin<fp32 result, "exponential"
// The gradient itself may go in a half (T12).
// CHECK-NOT: mp.pin
// CHECK: return
func.func @rms_norm_and_its_gradient(%x: tensor<8x16xf32>, %g: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %0 = mp.aten "aten.pow.Tensor_Scalar"(%x) {args = {exponent = 2}} : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = mp.aten "aten.mean.dim"(%0) {args = {dim = [1], keepdim = true}} : (tensor<8x16xf32>) -> tensor<8x1xf32>
  %2 = mp.aten "aten.add.Scalar"(%1) {args = {other = 1.0e-6}} : (tensor<8x1xf32>) -> tensor<8x1xf32>
  %3 = mp.aten "aten.rsqrt.default"(%2) : (tensor<8x1xf32>) -> tensor<8x1xf32>
  %4 = mp.aten "aten.mul.Tensor"(%x, %3) : (tensor<8x16xf32>, tensor<8x1xf32>) -> tensor<8x16xf32>
  %5 = mp.aten "aten.alias.default"(%3) {mp.backward} : (tensor<8x1xf32>) -> tensor<8x1xf32>
  %6 = mp.aten "aten.mul.Tensor"(%g, %x) {mp.backward} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %7 = mp.aten "aten.sum.dim_IntList"(%6) {args = {dim = [1], keepdim = true}, mp.backward} : (tensor<8x16xf32>) -> tensor<8x1xf32>
  %8 = mp.aten "aten.pow.Tensor_Scalar"(%5) {args = {exponent = 3}, mp.backward} : (tensor<8x1xf32>) -> tensor<8x1xf32>
  %9 = mp.aten "aten.mul.Tensor"(%7, %8) {mp.backward} : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x1xf32>
  %10 = mp.aten "aten.mul.Tensor"(%g, %5) {mp.backward} : (tensor<8x16xf32>, tensor<8x1xf32>) -> tensor<8x16xf32>
  %11 = mp.aten "aten.sub.Tensor"(%10, %9) {mp.backward} : (tensor<8x16xf32>, tensor<8x1xf32>) -> tensor<8x16xf32>
  return %4, %11 : tensor<8x16xf32>, tensor<8x16xf32>
}

// A mean of squares without a root, the mean of another tensor, a mean of cubes,
// a product of two tensors.
// CHECK-LABEL: func.func @no_variance
// CHECK-NOT: "variance"
// CHECK-NOT: "root-mean-square"
// CHECK: return
func.func @no_variance(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>) -> (tensor<8xf32>, tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0 = mp.aten "aten.square.default"(%x) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = mp.aten "aten.mean.dim"(%0) {args = {dim = [1]}} : (tensor<8x16xf32>) -> tensor<8xf32>
  %2 = mp.aten "aten.mean.dim"(%y) {args = {dim = [1], keepdim = true}} : (tensor<8x16xf32>) -> tensor<8x1xf32>
  %3 = mp.aten "aten.sub.Tensor"(%x, %2) : (tensor<8x16xf32>, tensor<8x1xf32>) -> tensor<8x16xf32>
  %4 = mp.aten "aten.square.default"(%3) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %5 = mp.aten "aten.mean.dim"(%4) {args = {dim = [1]}} : (tensor<8x16xf32>) -> tensor<8xf32>
  %6 = mp.aten "aten.pow.Tensor_Scalar"(%x) {args = {exponent = 3}} : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %7 = mp.aten "aten.mean.dim"(%6) {args = {dim = [1]}} : (tensor<8x16xf32>) -> tensor<8xf32>
  %8 = mp.aten "aten.sqrt.default"(%7) : (tensor<8xf32>) -> tensor<8xf32>
  %9 = mp.aten "aten.mul.Tensor"(%x, %y) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %10 = mp.aten "aten.mean.dim"(%9) {args = {dim = [1]}} : (tensor<8x16xf32>) -> tensor<8xf32>
  %11 = mp.aten "aten.sqrt.default"(%10) : (tensor<8xf32>) -> tensor<8xf32>
  return %1, %4, %8, %11 : tensor<8xf32>, tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>
}
