// A linear layer with bias, ReLU, a rounding and a residual: one block of 128
// threads, one step of 32 along k.
//
// RUN: mpopt-codegen %s --target=sm_80 --schedule='128x128x32 w64x64 s4 r2' > %t.ptx
// RUN: FileCheck %s --check-prefix=HEAD --input-file=%t.ptx
// RUN: FileCheck %s --check-prefix=MMA --input-file=%t.ptx
// RUN: FileCheck %s --check-prefix=LDMATRIX --input-file=%t.ptx
// RUN: FileCheck %s --check-prefix=COPY --input-file=%t.ptx
// RUN: FileCheck %s --check-prefix=STORE --input-file=%t.ptx
// RUN: FileCheck %s --check-prefix=ROUND --input-file=%t.ptx

// Four warps have 64 x 64 of the result each, and two blocks share a multiprocessor.
// HEAD: .target sm_80
// HEAD: .maxntid 128, 1, 1
// HEAD: .minnctapersm 2

// MMA-COUNT-64: mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
// MMA-NOT: mma.sync

// Eight for each of two steps of 16 along k, and eight before the loop.
// LDMATRIX-COUNT-24: ldmatrix.sync.aligned.m8n8.x4.shared.b16
// LDMATRIX-NOT: ldmatrix

// Three stages before the loop, one in it.
// COPY-COUNT-32: cp.async.cg.shared.global [{{.*}}], [{{.*}}], 16,
// COPY-NOT: cp.async.c{{[ag]}}

// 16 bytes at a time: two runs in each of two slabs.
// STORE-COUNT-4: st.global.v4
// STORE-NOT: st.global

// The bias is added and rounded by itself. LLVM has made the last widening,
// addition and rounding one operation of bf16, with the same result.
// ROUND-NOT: fma.rn.f32
// ROUND: add.rn.f32
// ROUND: max
// ROUND: cvt.rn.bf16x2.f32
// ROUND: fma.rn.bf16x2
// ROUND-NOT: fma.rn.f32

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
