// What the CUDA emitter refuses, and wrong words on the command line.
//
// RUN: not mpopt-codegen %s --target=sm_80 2>&1 | FileCheck %s --check-prefix=TF32
// TF32: error: no schedule for sm_80: f32 operands are multiplied as TF32 only where the kernel says mp.tf32 = true

// RUN: not mpopt-codegen %s --schedule='128x96x32 w64x32' 2>&1 | FileCheck %s --check-prefix=SIZES
// SIZES: error: schedule 128x96x32 w64x32 s4 r1 k1 g8 does not fit: f32 operands

// RUN: not mpopt-codegen %s --schedule='128x128x32 q3' 2>&1 | FileCheck %s --check-prefix=WORD
// WORD: error: 'q3' of a schedule is not understood; it looks like '128x128x32 w64x64 s4 r1 k1 g8'

// RUN: not mpopt-codegen %s --target=sm_75 2>&1 | FileCheck %s --check-prefix=TARGET
// TARGET: error: unknown target 'sm_75'; known are: sm_80 sm_86

func.func @kernel(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %acc = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
      affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<64x64xf32>, tensor<64x64xf32>) outs(%z : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<64x64xf32>
  return %acc : tensor<64x64xf32>
}
