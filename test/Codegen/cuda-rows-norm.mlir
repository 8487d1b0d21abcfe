// A warp holds a row of a norm: 16-byte accesses alone, butterflies, no shared
// memory; nothing that the kernel does not ask for is contracted.
// RUN: mpopt-codegen %S/Rows/rms-norm.mlir --emit=launch | FileCheck %s --check-prefix=LAUNCH
// RUN: mpopt-codegen %S/Rows/rms-norm.mlir --emit=mlir | FileCheck %s --check-prefix=MLIR
// RUN: mpopt-codegen %S/Rows/softmax-backward.mlir | FileCheck %s --check-prefix=PTX

// LAUNCH: schedule v8 t32 g4 s1 c3{{$}}
// LAUNCH: block 128
// LAUNCH: workspace 0 per block
// LAUNCH: grid -1 * 1 / 4

// MLIR: gpu.func @kernel
// MLIR-SAME: known_block_size = array<i32: 128, 1, 1>
// MLIR-COUNT-3: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xbf16>
// MLIR-COUNT-5: nvvm.shfl.sync bfly
// MLIR-NOT: nvvm.shfl.sync
// MLIR: math.rsqrt

// PTX-NOT: ld.global.b16
// PTX-NOT: ld.global.nc.b16
// PTX-COUNT-6: ld.global{{.*}}.v4.b32
// PTX-NOT: ld.global
// PTX-NOT: fma.rn.f32
// PTX-COUNT-5: shfl.sync.bfly.b32
// PTX-NOT: bar.sync
// PTX: cvt.rn.bf16x2.f32
// PTX-COUNT-3: st.global.v4.b32
// PTX-NOT: st.global
