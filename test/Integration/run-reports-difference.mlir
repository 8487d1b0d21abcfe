// mpopt-run fails at the first differing bit and names it.

// RUN: split-file %s %t
// RUN: mpopt-run %t/rounded.mlir --function=kept | FileCheck %s --check-prefix=VALUES
// RUN: not mpopt-run %t/rounded.mlir --compare %t/exact.mlir 2>&1 | FileCheck %s
// RUN: not mpopt-run %t/unknown.mlir 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// CHECK: error: seed 0: result 0 element 1: 0.333984375 and 0.3333333432674408

// VALUES: result 0: 2xf32 = 1 0.333984375

//--- rounded.mlir
func.func @kept(%x: tensor<2xf32> {mp.value = dense<[1.0, 0.33333334]> : tensor<2xf32>}) -> tensor<2xf32> {
  %0 = mp.round %x to bf16 origin(user) : tensor<2xf32>
  return %0 : tensor<2xf32>
}

//--- exact.mlir
func.func @kept(%x: tensor<2xf32> {mp.value = dense<[1.0, 0.33333334]> : tensor<2xf32>}) -> tensor<2xf32> {
  return %x : tensor<2xf32>
}

//--- unknown.mlir
// UNKNOWN: unknown.mlir: aten.lgamma.default has no evaluator
func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = mp.aten "aten.lgamma.default"(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
