// The example that the reference of mp-expand-foreach shows.
// RUN: mpopt %s --mp-expand-foreach | FileCheck %s

// CHECK-LABEL: func.func @two_weights
func.func @two_weights(%a: tensor<8xf32>, %b: tensor<4xf32>, %g: tensor<8xf32>, %h: tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>) {
  // CHECK: mp.aten "aten.add.Tensor"(%arg0, %arg2) {args = {alpha = -1.000000e-01 : f64}}
  // CHECK: mp.aten "aten.add.Tensor"(%arg1, %arg3) {args = {alpha = -1.000000e-01 : f64}}
  %0:2 = mp.aten "aten._foreach_add.List"(%a, %b, %g, %h) {args = {self = ["%0", "%1"], other = ["%2", "%3"], alpha = -0.1}}
      : (tensor<8xf32>, tensor<4xf32>, tensor<8xf32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>)
  return %0#0, %0#1 : tensor<8xf32>, tensor<4xf32>
}
