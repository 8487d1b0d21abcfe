// Operators that are sensitive by themselves: PinOps.def.
// RUN: mpopt %s --mp-raise --mp-pin | FileCheck %s
// RUN: mpopt %s --mp-pin | FileCheck %s
// RUN: mpopt %s --mp-pin=half=f16 | FileCheck %s --check-prefix=F16

// The statistics, not the normalized tensor: it may be stored in a half.
// CHECK-LABEL: func.func @t13_norms
// CHECK: layer_norm{{.*}}mp.pin = [#mp.pin<fp32 result[1, 2], "norm-statistics", "aten.native_layer_norm of 4x1: mean and deviation scale every element of a row; bf16 steps by 0.007812 at 1">]
// CHECK: rms_norm{{.*}}mp.pin = [#mp.pin<fp32 result[1], "norm-statistics", "aten._fused_rms_norm of 4x1:
// F16-LABEL: func.func @t13_norms
// F16: f16 steps by 0.0009766 at 1
func.func @t13_norms(%x: tensor<4x8xbf16>, %w: tensor<8xbf16>) -> (tensor<4x8xbf16>, tensor<4x8xbf16>) {
  %0:3 = mp.aten "aten.native_layer_norm.default"(%x, %w, %w) {args = {eps = 1.0e-5, normalized_shape = [8]}} : (tensor<4x8xbf16>, tensor<8xbf16>, tensor<8xbf16>) -> (tensor<4x8xbf16>, tensor<4x1xf32>, tensor<4x1xf32>)
  %1:2 = mp.aten "aten._fused_rms_norm.default"(%x, %w) {args = {eps = 1.0e-5, normalized_shape = [8]}} : (tensor<4x8xbf16>, tensor<8xbf16>) -> (tensor<4x8xbf16>, tensor<4x1xf32>)
  return %0#0, %1#0 : tensor<4x8xbf16>, tensor<4x8xbf16>
}

// Parameters and running statistics stay what they are, the image does not.
// CHECK-LABEL: func.func @b30_batch_norm
// CHECK: #mp.pin<fp32 operands[1, 2, 3, 4], "norm-parameters", "aten._native_batch_norm_legit_no_training of 3: running statistics beyond 65504
// CHECK: #mp.pin<fp32 operands[1, 2], "norm-parameters"
func.func @b30_batch_norm(%x: tensor<2x3x4x4xf16>, %w: tensor<3xf32>) -> (tensor<2x3x4x4xf16>, tensor<2x3x4x4xf16>) {
  %0:3 = mp.aten "aten._native_batch_norm_legit_no_training.default"(%x, %w, %w, %w, %w) {args = {momentum = 0.1, eps = 1.0e-5}} : (tensor<2x3x4x4xf16>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4x4xf16>, tensor<0xf32>, tensor<0xf32>)
  // Without weight and bias.
  %1:3 = mp.aten "aten._native_batch_norm_legit_no_training.default"(%x, %w, %w) {args = {weight = unit, bias = unit, running_mean = "%1", running_var = "%2", momentum = 0.1, eps = 1.0e-5}} : (tensor<2x3x4x4xf16>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4x4xf16>, tensor<0xf32>, tensor<0xf32>)
  return %0#0, %1#0 : tensor<2x3x4x4xf16>, tensor<2x3x4x4xf16>
}

