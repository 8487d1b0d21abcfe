// The packaged mlir-opt runs our dialect and passes.
// RUN: mlir-opt %s --load-dialect-plugin=%mpopt_lib/MPPlugin.so \
// RUN:   --load-pass-plugin=%mpopt_lib/MPPlugin.so \
// RUN:   --pass-pipeline='builtin.module(mp-default{numerics=strict})' | FileCheck %s

// CHECK-LABEL: func.func @round_trip
// CHECK-SAME: %[[X:.*]]: tensor<4xf16>
// CHECK-NEXT: %[[Y:.*]] = mp.aten "aten.relu.default"(%[[X]])
// CHECK-NEXT: return %[[Y]]
func.func @round_trip(%x: tensor<4xf16>) -> tensor<4xf16> {
  %0 = mp.cast %x origin(user) : tensor<4xf16> to tensor<4xf32>
  %1 = mp.cast %0 origin(user) : tensor<4xf32> to tensor<4xf16>
  %2 = mp.aten "aten.relu.default"(%1) : (tensor<4xf16>) -> tensor<4xf16>
  return %2 : tensor<4xf16>
}
