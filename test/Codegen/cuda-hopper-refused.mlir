// Rows of 12 elements have 24 bytes: TMA cannot read them, the mma.sync kernel
// can.
//
// RUN: not mpopt-codegen %s --target=sm_90a --schedule='wgmma 64x64x64' 2>&1 | FileCheck %s --check-prefix=REFUSED
// REFUSED: error: wgmma does not take this kernel: rows of lhs have 24 bytes, which is no multiple of 16

// RUN: mpopt-codegen %s --target=sm_90a | FileCheck %s
// CHECK: mma.sync.aligned.m16n8k16
// CHECK-NOT: wgmma

func.func @kernel(%x: tensor<64x12xf16>, %w: tensor<12x64xf16>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %acc = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
      affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<64x12xf16>, tensor<12x64xf16>) outs(%z : tensor<64x64xf32>) {
  ^bb0(%a: f16, %b: f16, %c: f32):
    %af = arith.extf %a : f16 to f32
    %bf = arith.extf %b : f16 to f32
    %p = arith.mulf %af, %bf : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<64x64xf32>
  return %acc : tensor<64x64xf32>
}
