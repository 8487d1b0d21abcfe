// What relaxed adds is proved from its record, and the report says how much of
// the error budget it takes.
//
// RUN: split-file %s %t
// RUN: mpopt %t/before.mlir --mlir-print-debuginfo -o %t/after.mlir \
// RUN:   --mp-partitioned='numerics=relaxed epsilon=0.5'
// RUN: mpopt check %t/before.mlir %t/after.mlir | FileCheck %s --check-prefix=OK
//
// A rounding that no record names; one to another half; a smaller budget.
// RUN: sed 's/"round-store"/"fold-same-type"/; s/"relaxed"/"strict"/' \
// RUN:   %t/after.mlir > %t/unrecorded.mlir
// RUN: not mpopt check %t/before.mlir %t/unrecorded.mlir 2>&1 \
// RUN:   | FileCheck %s --check-prefix=UNRECORDED
// RUN: sed 's/half = bf16/half = f16/' %t/after.mlir > %t/other.mlir
// RUN: not mpopt check %t/before.mlir %t/other.mlir 2>&1 \
// RUN:   | FileCheck %s --check-prefix=OTHER
// RUN: sed 's/epsilon = 5.*e-01/epsilon = 1.0e-03/' %t/after.mlir > %t/dear.mlir
// RUN: not mpopt check %t/before.mlir %t/dear.mlir 2>&1 \
// RUN:   | FileCheck %s --check-prefix=DEAR

// OK: every rewrite keeps its contract
// OK-NEXT: @f: 1 reads are rounded; the estimated error grows by {{.*}}% of 50.00%

// UNRECORDED: mpopt: violation: {{.*}}aten.mul.Tensor in f32 reads aten.sin.default in f32 rounded to bf16, which no record says

// OTHER: mpopt: violation: {{.*}}output 0 of @f differs

// DEAR: mpopt: violation: {{.*}}adds roundings whose noise is {{.*}}, and epsilon 1.0{{.*}}e-03 allows

//--- before.mlir
func.func @f(%x: tensor<256x256xf32>, %h: tensor<256x256xbf16>) -> (tensor<256x256xf32>, tensor<256x256xbf16>) {
  %0 = mp.aten "aten.sin.default"(%x) : (tensor<256x256xf32>) -> tensor<256x256xf32>
  %1 = mp.matmul %h, %h : (tensor<256x256xbf16>, tensor<256x256xbf16>) -> tensor<256x256xbf16>
  %2 = mp.cast %1 origin(autocast) {mp.backward} : tensor<256x256xbf16> to tensor<256x256xf32>
  %3 = mp.aten "aten.mul.Tensor"(%2, %0) {mp.backward} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  return %3, %1 : tensor<256x256xf32>, tensor<256x256xbf16>
}
