// mpopt check applies the policy anew: what it does not ask for is refused.
// RUN: split-file %s %t
// RUN: mpopt %t/asked.mlir --mp-default --mlir-print-debuginfo -o %t/after.mlir
// RUN: mpopt check %t/asked.mlir %t/after.mlir
// RUN: not mpopt check %t/unasked.mlir %t/after.mlir 2>&1 | FileCheck %s
// CHECK: record of widen-as-asked for node {{[0-9]+}} names an operator that no policy wants in f32

// RUN: not mpopt check %t/result.mlir %t/after.mlir 2>&1 | FileCheck %s --check-prefix=RESULT
// RESULT: record of widen-as-asked for node {{[0-9]+}} names operand 0, which no policy wants in f32

//--- asked.mlir
func.func @f(%x: tensor<8x4xf32>, %w: tensor<6x4xf32>, %b: tensor<6xf32>) -> (tensor<8x6xbf16>, tensor<8x4xbf16>) attributes {mp.policy = {text = "version = 1\n[[rule]]\nop = \"aten.addmm\"\nprecision = \"fp32\"\n"}} {
  %0 = mp.cast %x origin(autocast) : tensor<8x4xf32> to tensor<8x4xbf16>
  %1 = mp.cast %w origin(autocast) : tensor<6x4xf32> to tensor<6x4xbf16>
  %2 = mp.aten "aten.t.default"(%1) : (tensor<6x4xbf16>) -> tensor<4x6xbf16>
  %3 = mp.cast %b origin(autocast) : tensor<6xf32> to tensor<6xbf16>
  %4 = mp.aten "aten.addmm.default"(%3, %0, %2) : (tensor<6xbf16>, tensor<8x4xbf16>, tensor<4x6xbf16>) -> tensor<8x6xbf16>
  return %4, %0 : tensor<8x6xbf16>, tensor<8x4xbf16>
}
//--- unasked.mlir
func.func @f(%x: tensor<8x4xf32>, %w: tensor<6x4xf32>, %b: tensor<6xf32>) -> (tensor<8x6xbf16>, tensor<8x4xbf16>) attributes {mp.policy = {text = "version = 1\n"}} {
  %0 = mp.cast %x origin(autocast) : tensor<8x4xf32> to tensor<8x4xbf16>
  %1 = mp.cast %w origin(autocast) : tensor<6x4xf32> to tensor<6x4xbf16>
  %2 = mp.aten "aten.t.default"(%1) : (tensor<6x4xbf16>) -> tensor<4x6xbf16>
  %3 = mp.cast %b origin(autocast) : tensor<6xf32> to tensor<6xbf16>
  %4 = mp.aten "aten.addmm.default"(%3, %0, %2) : (tensor<6xbf16>, tensor<8x4xbf16>, tensor<4x6xbf16>) -> tensor<8x6xbf16>
  return %4, %0 : tensor<8x6xbf16>, tensor<8x4xbf16>
}
//--- result.mlir
func.func @f(%x: tensor<8x4xf32>, %w: tensor<6x4xf32>, %b: tensor<6xf32>) -> (tensor<8x6xbf16>, tensor<8x4xbf16>) attributes {mp.policy = {text = "version = 1\n[[rule]]\nop = \"aten.addmm\"\nprecision = \"fp32\"\nwhere = \"result\"\n"}} {
  %0 = mp.cast %x origin(autocast) : tensor<8x4xf32> to tensor<8x4xbf16>
  %1 = mp.cast %w origin(autocast) : tensor<6x4xf32> to tensor<6x4xbf16>
  %2 = mp.aten "aten.t.default"(%1) : (tensor<6x4xbf16>) -> tensor<4x6xbf16>
  %3 = mp.cast %b origin(autocast) : tensor<6xf32> to tensor<6xbf16>
  %4 = mp.aten "aten.addmm.default"(%3, %0, %2) : (tensor<6xbf16>, tensor<8x4xbf16>, tensor<4x6xbf16>) -> tensor<8x6xbf16>
  return %4, %0 : tensor<8x6xbf16>, tensor<8x4xbf16>
}
