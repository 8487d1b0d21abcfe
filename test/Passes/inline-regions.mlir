// RUN: mpopt %s --mp-inline-regions | FileCheck %s --check-prefixes=CHECK,ALL
// RUN: mpopt %s --mp-inline-regions=without-kernel | FileCheck %s --check-prefixes=CHECK,NONE

// A region with a kernel stays if it is asked for.
// CHECK-LABEL: func.func @has_kernel
// ALL-NOT: mp.region
// NONE: mp.region rows "neg"
func.func @has_kernel(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.region rows "neg" (%x) {kernel = "module {}"} : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    %1 = mp.aten "aten.neg.default"(%a) : (tensor<4xf32>) -> tensor<4xf32>
    mp.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// Several results; one of them is an operand. Attributes of the body stay.
// CHECK-LABEL: func.func @results
// CHECK-NEXT: %[[N:.*]] = mp.aten "aten.neg.default"(%arg0) {mp.backward}
// CHECK-NEXT: return %arg0, %[[N]]
func.func @results(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0:2 = mp.region rows "neg" (%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%a: tensor<4xf32>):
    %1 = mp.aten "aten.neg.default"(%a) {mp.backward} : (tensor<4xf32>) -> tensor<4xf32>
    mp.yield %a, %1 : tensor<4xf32>, tensor<4xf32>
  }
  return %0#0, %0#1 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func private @declared
func.func private @declared(tensor<4xf32>) -> tensor<4xf32>
