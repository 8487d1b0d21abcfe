// The example that the reference of mp-normalize shows.
// RUN: mpopt %s --mp-normalize | FileCheck %s

// CHECK-LABEL: func.func @spellings
func.func @spellings(%x: tensor<4xf32>, %h: tensor<4xbf16>) -> tensor<4xf32> {
  // CHECK: %[[C:.*]] = mp.cast %arg0 origin(user) : tensor<4xf32> to tensor<4xbf16>
  %0 = mp.aten "aten._to_copy.default"(%x) {args = {dtype = bf16}} : (tensor<4xf32>) -> tensor<4xbf16>
  // CHECK: %[[W:.*]] = mp.cast %[[C]] origin(promotion)
  // CHECK: mp.aten "aten.add.Tensor"(%[[W]], %arg0)
  %1 = mp.aten "aten.add.Tensor"(%0, %x) : (tensor<4xbf16>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
