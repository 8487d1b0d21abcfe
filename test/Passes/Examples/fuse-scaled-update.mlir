// The example that the reference of mp-fuse-scaled-update shows.
// RUN: mpopt %s --mp-fuse-scaled-update | FileCheck %s

// CHECK-LABEL: func.func @sgd
func.func @sgd(%w: tensor<8xf32> {mp.role = "parameter"}, %g: tensor<8xf32>, %inverse: tensor<f32>) -> (tensor<8xf32>, tensor<8xbf16>, tensor<f32>) {
  // CHECK: %[[G:.*]] = mp.aten "aten.mul.Tensor"(%arg1, %arg2)
  %0 = mp.aten "aten.mul.Tensor"(%g, %inverse) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  // CHECK: %[[N:.*]] = mp.aten "aten.linalg_vector_norm.default"(%[[G]])
  %n = mp.aten "aten.linalg_vector_norm.default"(%0) : (tensor<8xf32>) -> tensor<f32>
  // CHECK: %[[U:.*]]:2 = mp.scaled_update({{.*}}) : {{.*}} -> (tensor<8xf32>, tensor<8xbf16>)
  // CHECK-DAG: mp.aten "aten.mul.Tensor"
  // CHECK-DAG: mp.aten "aten.div.Tensor"
  // CHECK-DAG: mp.aten "aten.sub.Tensor"
  // CHECK-DAG: mp.cast
  // CHECK: mp.yield
  %c = mp.aten "aten.div.Tensor"(%0, %n) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %1 = mp.aten "aten.sub.Tensor"(%w, %c) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %2 = mp.cast %1 origin(user) : tensor<8xf32> to tensor<8xbf16>
  // CHECK: return %[[U]]#0, %[[U]]#1, %[[N]]
  return %1, %2, %n : tensor<8xf32>, tensor<8xbf16>, tensor<f32>
}
