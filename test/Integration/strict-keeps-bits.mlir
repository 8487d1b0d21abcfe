// The strict contract on numbers: the reference interpreter computes the same
// bits before and after, on infinities, NaN, subnormals and ties too.

// RUN: mpopt %s --mp-default=numerics=strict -o %t.mlir
// RUN: mpopt-run %s --compare %t.mlir --trials 50 | FileCheck %s
// RUN: FileCheck %s --check-prefix=AFTER < %t.mlir
// RUN: mpopt check %s %t.mlir

// CHECK: equal bits in 50 trials

// AFTER-LABEL: func.func @f
// AFTER-COUNT-2: = mp.cast
// AFTER-NOT: = mp.cast
func.func @f(%x: tensor<4x8xf32>, %h: tensor<8x4xbf16>) -> (tensor<8x4xbf16>, tensor<8x4xf32>) {
  // Stays: the user rounds.
  %0 = mp.cast %x origin(user) : tensor<4x8xf32> to tensor<4x8xbf16>
  %1 = mp.cast %0 origin(user) : tensor<4x8xbf16> to tensor<4x8xf32>
  %2 = mp.aten "aten.t.default"(%1) : (tensor<4x8xf32>) -> tensor<8x4xf32>
  // Goes: a widening that is narrowed back.
  %3 = mp.cast %h origin(autocast) : tensor<8x4xbf16> to tensor<8x4xf32>
  %4 = mp.aten "aten.neg.default"(%3) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %5 = mp.cast %4 origin(autocast) : tensor<8x4xf32> to tensor<8x4xbf16>
  return %5, %2 : tensor<8x4xbf16>, tensor<8x4xf32>
}
