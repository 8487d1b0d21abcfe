// Rows that need several warps exchange partial results through shared memory;
// rows that no block holds are read in a loop, odd ones element by element.
// RUN: sed s/768/8192/g %S/Rows/layer-norm-backward.mlir | mpopt-codegen | FileCheck %s --check-prefix=BLOCK
// RUN: sed s/768/8192/g %S/Rows/layer-norm-backward.mlir | mpopt-codegen --emit=launch | FileCheck %s --check-prefix=WIDE
// RUN: sed s/768/50257/g %S/Rows/cross-entropy-backward.mlir | mpopt-codegen --emit=launch | FileCheck %s --check-prefix=ODD
// RUN: sed s/768/131072/g %S/Rows/rms-norm.mlir | mpopt-codegen --emit=launch | FileCheck %s --check-prefix=LOOP

// WIDE: schedule v8 t512 g1 s32 c2{{$}}
// WIDE: block 512
// WIDE: workspace 65552 per block

// Two sums of a row in one exchange; a butterfly over lanes and one over warps.
// BLOCK: .shared {{.*}} slots[128]
// BLOCK: ld.global{{.*}}.v4.b32
// BLOCK-COUNT-10: shfl.sync.bfly.b32
// BLOCK: bar.sync
// BLOCK-COUNT-8: shfl.sync.bfly.b32
// The last block joins the column sums.
// BLOCK: fence.acq_rel.gpu
// BLOCK: atom{{.*}}.add.u32

// ODD: schedule v1 t128 g1 s1 c16{{$}}
// LOOP: schedule v8 t512 g1 s1 c32 looped
