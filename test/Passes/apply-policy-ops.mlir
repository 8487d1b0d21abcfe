// Kinds that a policy gives to operators of the user, and what they allow.
// RUN: split-file %s %t
// RUN: mpopt %t/graph.mlir --mp-apply-policy=file=%t/ops.toml | FileCheck %t/graph.mlir --check-prefix=ROWS
// RUN: mpopt %t/graph.mlir --mp-apply-policy=file=%t/ops.toml --mp-eliminate-casts | FileCheck %t/graph.mlir
// RUN: mpopt %t/graph.mlir --mp-apply-policy=file=%t/overload.toml --mp-eliminate-casts | FileCheck %t/graph.mlir --check-prefix=OVERLOAD
// RUN: mpopt %t/graph.mlir --mp-eliminate-casts | FileCheck %t/graph.mlir --check-prefix=UNKNOWN
// A policy without rows takes those of another back.
// RUN: mpopt %t/graph.mlir --mp-apply-policy=file=%t/ops.toml -o %t/with.mlir
// RUN: mpopt %t/with.mlir --mp-apply-policy=file=%t/none.toml --mp-eliminate-casts | FileCheck %t/graph.mlir --check-prefix=UNKNOWN

// The report no longer says that there is no rule.
// RUN: mpopt explain %t/graph.mlir | FileCheck %s --check-prefix=NO-RULE
// NO-RULE: note: no rule for: mylib.shuffle.default (3)
// RUN: mpopt explain %t/graph.mlir --policy=%t/ops.toml | FileCheck %s --check-prefix=RULE
// RULE: policy ops.toml (sha256 {{[0-9a-f]+}})
// RULE-NOT: no rule for

//--- ops.toml
version = 1
[[op]]
name = "mylib.shuffle"
kind = "movement"
//--- overload.toml
version = 1
[[op]]
name = "mylib.shuffle.other"
kind = "movement"
//--- none.toml
version = 1
//--- graph.mlir
module {
  // ROWS: func.func @moves
  // ROWS-SAME: mp.op_rows = {mylib.shuffle = "movement"}
  // CHECK-LABEL: func.func @moves
  // UNKNOWN-LABEL: func.func @moves
  // OVERLOAD-LABEL: func.func @moves
  func.func @moves(%x: tensor<4x8xbf16>) -> tensor<4x8xbf16> {
    // It copies elements: no conversion is needed around it.
    // CHECK: %[[M:.*]] = mp.aten "mylib.shuffle.default"(%{{.*}}) : (tensor<4x8xbf16>) -> tensor<4x8xbf16>
    // CHECK-NEXT: return %[[M]]
    // UNKNOWN: mp.aten "mylib.shuffle.default"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    // OVERLOAD: mp.aten "mylib.shuffle.default"(%{{.*}}) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %0 = mp.cast %x origin(user) : tensor<4x8xbf16> to tensor<4x8xf32>
    %1 = mp.aten "mylib.shuffle.default"(%0) : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %2 = mp.cast %1 origin(user) : tensor<4x8xf32> to tensor<4x8xbf16>
    return %2 : tensor<4x8xbf16>
  }
  // A row of the user does not make an operator promote its operands.
  // CHECK-LABEL: func.func @promotes
  func.func @promotes(%x: tensor<4xbf16>, %y: tensor<4xf32>) -> tensor<4xf32> {
    // CHECK-NEXT: mp.aten "mylib.shuffle.default"(%{{.*}}, %{{.*}}) : (tensor<4xbf16>, tensor<4xf32>)
    %0 = mp.aten "mylib.shuffle.default"(%x, %y) : (tensor<4xbf16>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  // Nor does it reach into another function.
  // CHECK-LABEL: func.func private @other
  func.func private @other(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = mp.aten "mylib.shuffle.default"(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
