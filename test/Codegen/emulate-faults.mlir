// One thing is wrong in each of these modules, and the emulator finds it.
//
// RUN: mpopt-codegen %S/Inputs/linear.mlir --schedule='64x64x32 w32x32 s3' --emit=llvm > %t.ll
// RUN: mpopt-emulate %S/Inputs/linear.mlir --schedule='64x64x32 w32x32 s3' --module=%t.ll --exact

// No barrier orders the threads of a block.
// RUN: sed '/tail call .*barrier.cta.sync/d' %t.ll > %t.race.ll
// RUN: not mpopt-emulate %S/Inputs/linear.mlir --schedule='64x64x32 w32x32 s3' --module=%t.race.ll | FileCheck %s --check-prefix=RACE
// RACE: faults: {{[0-9]+}} places: race {{[1-9]}}
// RACE: race: {{.*}} of shared memory
// RACE-NEXT: kernel mp_matmul, block (0,0,0), thread
// RACE-NEXT: at {{.*}}@llvm.nvvm.{{ldmatrix|cp.async}}
// RACE-NEXT: with thread {{.*}} at {{.*}}@llvm.nvvm.{{ldmatrix|cp.async}}

// One group of copies too many may still be on its way; also if it is not.
// RUN: sed 's/wait.group(i32 1)/wait.group(i32 2)/' %t.ll > %t.early.ll
// RUN: not mpopt-emulate %S/Inputs/linear.mlir --schedule='64x64x32 w32x32 s3' --module=%t.early.ll | FileCheck %s --check-prefix=EARLY
// EARLY-COUNT-2: early-access {{[1-9][0-9]*}}, uninitialized-read 0

// The first copy is missing.
// RUN: sed '0,/tail call .*cp.async.cg.shared.global.16.s(/{/tail call .*cp.async.cg.shared.global.16.s(/d}' %t.ll > %t.uninit.ll
// RUN: not mpopt-emulate %S/Inputs/linear.mlir --schedule='64x64x32 w32x32 s3' --module=%t.uninit.ll | FileCheck %s --check-prefix=UNINIT
// UNINIT: uninitialized-read 4,
// UNINIT: uninitialized-read: 16 bytes at 0 of shared memory

// RUN: sed 's/addrspace(1) %%0, i64 64$/addrspace(1) %%0, i64 640000/' %t.ll > %t.bounds.ll
// RUN: not mpopt-emulate %S/Inputs/linear.mlir --schedule='64x64x32 w32x32 s3' --module=%t.bounds.ll | FileCheck %s --check-prefix=BOUNDS
// BOUNDS: out-of-bounds 2,
// BOUNDS: out-of-bounds: 16 bytes: no buffer is there
// BOUNDS: are wrong, first (0, 0): {{.*}}, not

// RUN: sed 's/addrspace(1) %%0, i64 64$/addrspace(1) %%0, i64 66/' %t.ll > %t.align.ll
// RUN: not mpopt-emulate %S/Inputs/linear.mlir --schedule='64x64x32 w32x32 s3' --module=%t.align.ll | FileCheck %s --check-prefix=ALIGN
// ALIGN: misaligned 2,

// The first result goes into the bias.
// RUN: sed '0,/store <8 x bfloat> \(%%[0-9]*\), ptr addrspace(1) %%[0-9]*,/s//store <8 x bfloat> \1, ptr addrspace(1) %%2,/' %t.ll > %t.readonly.ll
// RUN: not mpopt-emulate %S/Inputs/linear.mlir --schedule='64x64x32 w32x32 s3' --module=%t.readonly.ll | FileCheck %s --check-prefix=READONLY
// READONLY: read-only 1,
// READONLY: writes byte 0 of argument 2

// RUN: sed 's/, i32 16)/, i32 32)/' %t.ll > %t.operand.ll
// RUN: not mpopt-emulate %S/Inputs/linear.mlir --schedule='64x64x32 w32x32 s3' --module=%t.operand.ll | FileCheck %s --check-prefix=OPERAND
// OPERAND: bad-operand: copies 32 of 16 bytes

// Half of a warp meets one barrier, half another.
// RUN: sed -e '0,/  tail call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)/s//  %%half = icmp ult i32 %%6, 16\n  br i1 %%half, label %%one, label %%other\none:\n  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n  br label %%met\nother:\n  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n  br label %%met\nmet:/' -e 's/, %%4 \]/, %%met ]/' %t.ll > %t.diverge.ll
// RUN: not mpopt-emulate %S/Inputs/linear.mlir --schedule='64x64x32 w32x32 s3' --module=%t.diverge.ll | FileCheck %s --check-prefix=DIVERGE
// DIVERGE: divergent-barrier {{[1-9]}}

// A barrier for more threads than the block has.
// RUN: sed -e 's/^declare void @llvm.nvvm.cp.async.commit.group()/&\ndeclare void @llvm.nvvm.barrier.cta.sync.aligned.count(i32, i32)/' -e 's/barrier.cta.sync.aligned.all(i32 0)/barrier.cta.sync.aligned.count(i32 0, i32 256)/' %t.ll > %t.lock.ll
// RUN: not mpopt-emulate %S/Inputs/linear.mlir --schedule='64x64x32 w32x32 s3' --module=%t.lock.ll | FileCheck %s --check-prefix=LOCK
// LOCK: deadlock: 128 threads wait, and nobody else runs

// Only the first lane is named in a butterfly of all.
// RUN: sed s/768/512/g %S/Rows/rms-norm.mlir > %t.rows.mlir
// RUN: mpopt-codegen %t.rows.mlir --emit=llvm | sed 's/bfly.f32(i32 -1/bfly.f32(i32 1/' > %t.lanes.ll
// RUN: not mpopt-emulate %t.rows.mlir --size=3 --module=%t.lanes.ll | FileCheck %s --check-prefix=LANES
// LANES: missing-lane: reads from lane 16, which does not take part

// Shared memory that TMA stores was written without a fence.
// RUN: mpopt-codegen %S/Inputs/linear.mlir --target=sm_90a --emit=nvvm | sed /nvvm.fence.proxy/d > %t.fence.mlir
// RUN: not mpopt-emulate %S/Inputs/linear.mlir --target=sm_90a --module=%t.fence.mlir | FileCheck %s --check-prefix=FENCE
// FENCE: proxy-fence: 16 bytes at {{[0-9]+}} of shared memory

// No fault, but a wrong number: the bias is subtracted.
// RUN: sed 's/fadd <8 x float>/fsub <8 x float>/' %t.ll > %t.value.ll
// RUN: not mpopt-emulate %S/Inputs/linear.mlir --schedule='64x64x32 w32x32 s3' --module=%t.value.ll | FileCheck %s --check-prefix=VALUE
// VALUE: faults: 0 places
// VALUE: are wrong, first (

// The epilogue of a tile this narrow reads two rows in the same banks.
// RUN: mpopt-emulate %S/Inputs/linear.mlir --schedule='64x64x32 w32x32 s3' --module=%t.ll | FileCheck %s --check-prefix=BANKS
// RUN: not mpopt-emulate %S/Inputs/linear.mlir --schedule='64x64x32 w32x32 s3' --module=%t.ll --fail-on-conflicts
// BANKS: bank conflicts: {{[1-9][0-9]*}} extra passes at {{[0-9]+}} places
// BANKS-NEXT: shared read: 8 requests, 64 passes, 2.00 of ideal, at {{.*}}load <4 x float>
