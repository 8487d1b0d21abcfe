// Kernels of each family run on the CPU: no fault, the reference's results.
//
// RUN: mpopt-emulate %S/Inputs/linear.mlir --schedule='64x64x32 w32x32 s3' --exact | FileCheck %s --check-prefix=MMA
// RUN: mpopt-emulate %S/Inputs/linear.mlir --schedule='64x64x32 w32x32 s3 k3' --exact | FileCheck %s --check-prefix=SPLIT
// RUN: mpopt-emulate %S/Inputs/linear.mlir --target=sm_90a --exact --fail-on-conflicts | FileCheck %s --check-prefix=WGMMA
// RUN: mpopt-emulate %S/Inputs/linear.mlir --data=real --seed=5 --copies=late --json | FileCheck %s --check-prefix=JSON

// MMA: schedule 64x64x32 w32x32 s3 r1 k1 g8
// MMA-NEXT: copies late: 1 blocks, 128 threads
// MMA-NEXT: faults: 0 places: race 0, early-access 0, uninitialized-read 0, out-of-bounds 0, read-only 0, misaligned 0, divergent-barrier 0, missing-lane 0,
// MMA: result 0 (64x64xbf16): all 4096 elements have the same bits
// MMA-NEXT: copies eager: 1 blocks, 128 threads
// MMA-NEXT: faults: 0 places
// MMA: result 0 (64x64xbf16): all 4096 elements have the same bits

// No conflict in the main loop: neither its copies nor ldmatrix.
// MMA-NOT: shared {{.*}}{{cp.async|ldmatrix}}

// Three blocks share the sum and add it in the workspace.
// SPLIT: copies late: 3 blocks, 384 threads
// SPLIT-NEXT: faults: 0 places

// WGMMA: schedule wgmma 64x64x64
// WGMMA: faults: 0 places
// WGMMA-NEXT: bank conflicts: 0 extra passes at 0 places
// WGMMA-NEXT: result 0 (64x64xbf16): all 4096 elements have the same bits

// JSON: "copies":"late"
// JSON-SAME: "clean":true
// JSON-SAME: "wrong":0
// JSON-SAME: "schedule":"

// The last reading of data that no order of sums changes.
// RUN: sed s/768/96/g %S/Rows/column-sum.mlir | mpopt-emulate --size=19 --exact --fail-on-conflicts | FileCheck %s --check-prefix=ROWS
// RUN: sed s/768/96/g %S/Rows/rms-norm.mlir | mpopt-emulate --size=5 --data=real | FileCheck %s --check-prefix=ROWS
// RUN: sed s/768/96/g %S/Rows/layer-norm.mlir | mpopt-emulate --size=5 --data=real | FileCheck %s --check-prefix=ROWS
// RUN: sed s/768/96/g %S/Rows/layer-norm-backward.mlir | mpopt-emulate --size=9 --data=real | FileCheck %s --check-prefix=ROWS
// RUN: sed s/768/96/g %S/Rows/softmax.mlir | mpopt-emulate --size=5 --data=real | FileCheck %s --check-prefix=ROWS
// RUN: sed s/768/96/g %S/Rows/softmax-backward.mlir | mpopt-emulate --size=5 --data=real | FileCheck %s --check-prefix=ROWS
// RUN: sed s/768/99/g %S/Rows/log-softmax.mlir | mpopt-emulate --size=5 --data=real | FileCheck %s --check-prefix=ROWS
// RUN: sed s/768/96/g %S/Rows/log-softmax-backward.mlir | mpopt-emulate --size=5 --data=real | FileCheck %s --check-prefix=ROWS
// RUN: sed s/768/96/g %S/Rows/cross-entropy.mlir | mpopt-emulate --size=5 --data=real | FileCheck %s --check-prefix=ROWS
// RUN: sed s/768/96/g %S/Rows/cross-entropy-backward.mlir | mpopt-emulate --size=5 --data=real | FileCheck %s --check-prefix=ROWS
// RUN: sed s/768/2049/g %S/Rows/pointwise.mlir | mpopt-emulate --size=3 --data=real | FileCheck %s --check-prefix=ROWS
// ROWS: schedule v
// ROWS: faults: 0 places
// ROWS-NEXT: bank conflicts: 0
// ROWS: faults: 0 places
// ROWS-NEXT: bank conflicts: 0
