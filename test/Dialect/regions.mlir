// Round trip of mp.region: text, generic form and bytecode.
// RUN: mpopt %s | mpopt - | FileCheck %s
// RUN: mpopt %s --mlir-print-op-generic | mpopt - | FileCheck %s
// RUN: mpopt %s --emit-bytecode -o %t.mlirbc
// RUN: mpopt %t.mlirbc | FileCheck %s

// CHECK-LABEL: func.func @matmul_region
func.func @matmul_region(%x: tensor<4x8xbf16>, %w: tensor<8x2xbf16>) -> tensor<4x2xbf16> {
  // CHECK: mp.region matmul "linear_relu" (%{{.*}}, %{{.*}}) {mp.backward} : (tensor<4x8xbf16>, tensor<8x2xbf16>) -> tensor<4x2xbf16> {
  %0 = mp.region matmul "linear_relu" (%x, %w) {mp.backward} : (tensor<4x8xbf16>, tensor<8x2xbf16>) -> tensor<4x2xbf16> {
  // CHECK-NEXT: ^bb0(%{{.*}}: tensor<4x8xbf16>, %{{.*}}: tensor<8x2xbf16>):
  ^bb0(%a: tensor<4x8xbf16>, %b: tensor<8x2xbf16>):
    %1 = mp.matmul %a, %b : (tensor<4x8xbf16>, tensor<8x2xbf16>) -> tensor<4x2xbf16>
    %2 = mp.aten "aten.relu.default"(%1) : (tensor<4x2xbf16>) -> tensor<4x2xbf16>
    // CHECK: mp.yield %{{.*}} : tensor<4x2xbf16>
    mp.yield %2 : tensor<4x2xbf16>
  }
  return %0 : tensor<4x2xbf16>
}

// CHECK-LABEL: func.func @rows_region
func.func @rows_region(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x1xf32>) {
  // CHECK: mp.region rows "softmax" (%{{.*}}) {kernel = "module {}"} : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x1xf32>) {
  %0:2 = mp.region rows "softmax" (%x) {kernel = "module {}"} : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x1xf32>) {
  ^bb0(%a: tensor<4x8xf32>):
    %1 = mp.softmax(%a) {args = {dim = -1, half_to_float = false}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %2 = mp.aten "aten.amax.default"(%a) {args = {dim = [-1], keepdim = true}} : (tensor<4x8xf32>) -> tensor<4x1xf32>
    mp.yield %1, %2 : tensor<4x8xf32>, tensor<4x1xf32>
  }
  return %0#0, %0#1 : tensor<4x8xf32>, tensor<4x1xf32>
}