// Probabilities may be stored in a half, scores are not rounded once more.
// CHECK-LABEL: func.func @softmax
// CHECK: softmax{{.*}}mp.pin = [#mp.pin<fp32 operands, "softmax", "aten._softmax of 4x8: exp turns an absolute error of a score into a relative one of its probability; bf16 steps by 0.0625 at 10">]
func.func @softmax(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = mp.aten "aten._softmax.default"(%x) {args = {dim = -1, half_to_float = false}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// Also in bf16, without autocast: the loss would sit on a grid.
// CHECK-LABEL: func.func @b27_cross_entropy
// CHECK: log_softmax{{.*}}#mp.pin<fp32 both, "log-probability"
// CHECK: nll_loss{{.*}}#mp.pin<fp32 both, "loss", "{{.*}} a loss is one number that moves by less than a half resolves; {{.*}}bf16 steps by 0.0625 at 10">
func.func @b27_cross_entropy(%x: tensor<64x512xbf16>, %t: tensor<64xi64>) -> tensor<bf16> {
  %0 = mp.aten "aten._log_softmax.default"(%x) {args = {dim = 1, half_to_float = false}} : (tensor<64x512xbf16>) -> tensor<64x512xbf16>
  %1:2 = mp.aten "aten.nll_loss_forward.default"(%0, %t) {args = {weight = unit, reduction = 1, ignore_index = -100}} : (tensor<64x512xbf16>, tensor<64xi64>) -> (tensor<bf16>, tensor<bf16>)
  return %1#0 : tensor<bf16>
}

// CHECK-LABEL: func.func @b28_autocast_list
// CHECK: aten.exp.default{{.*}}#mp.pin<fp32 both, "exponential"
// CHECK: aten.cumsum.default{{.*}}#mp.pin<fp32 both, "running-sum", "aten.cumsum of 4x16: a running sum stops growing where an element is below half the step of the sum; bf16 steps by 2 at 256">
// CHECK: aten.cumprod.default{{.*}}#mp.pin<fp32 both, "product"
// CHECK: aten.prod.dim_int{{.*}}#mp.pin<fp32 both, "product", "aten.prod of 4: {{.*}}; 16 elements each,
// CHECK: aten.pow.Tensor_Tensor{{.*}}#mp.pin<fp32 result, "exponential"
// CHECK: aten.logsumexp.default{{.*}}#mp.pin<fp32 both, "log-probability"
// CHECK: aten.linalg_vector_norm.default{{.*}}#mp.pin<fp32 result, "distance"
// CHECK: aten.log.default{{.*}}#mp.pin<fp32 both, "logarithm"
// CHECK: aten.reciprocal.default{{.*}}#mp.pin<fp32 result, "inverse"
func.func @b28_autocast_list(%x: tensor<4x16xbf16>) {
  %0 = mp.aten "aten.exp.default"(%x) : (tensor<4x16xbf16>) -> tensor<4x16xbf16>
  %1 = mp.aten "aten.cumsum.default"(%x) {args = {dim = -1}} : (tensor<4x16xbf16>) -> tensor<4x16xbf16>
  %2 = mp.aten "aten.cumprod.default"(%x) {args = {dim = -1}} : (tensor<4x16xbf16>) -> tensor<4x16xbf16>
  %3 = mp.aten "aten.prod.dim_int"(%x) {args = {dim = -1}} : (tensor<4x16xbf16>) -> tensor<4xbf16>
  %4 = mp.aten "aten.pow.Tensor_Tensor"(%x, %x) : (tensor<4x16xbf16>, tensor<4x16xbf16>) -> tensor<4x16xbf16>
  %5 = mp.aten "aten.logsumexp.default"(%x) {args = {dim = [-1]}} : (tensor<4x16xbf16>) -> tensor<4xbf16>
  %6 = mp.aten "aten.linalg_vector_norm.default"(%x) : (tensor<4x16xbf16>) -> tensor<bf16>
  %7 = mp.aten "aten.log.default"(%x) : (tensor<4x16xbf16>) -> tensor<4x16xbf16>
  %8 = mp.aten "aten.reciprocal.default"(%x) : (tensor<4x16xbf16>) -> tensor<4x16xbf16>
  return
}

// CHECK-LABEL: func.func @attention
// CHECK: mp.pin = [#mp.pin<fp32 result[1], "attention-logsumexp"
func.func @attention(%q: tensor<1x2x8x16xbf16>) -> tensor<1x2x8x16xbf16> {
  %0:2 = mp.aten "aten._scaled_dot_product_flash_attention_for_cpu.default"(%q, %q, %q) : (tensor<1x2x8x16xbf16>, tensor<1x2x8x16xbf16>, tensor<1x2x8x16xbf16>) -> (tensor<1x2x8x16xbf16>, tensor<1x2x8xf32>)
  return %0#0 : tensor<1x2x8x16xbf16>
}

// What the user asks for wins; integers and f64 have nothing to lose; a power of
// one, as autograd leaves it, is no power; matrix products and what the framework
// does not name are left alone.
// CHECK-LABEL: func.func @b28_nothing
// CHECK-NOT: mp.pin
// CHECK: return
func.func @b28_nothing(%x: tensor<4x16xbf16>, %i: tensor<4xi64>, %d: tensor<4xf64>, %w: tensor<16x4xbf16>) {
  %0 = mp.aten "aten.cumsum.default"(%x) {args = {dim = -1, dtype = bf16}} : (tensor<4x16xbf16>) -> tensor<4x16xbf16>
  %1 = mp.aten "aten.cumsum.default"(%i) {args = {dim = 0}} : (tensor<4xi64>) -> tensor<4xi64>
  %2 = mp.aten "aten.exp.default"(%d) : (tensor<4xf64>) -> tensor<4xf64>
  %3 = mp.aten "aten.pow.Tensor_Scalar"(%x) {args = {exponent = 1.0}} : (tensor<4x16xbf16>) -> tensor<4x16xbf16>
  %4 = mp.aten "aten.mm.default"(%x, %w) : (tensor<4x16xbf16>, tensor<16x4xbf16>) -> tensor<4x4xbf16>
  %5 = mp.aten "mylib.exp.default"(%x) : (tensor<4x16xbf16>) -> tensor<4x16xbf16>
  return
}
