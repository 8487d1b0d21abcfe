// The example that the reference of mp-report-casts shows.
// RUN: mpopt %s --mp-report-casts | FileCheck %s

// CHECK-LABEL: func.func @rounding_of_the_user
// CHECK-SAME: why = "user asked for f32 to bf16; read by mp.cast; a rounding that the user wrote is never dropped
func.func @rounding_of_the_user(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.cast %x origin(user) : tensor<4xf32> to tensor<4xbf16>
  %1 = mp.cast %0 origin(user) : tensor<4xbf16> to tensor<4xf32>
  return %1 : tensor<4xf32>
}
