// The linear layer of cuda-matmul-nt.mlir on sm_90a: TMA fills a ring, two
// warpgroups multiply, and the result leaves through TMA.
//
// RUN: mpopt-codegen %s --target=sm_90a --schedule='wgmma 128x128x64' > %t.ptx
// RUN: FileCheck %s --check-prefix=HEAD --input-file=%t.ptx
// RUN: FileCheck %s --check-prefix=WGMMA --input-file=%t.ptx
// RUN: FileCheck %s --check-prefix=LOAD --input-file=%t.ptx
// RUN: FileCheck %s --check-prefix=STORE --input-file=%t.ptx
// RUN: FileCheck %s --check-prefix=ROUND --input-file=%t.ptx
// RUN: mpopt-codegen %s --target=sm_90a --schedule='wgmma 128x128x64' --emit=launch | FileCheck %s --check-prefix=LAUNCH
// RUN: not mpopt-codegen %s --target=sm_90a --schedule='wgmma 96x96' 2>&1 | FileCheck %s --check-prefix=NAME

// The three tensor maps stand among the parameters.
// HEAD: .target sm_90a
// HEAD-COUNT-3: .param .align 64 .b8 mp_wgmma_param_{{[0-2]}}[128]
// HEAD: .maxntid 384, 1, 1
// HEAD: .maxnreg 168
// HEAD: setmaxnreg.inc.sync.aligned.u32 232
// HEAD: setmaxnreg.dec.sync.aligned.u32 40

// One step before the loop and one in it; a group stays in flight.
// WGMMA: wgmma.fence.sync.aligned
// WGMMA-COUNT-4: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
// WGMMA: wgmma.commit_group.sync.aligned
// WGMMA: wgmma.fence.sync.aligned
// WGMMA-COUNT-4: wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16
// WGMMA: wgmma.commit_group.sync.aligned
// WGMMA: wgmma.wait_group.sync.aligned 1
// WGMMA: mbarrier.arrive.shared.b64
// WGMMA: wgmma.wait_group.sync.aligned 0
// WGMMA-NOT: wgmma

// Both operands have k inside: one box each.
// LOAD: mbarrier.try_wait.parity
// LOAD: mbarrier.arrive.expect_tx
// LOAD-COUNT-2: cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
// LOAD-NOT: cp.async.bulk.tensor.2d.shared

// Two strips of 64 columns, each staged for all threads of its warpgroup.
// STORE: st.shared.b32
// STORE: fence.proxy.async.shared::cta
// STORE: cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group
// STORE: cp.async.bulk.wait_group.read 1
// STORE: fence.proxy.async.shared::cta
// STORE: cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group
// STORE: cp.async.bulk.wait_group.read 0
// STORE-NOT: st.global

// ROUND-NOT: fma.rn.f32
// ROUND: add.rn.f32
// ROUND: max
// ROUND: cvt.rn.bf16x2.f32
// ROUND-NOT: fma.rn.f32

// LAUNCH: schedule wgmma 128x128x64
// LAUNCH: block 384
// LAUNCH: shared 229472
// LAUNCH: map of buffer 0: 256 x 256, box 64 x 128
// LAUNCH: map of buffer 1: 256 x 256, box 64 x 128
// LAUNCH: map of buffer 4: 256 x 256, box 64 x 64

// NAME: error: unknown schedule; known are: 'wgmma 128x256x64'

#m = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (n, k)>
#acc = affine_map<(m, n, k) -> (m, n)>
#element = affine_map<(m, n) -> (m, n)>
#column = affine_map<(m, n) -> (n)>

func.func @kernel(%x: tensor<256x256xbf16>, %w: tensor<256x256xbf16>,
                  %bias: tensor<256xf32>, %residual: tensor<256x256xbf16>)
    -> tensor<256x256xbf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256x256xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %acc = linalg.generic {indexing_maps = [#m, #w, #acc],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<256x256xbf16>, tensor<256x256xbf16>) outs(%z : tensor<256x256xf32>) {
  ^bb0(%a: bf16, %b: bf16, %c: f32):
    %af = arith.extf %a : bf16 to f32
    %bf = arith.extf %b : bf16 to f32
    %p = arith.mulf %af, %bf : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<256x256xf32>
  %o = tensor.empty() : tensor<256x256xbf16>
  %y = linalg.generic {indexing_maps = [#element, #column, #element, #element],
      iterator_types = ["parallel", "parallel"]}
      ins(%acc, %bias, %residual : tensor<256x256xf32>, tensor<256xf32>, tensor<256x256xbf16>)
      outs(%o : tensor<256x256xbf16>) {
  ^bb0(%a: f32, %b: f32, %r: bf16, %u: bf16):
    %s = arith.addf %a, %b : f32
    %relu = arith.maximumf %s, %zero : f32
    %h = arith.truncf %relu : f32 to bf16
    %hf = arith.extf %h : bf16 to f32
    %rf = arith.extf %r : bf16 to f32
    %t = arith.addf %hf, %rf : f32
    %th = arith.truncf %t : f32 to bf16
    linalg.yield %th : bf16
  } -> tensor<256x256xbf16>
  return %y : tensor<256x256xbf16>
}
