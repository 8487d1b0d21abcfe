// RUN: split-file %s %t
// RUN: mpopt %t/before.mlir --mp-default -o %t/after.mlir
// RUN: mpopt check %t/before.mlir %t/after.mlir | FileCheck %s --check-prefix=OK
// RUN: not mpopt check %t/before.mlir %t/wrong.mlir 2>&1 | FileCheck %s --check-prefix=WRONG

// OK: every rewrite keeps its contract
// WRONG: mpopt: violation:

//--- before.mlir
func.func @f(%x: tensor<4xf16>) -> tensor<4xf16> {
  %0 = mp.cast %x origin(user) : tensor<4xf16> to tensor<4xf32>
  %1 = mp.cast %0 origin(user) : tensor<4xf32> to tensor<4xf16>
  %2 = mp.aten "aten.relu.default"(%1) : (tensor<4xf16>) -> tensor<4xf16>
  return %2 : tensor<4xf16>
}

//--- wrong.mlir
func.func @f(%x: tensor<4xf16>) -> tensor<4xf16> {
  %2 = mp.aten "aten.neg.default"(%x) : (tensor<4xf16>) -> tensor<4xf16>
  return %2 : tensor<4xf16>
}
