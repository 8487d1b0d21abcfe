// The example that the reference of mp-check-loss-scale shows.
// RUN: mpopt %s --mp-check-loss-scale=warn-only -verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @clip_before_unscale
func.func @clip_before_unscale(%x: tensor<8xf32> {mp.role = "buffer"}, %loss: tensor<f32> {mp.role = "buffer"},
                               %scale: tensor<f32> {mp.loss_scale = 1}) -> tensor<8xf32> {
  // expected-note @+1 {{scaled here}}
  %0 = mp.aten "aten.mul.Tensor"(%loss, %scale) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %1 = mp.aten "aten.mul.Tensor"(%x, %0) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  // CHECK: aten.clamp
  // expected-warning @+1 {{a value is still multiplied by the loss scale %arg2 where it meets a constant: unscale before clipping}}
  %2 = mp.aten "aten.clamp.default"(%1) {args = {max = 1.0, min = -1.0}} : (tensor<8xf32>) -> tensor<8xf32>
  %3 = mp.aten "aten.div.Tensor"(%2, %scale) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return %3 : tensor<8xf32>
}
