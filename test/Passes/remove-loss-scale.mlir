// All products with a loss scale go, or none.
// RUN: mpopt %s --mp-normalize --mp-remove-loss-scale -o %t.mlir && FileCheck %s < %t.mlir
// RUN: mpopt %s --mp-normalize --mp-remove-loss-scale --mp-remove-loss-scale | diff %t.mlir -
// No contract of the check allows it: a scaled value might overflow.
// RUN: not mpopt check %s %t.mlir 2>&1 | FileCheck %s --check-prefix=CHECKED

// CHECKED: differs

// CHECK-LABEL: func.func @keeps_the_state
// CHECK-NOT: "aten.mul.Tensor"
// CHECK: %[[U:.*]]:2 = mp.aten "aten._amp_update_scale.default"(%arg2
// CHECK: %[[W:.*]] = mp.aten "aten.sub.Tensor"(%arg0, %arg1)
// CHECK: return %[[W]], %[[U]]#0
func.func @keeps_the_state(%w: tensor<8xf32> {mp.role = "parameter"}, %x: tensor<8xf32> {mp.role = "buffer"},
                           %scale: tensor<f32>, %count: tensor<i32>, %found: tensor<f32>) -> (tensor<8xf32>, tensor<f32>) {
  %g = mp.aten "aten.mul.Tensor"(%x, %scale) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %i = mp.aten "aten.reciprocal.default"(%scale) : (tensor<f32>) -> tensor<f32>
  %1 = mp.aten "aten.mul.Tensor"(%g, %i) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %u:2 = mp.aten "aten._amp_update_scale.default"(%scale, %count, %found) {args = {growth_interval = 2000}}
      : (tensor<f32>, tensor<i32>, tensor<f32>) -> (tensor<f32>, tensor<i32>)
  %2 = mp.aten "aten.sub.Tensor"(%w, %1) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %2, %u#0 : tensor<8xf32>, tensor<f32>
}

// CHECK-LABEL: func.func @half_needs_it
// CHECK-SAME: why = "a value of its type needs the loss scale"
// CHECK: mp.aten "aten.mul.Tensor"
// CHECK: mp.aten "aten.div.Tensor"
func.func @half_needs_it(%w: tensor<8xf32> {mp.role = "parameter"}, %x: tensor<8xf32> {mp.role = "buffer"}, %scale: tensor<f32> {mp.loss_scale = 1}) -> tensor<8xf32> {
  %g = mp.aten "aten.mul.Tensor"(%x, %scale) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %h = mp.cast %g origin(autocast) : tensor<8xf32> to tensor<8xf16>
  %f = mp.cast %h origin(autocast) : tensor<8xf16> to tensor<8xf32>
  %1 = mp.aten "aten.div.Tensor"(%f, %scale) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %2 = mp.aten "aten.sub.Tensor"(%w, %1) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}

// CHECK-LABEL: func.func @returned_scaled
// CHECK-SAME: why = "a result is returned scaled"
func.func @returned_scaled(%x: tensor<8xf32> {mp.role = "buffer"}, %scale: tensor<f32> {mp.loss_scale = 1}) -> tensor<8xf32> {
  %g = mp.aten "aten.mul.Tensor"(%x, %scale) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  return %g : tensor<8xf32>
}

// CHECK-LABEL: func.func @used_wrongly
// CHECK-SAME: why = "the loss scale is used wrongly: see mp-check-loss-scale"
func.func @used_wrongly(%w: tensor<8xf32> {mp.role = "parameter"}, %x: tensor<8xf32> {mp.role = "buffer"}, %scale: tensor<f32> {mp.loss_scale = 1}) -> tensor<8xf32> {
  %g = mp.aten "aten.mul.Tensor"(%x, %scale) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %2 = mp.aten "aten.sub.Tensor"(%w, %g) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}

// CHECK-LABEL: func.func @not_known
// CHECK-SAME: why = "its unit is not known"
func.func @not_known(%w: tensor<8xf32> {mp.role = "parameter"}, %x: tensor<8xf32> {mp.role = "buffer"}, %scale: tensor<f32> {mp.loss_scale = 1}) -> tensor<8xf32> {
  %g = mp.aten "aten.mul.Tensor"(%x, %scale) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %1 = mp.aten "my.unscale.default"(%g) : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
