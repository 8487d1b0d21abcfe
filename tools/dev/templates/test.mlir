// @arg@: one positive per shape, one negative per guard, each named for it.
// RUN: mpopt %s -@arg@ -split-input-file | FileCheck %s

// A user's cast is left alone.
// CHECK-LABEL: func.func @keeps_cast_of_user
func.func @keeps_cast_of_user(%arg0: tensor<4xf32>) -> tensor<4xbf16> {
  // CHECK: mp.cast %arg0 origin(user) : tensor<4xf32> to tensor<4xbf16>
  %0 = mp.cast %arg0 origin(user) : tensor<4xf32> to tensor<4xbf16>
  return %0 : tensor<4xbf16>
}
