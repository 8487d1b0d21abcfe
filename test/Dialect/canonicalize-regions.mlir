// What crosses the border of a region, and what need not.
// RUN: mpopt %s --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @unread_operand
// CHECK: mp.region rows "neg" (%arg1) : (tensor<4xf32>) -> tensor<4xf32>
func.func @unread_operand(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.region rows "neg" (%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    %1 = mp.aten "aten.neg.default"(%b) : (tensor<4xf32>) -> tensor<4xf32>
    mp.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @equal_operands
// CHECK: mp.region rows "add" (%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<4xf32>):
// CHECK-NEXT: mp.aten "aten.add.Tensor"(%[[A]], %[[A]])
func.func @equal_operands(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.region rows "add" (%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    %1 = mp.aten "aten.add.Tensor"(%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    mp.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @second_of_two_is_read
// CHECK: mp.region rows "neg" (%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<4xf32>):
// CHECK-NEXT: mp.aten "aten.neg.default"(%[[A]])
func.func @second_of_two_is_read(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.region rows "neg" (%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    %1 = mp.aten "aten.neg.default"(%b) : (tensor<4xf32>) -> tensor<4xf32>
    mp.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @unread_result
// CHECK: %[[R:.*]] = mp.region rows "two" (%arg0) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %[[E:.*]] = mp.aten "aten.exp.default"
// CHECK-NEXT: mp.yield %[[E]]
// CHECK: return %[[R]]
func.func @unread_result(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0:2 = mp.region rows "two" (%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%a: tensor<4xf32>):
    %1 = mp.softmax(%a) {args = {dim = -1, half_to_float = false}} : (tensor<4xf32>) -> tensor<4xf32>
    %2 = mp.aten "aten.exp.default"(%a) : (tensor<4xf32>) -> tensor<4xf32>
    mp.yield %1, %2 : tensor<4xf32>, tensor<4xf32>
  }
  return %0#1 : tensor<4xf32>
}

// A kernel has the operands and results that it was made for.
// CHECK-LABEL: func.func @has_kernel
// CHECK: mp.region rows "neg" (%arg0, %arg1) {kernel = "module {}"} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
func.func @has_kernel(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0:2 = mp.region rows "neg" (%x, %y) {kernel = "module {}"} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    %1 = mp.aten "aten.neg.default"(%b) : (tensor<4xf32>) -> tensor<4xf32>
    mp.yield %1, %b : tensor<4xf32>, tensor<4xf32>
  }
  return %0#0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @unread_region
// CHECK-NEXT: return %arg0
func.func @unread_region(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.region rows "neg" (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    mp.yield %a : tensor<4xf32>
  }
  return %x : tensor<4xf32>
}
