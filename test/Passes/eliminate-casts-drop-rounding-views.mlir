// A rounding and its widenings with views between.
// RUN: mpopt %s --mp-eliminate-casts=numerics=precise | FileCheck %s

// Views between are read unrounded as well.
// CHECK-LABEL: func.func @through_views
// CHECK-NOT: mp.cast %
// CHECK: mp.aten "aten.t.default"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<8x4xf32>
func.func @through_views(%x: tensor<4x8xf32>) -> (tensor<8x4xf32>, tensor<4x8xf32>) {
  %0 = mp.aten "aten.exp.default"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = mp.cast %0 origin(autocast) : tensor<4x8xf32> to tensor<4x8xbf16>
  %2 = mp.aten "aten.t.default"(%1) : (tensor<4x8xbf16>) -> tensor<8x4xbf16>
  %3 = mp.cast %2 origin(autocast) : tensor<8x4xbf16> to tensor<8x4xf32>
  %4 = mp.cast %1 origin(autocast) : tensor<4x8xbf16> to tensor<4x8xf32>
  %5 = mp.aten "aten.exp.default"(%4) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %3, %5 : tensor<8x4xf32>, tensor<4x8xf32>
}

// A product reads the view as a half.
// CHECK-LABEL: func.func @not_dropped_half_reader_of_view
// CHECK-COUNT-2: mp.cast %
func.func @not_dropped_half_reader_of_view(%x: tensor<4x4xf32>) -> (tensor<4x4xbf16>, tensor<4x4xf32>) {
  %0 = mp.cast %x origin(autocast) : tensor<4x4xf32> to tensor<4x4xbf16>
  %1 = mp.aten "aten.t.default"(%0) : (tensor<4x4xbf16>) -> tensor<4x4xbf16>
  %2 = mp.aten "aten.mm.default"(%1, %1) : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<4x4xbf16>
  %3 = mp.cast %1 origin(autocast) : tensor<4x4xbf16> to tensor<4x4xf32>
  %4 = mp.aten "aten.exp.default"(%3) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %2, %4 : tensor<4x4xbf16>, tensor<4x4xf32>
}

// Two outputs may not share memory.
// CHECK-LABEL: func.func @not_dropped_two_outputs
// CHECK-COUNT-2: mp.cast %
func.func @not_dropped_two_outputs(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = mp.aten "aten.exp.default"(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = mp.cast %0 origin(autocast) : tensor<4x4xf32> to tensor<4x4xbf16>
  %2 = mp.cast %1 origin(autocast) : tensor<4x4xbf16> to tensor<4x4xf32>
  %3 = mp.aten "aten.t.default"(%1) : (tensor<4x4xbf16>) -> tensor<4x4xbf16>
  %4 = mp.cast %3 origin(autocast) : tensor<4x4xbf16> to tensor<4x4xf32>
  return %2, %4 : tensor<4x4xf32>, tensor<4x4xf32>
}
