// The gradient of a weight, rows known only at run time: both operands lie
// across k, and the bias gradient is a sum of the left one beside it.
//
// RUN: mpopt-codegen %s --target=sm_80 --schedule='128x128x32 w64x32 s4' > %t.ptx
// RUN: FileCheck %s --check-prefix=MMA --input-file=%t.ptx
// RUN: FileCheck %s --check-prefix=LDMATRIX --input-file=%t.ptx
// RUN: mpopt-codegen %s --target=sm_80 --schedule='128x128x32 w64x32 s4 k4' > %t.split.ptx
// RUN: FileCheck %s --check-prefix=SPLIT --input-file=%t.split.ptx
// RUN: mpopt-codegen %s --schedule='128x128x32 w64x32 s4 k4' --emit=launch \
// RUN:   | FileCheck %s --check-prefix=LAUNCH

// Two loops: 16 products for each step of 16 in both, and four more with ones
// in the first, that of the blocks which store the sum.
// MMA-COUNT-72: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// MMA-NOT: mma.sync

// LDMATRIX-COUNT-36: ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16
// LDMATRIX-NOT: ldmatrix

// The last block of a tile adds the parts.
// SPLIT: fence.acq_rel.gpu
// SPLIT: atom.{{.*}}add.u32
// SPLIT: fence.acq_rel.gpu

// LAUNCH: schedule 128x128x32 w64x32 s4 r1 k4 g8
// LAUNCH: block 256
// LAUNCH: workspace 81936 per block
// LAUNCH: grid 256 * 1 / 128
// LAUNCH: grid 256 * 1 / 128
// LAUNCH: grid 1 * 4 / 1

#dy = affine_map<(m, n, k) -> (k, m)>
#x = affine_map<(m, n, k) -> (k, n)>
#acc = affine_map<(m, n, k) -> (m, n)>

func.func @kernel(%dy: tensor<?x256xf16>, %x: tensor<?x256xf16>)
    -> (tensor<256x256xf32>, tensor<256xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %dw = linalg.generic {indexing_maps = [#dy, #x, #acc],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%dy, %x : tensor<?x256xf16>, tensor<?x256xf16>) outs(%z : tensor<256x256xf32>) {
  ^bb0(%a: f16, %b: f16, %c: f32):
    %af = arith.extf %a : f16 to f32
    %bf = arith.extf %b : f16 to f32
    %p = arith.mulf %af, %bf : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<256x256xf32>
  %be = tensor.empty() : tensor<256xf32>
  %bz = linalg.fill ins(%zero : f32) outs(%be : tensor<256xf32>) -> tensor<256xf32>
  %db = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0)>],
      iterator_types = ["parallel", "reduction"]}
      ins(%dy : tensor<?x256xf16>) outs(%bz : tensor<256xf32>) {
  ^bb0(%a: f16, %c: f32):
    %af = arith.extf %a : f16 to f32
    %s = arith.addf %c, %af : f32
    linalg.yield %s : f32
  } -> tensor<256xf32>
  return %dw, %db : tensor<256x256xf32>, tensor<256xf32>
}
