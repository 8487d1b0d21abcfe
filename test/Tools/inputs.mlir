// The driver reads every kind of input; here the JSON of an exported program.
// RUN: mpopt %S/../Inputs/program.json | FileCheck %s
// RUN: mpopt %S/../Inputs/program.json --emit-bytecode -o %t.mlirbc
// RUN: mpopt %t.mlirbc | FileCheck %s
// RUN: mpopt explain %t.mlirbc | FileCheck %s --check-prefix=EXPLAIN
// RUN: mkdir -p %t.bundle
// RUN: cp %t.mlirbc %t.bundle/00_import.mlirbc
// RUN: mpopt %t.mlirbc --mp-default -o %t.bundle/after.mlir
// RUN: mpopt explain %t.bundle | FileCheck %s --check-prefix=EXPLAIN
// RUN: mpopt check %t.bundle %t.bundle

// CHECK: func.func @model(%arg0: tensor<2x4xf32> {mp.name = "fc.weight", mp.role = "parameter"}
// CHECK: mp.aten "aten.linear.default"(%arg1, %arg0) {mp.autocast = "bf16"}
// EXPLAIN: note: autocast makes 2 further conversions
