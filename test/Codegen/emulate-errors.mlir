// Wrong use of mpopt-emulate: one line that says what to do, exit code 2.
//
// RUN: not mpopt-emulate %s --target=sm_75 2>&1 | FileCheck %s --check-prefix=TARGET
// TARGET: error: unknown target 'sm_75'; known are: sm_80 sm_86

// RUN: mpopt-codegen %S/Inputs/linear.mlir --emit=nvvm > %t.mlir
// RUN: not mpopt-emulate %t.mlir 2>&1 | FileCheck %s --check-prefix=EMITTED
// RUN: not mpopt-emulate %t.ll 2>&1 | FileCheck %s --check-prefix=EMITTED
// EMITTED: error: {{.*}} is an emitted module: give the kernel that it was made of, and this as --module

// RUN: not mpopt-emulate %S/Inputs/linear.mlir --module=%S/Inputs/linear.mlir 2>&1 | FileCheck %s --check-prefix=NOGPU
// NOGPU: error: {{.*}}linear.mlir has no gpu.module; write one with mpopt-codegen --emit=nvvm

// RUN: echo 'define void @f() {' > %t.bad.ll
// RUN: not mpopt-emulate %S/Inputs/linear.mlir --module=%t.bad.ll 2>&1 | FileCheck %s --check-prefix=PARSE
// PARSE: error: {{.*}}.bad.ll line 2: found end of file

// RUN: mpopt-codegen %S/Inputs/linear.mlir --target=sm_90a --emit=llvm > %t.wgmma.ll
// RUN: not mpopt-emulate %S/Inputs/linear.mlir --target=sm_90a --module=%t.wgmma.ll 2>&1 | FileCheck %s --check-prefix=ASSEMBLY
// ASSEMBLY: error: cannot emulate inline assembly: {{.*}}

// RUN: not mpopt-emulate %S/Inputs/linear.mlir --size=0 2>&1 | FileCheck %s --check-prefix=SIZE
// SIZE: error: --size and --blocks take numbers from 1

// RUN: not mpopt-emulate %S/Inputs/linear.mlir --schedule='64x64 x' 2>&1 | FileCheck %s --check-prefix=SCHEDULE
// SCHEDULE: error: {{.*}}schedule

// RUN: not mpopt-emulate %S/Rows/softmax.mlir --schedule='64x64x32' 2>&1 | FileCheck %s --check-prefix=ROWS
// ROWS: error: a kernel of rows takes no schedule; it follows from the kernel

// RUN: not mpopt-emulate --sise=3 2>&1 | FileCheck %s --check-prefix=OPTION
// OPTION: Unknown command line argument '--sise=3'

// RUN: mpopt-emulate --help | FileCheck %s --check-prefix=HELP
// HELP: exit codes: 0 nothing found, 1 something, 2 wrong use
