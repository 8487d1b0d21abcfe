// Units that differ meet: an error where they do, and a note at each scaling.
// RUN: mpopt %s --split-input-file --mp-check-loss-scale -verify-diagnostics

// The legal step: scaled, unscaled, clipped by the norm, updated as Adam does.
func.func @legal(%w: tensor<8xf32> {mp.role = "parameter"}, %x: tensor<8xf32> {mp.role = "buffer"},
                 %m: tensor<8xf32>, %v: tensor<8xf32>, %scale: tensor<f32>, %count: tensor<i32>,
                 %found: tensor<f32>, %loss: tensor<f32> {mp.role = "buffer"}) -> (tensor<8xf32>, tensor<f32>) {
  %0 = mp.aten "aten.mul.Tensor"(%loss, %scale) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %g = mp.aten "aten.mul.Tensor"(%x, %0) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %finite = mp.aten "aten.isfinite.default"(%g) : (tensor<8xf32>) -> tensor<8xi1>
  %inverse = mp.aten "aten.reciprocal.default"(%scale) : (tensor<f32>) -> tensor<f32>
  %1 = mp.aten "aten.mul.Tensor"(%g, %inverse) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %n = mp.aten "aten.linalg_vector_norm.default"(%1) : (tensor<8xf32>) -> tensor<f32>
  %e = mp.aten "aten.add.Tensor"(%n) {args = {other = 1.0e-6}} : (tensor<f32>) -> tensor<f32>
  %r = mp.aten "aten.reciprocal.default"(%e) : (tensor<f32>) -> tensor<f32>
  %c = mp.aten "aten.clamp.default"(%r) {args = {max = 1.0, min}} : (tensor<f32>) -> tensor<f32>
  %2 = mp.aten "aten.mul.Tensor"(%1, %c) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %m1 = mp.aten "aten.lerp.Scalar"(%m, %2) {args = {weight = 0.1}} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %v1 = mp.aten "aten.addcmul.default"(%v, %2, %2) {args = {value = 0.001}} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %s = mp.aten "aten.sqrt.default"(%v1) : (tensor<8xf32>) -> tensor<8xf32>
  %d = mp.aten "aten.add.Scalar"(%s) {args = {other = 1.0e-8}} : (tensor<8xf32>) -> tensor<8xf32>
  %w1 = mp.aten "aten.addcdiv.default"(%w, %m1, %d) {args = {value = -0.001}} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %u:2 = mp.aten "aten._amp_update_scale.default"(%scale, %count, %found) {args = {growth_interval = 2000}}
      : (tensor<f32>, tensor<i32>, tensor<f32>) -> (tensor<f32>, tensor<i32>)
  return %w1, %u#0 : tensor<8xf32>, tensor<f32>
}

// -----

