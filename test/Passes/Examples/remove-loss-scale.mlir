// The example that the reference of mp-remove-loss-scale shows.
// RUN: mpopt %s --mp-remove-loss-scale | FileCheck %s

// CHECK-LABEL: func.func @step
func.func @step(%w: tensor<8xf32> {mp.role = "parameter"}, %x: tensor<8xbf16> {mp.role = "buffer"}, %loss: tensor<f32> {mp.role = "buffer"},
                %scale: tensor<f32> {mp.loss_scale = 1}) -> tensor<8xf32> {
  %0 = mp.aten "aten.mul.Tensor"(%loss, %scale) : (tensor<f32>, tensor<f32>) -> tensor<f32>
  // CHECK: %[[G:.*]] = mp.aten "aten.mul.Tensor"(%arg1, %arg2)
  %1 = mp.aten "aten.mul.Tensor"(%x, %0) : (tensor<8xbf16>, tensor<f32>) -> tensor<8xbf16>
  // CHECK: %[[W:.*]] = mp.cast %[[G]] origin(user)
  %2 = mp.cast %1 origin(user) : tensor<8xbf16> to tensor<8xf32>
  %3 = mp.aten "aten.div.Tensor"(%2, %scale) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  // CHECK: mp.aten "aten.sub.Tensor"(%arg0, %[[W]])
  %4 = mp.aten "aten.sub.Tensor"(%w, %3) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %4 : tensor<8xf32>
}
