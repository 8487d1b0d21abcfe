// The example that the reference of @arg@ shows.
// RUN: mpopt %s -@arg@ | FileCheck %s

// CHECK-LABEL: func.func @example
func.func @example(%arg0: tensor<4xf32>) -> tensor<4xbf16> {
  // CHECK: mp.cast %arg0 origin(user)
  %0 = mp.cast %arg0 origin(user) : tensor<4xf32> to tensor<4xbf16>
  return %0 : tensor<4xbf16>
}