func.func @never_unscaled(%w: tensor<8xf32> {mp.role = "parameter"}, %x: tensor<8xf32> {mp.role = "buffer"},
                          %scale: tensor<f32> {mp.loss_scale = 1, mp.name = "scale"}) -> tensor<8xf32> {
  // expected-note @+1 {{scaled here}}
  %g = mp.aten "aten.mul.Tensor"(%x, %scale) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  // expected-error @+1 {{a value is still multiplied by the loss scale scale}}
  %1 = mp.aten "aten.add.Tensor"(%w, %g) {args = {alpha = -0.1}} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

func.func @unscaled_twice(%w: tensor<8xf32> {mp.role = "parameter"}, %x: tensor<8xf32> {mp.role = "buffer"},
                          %scale: tensor<f32> {mp.loss_scale = 1}) -> tensor<8xf32> {
  // expected-note @+1 {{scaled here}}
  %g = mp.aten "aten.mul.Tensor"(%x, %scale) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  // expected-note @+1 {{unscaled here}}
  %1 = mp.aten "aten.div.Tensor"(%g, %scale) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  // expected-note @+1 {{unscaled here}}
  %2 = mp.aten "aten.div.Tensor"(%1, %scale) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  // expected-error @+1 {{a value is unscaled more often than scaled, by the loss scale %arg2}}
  %3 = mp.aten "aten.addcmul.default"(%w, %2, %x) {args = {value = -0.1}} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %3 : tensor<8xf32>
}

// -----

// A library unscales with the scale of the next step.
func.func @unscaled_by_the_new_scale(%w: tensor<8xf32> {mp.role = "parameter"}, %x: tensor<8xf32> {mp.role = "buffer"},
                                     %scale: tensor<f32> {mp.loss_scale = 1}, %count: tensor<i32>, %found: tensor<f32>) -> tensor<8xf32> {
  // expected-note @+1 {{scaled here}}
  %g = mp.aten "aten.mul.Tensor"(%x, %scale) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %u:2 = mp.aten "aten._amp_update_scale.default"(%scale, %count, %found) {args = {growth_interval = 2000}}
      : (tensor<f32>, tensor<i32>, tensor<f32>) -> (tensor<f32>, tensor<i32>)
  // expected-note @+1 {{unscaled here}}
  %1 = mp.aten "aten.div.Tensor"(%g, %u#0) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  // expected-error @+1 {{a value is not unscaled by the loss scale that it was multiplied with: %arg2 and that of an operation}}
  %2 = mp.aten "aten.sub.Tensor"(%w, %1) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}

// -----

func.func @accumulated_across_scales(%x: tensor<8xf32> {mp.role = "buffer"}, %a: tensor<f32> {mp.loss_scale = 1},
                                     %b: tensor<f32> {mp.loss_scale = 1}) -> tensor<8xf32> {
  // expected-note @+1 {{scaled here}}
  %g = mp.aten "aten.mul.Tensor"(%x, %a) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  // expected-note @+1 {{scaled here}}
  %h = mp.aten "aten.mul.Tensor"(%x, %b) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  // expected-error @+1 {{values under two loss scales meet, %arg2 and %arg1}}
  %s = mp.aten "aten.add.Tensor"(%g, %h) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %s : tensor<8xf32>
}

// -----

// Adam of a scaled gradient: the constant beside the root of the square tells.
func.func @epsilon(%x: tensor<8xf32> {mp.role = "buffer"}, %v: tensor<8xf32>, %scale: tensor<f32> {mp.loss_scale = 1}) -> tensor<8xf32> {
  // expected-note @+1 {{scaled here}}
  %g = mp.aten "aten.mul.Tensor"(%x, %scale) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %1 = mp.aten "aten.addcmul.default"(%v, %g, %g) {args = {value = 0.001}} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %2 = mp.aten "aten.sqrt.default"(%1) : (tensor<8xf32>) -> tensor<8xf32>
  // expected-error @+1 {{a value is still multiplied by the loss scale %arg2 where it meets a constant}}
  %3 = mp.aten "aten.add.Scalar"(%2) {args = {other = 1.0e-8}} : (tensor<8xf32>) -> tensor<8xf32>
  return %3 : tensor<8xf32>
}

// -----

// Lion takes the sign, which no factor changes: nothing is wrong.
func.func @sign(%w: tensor<8xf32> {mp.role = "parameter"}, %x: tensor<8xf32> {mp.role = "buffer"}, %scale: tensor<f32> {mp.loss_scale = 1}) -> tensor<8xf32> {
  %g = mp.aten "aten.mul.Tensor"(%x, %scale) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %1 = mp.aten "aten.sign.default"(%g) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = mp.aten "aten.sub.Tensor"(%w, %1) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}

// -----

// PyTorch's fused update unscales by itself.
func.func @fused(%w: tensor<8xf32> {mp.role = "parameter"}, %x: tensor<8xf32> {mp.role = "buffer"}, %m: tensor<8xf32>, %scale: tensor<f32>) -> tensor<8xf32> {
  %g = mp.aten "aten.mul.Tensor"(%x, %scale) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %0:3 = mp.aten "aten._fused_sgd.default"(%w, %g, %m, %scale) {args = {self = ["%0"], grads = ["%1"], momentum_buffer_list = ["%2"], lr = 0.1, grad_scale = "%3"}}
      : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return %0#0 : tensor<8xf32>
}

// -----

// Unscaled before, and again by the update.
func.func @fused_twice(%w: tensor<8xf32> {mp.role = "parameter"}, %x: tensor<8xf32> {mp.role = "buffer"}, %m: tensor<8xf32>, %scale: tensor<f32>) -> tensor<8xf32> {
  // expected-note @+1 {{scaled here}}
  %g = mp.aten "aten.mul.Tensor"(%x, %scale) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  // expected-note @+1 {{unscaled here}}
  %u = mp.aten "aten.div.Tensor"(%g, %scale) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  // expected-error @+1 {{a value is unscaled more often than scaled, by the loss scale %arg3}}
  %0:3 = mp.aten "aten._fused_sgd.default"(%w, %u, %m, %scale) {args = {self = ["%0"], grads = ["%1"], momentum_buffer_list = ["%2"], lr = 0.1, grad_scale = "%3"}}
      : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return %0#0 : tensor<8xf32>
}

// -----

// An operator that no table knows says nothing of units.
func.func @unknown(%w: tensor<8xf32> {mp.role = "parameter"}, %x: tensor<8xf32> {mp.role = "buffer"}, %scale: tensor<f32> {mp.loss_scale = 1}) -> tensor<8xf32> {
  %g = mp.aten "aten.mul.Tensor"(%x, %scale) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %1 = mp.aten "my.unscale.default"(%g) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = mp.aten "aten.sub.Tensor"(%w, %1) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}

// -----

// Without a loss scale there is nothing to say: gradients come in unscaled.
func.func @none(%w: tensor<8xf32> {mp.role = "parameter"}, %g: tensor<8xf32>) -> tensor<8xf32> {
  %1 = mp.aten "aten.clamp.default"(%g) {args = {max = 1.0, min = -1.0}} : (tensor<8xf32>) -> tensor<8xf32>
  %2 = mp.aten "aten.sub.Tensor"(%w, %1) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}

// -----

// Two scales and the inverse of one come in: which one's, nothing says.
func.func @whose_inverse(%w: tensor<8xf32> {mp.role = "parameter"}, %x: tensor<8xf32> {mp.role = "buffer"}, %a: tensor<f32> {mp.loss_scale = 1},
                         %b: tensor<f32> {mp.loss_scale = 1}, %inverse: tensor<f32> {mp.loss_scale = -1}) -> tensor<8xf32> {
  %g = mp.aten "aten.mul.Tensor"(%x, %a) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %1 = mp.aten "aten.mul.Tensor"(%g, %inverse) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %2 = mp.aten "aten.sub.Tensor"(%w, %1) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}
