// The gradient of a cross entropy in half logits.
//
// RUN: mpopt-codegen %s --emit=nvvm | FileCheck %s
// CHECK: llvm.func @kernel({{.*}}) attributes {{{.*}}nvvm.kernel

#e = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>

func.func @kernel(%x: tensor<?x768xbf16>, %label: tensor<?xi64>, %lse: tensor<?xf32>, %dl: tensor<?xf32>)
    -> (tensor<?x768xbf16>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %rows = tensor.dim %x, %c0 : tensor<?x768xbf16>
  %e1 = tensor.empty(%rows) : tensor<?x768xbf16>
  %dx = linalg.generic {indexing_maps = [#e, #row, #row, #row, #e], iterator_types = ["parallel", "parallel"]}
      ins(%x, %label, %lse, %dl : tensor<?x768xbf16>, tensor<?xi64>, tensor<?xf32>, tensor<?xf32>) outs(%e1 : tensor<?x768xbf16>) {
  ^bb0(%b0: bf16, %b1: i64, %b2: f32, %b3: f32, %o0: bf16):
    %vx = arith.extf %b0 : bf16 to f32
    %vd = arith.subf %vx, %b2 : f32
    %ve = math.exp %vd : f32
    %vi = linalg.index 1 : index
    %vj = arith.index_cast %vi : index to i64
    %vq = arith.cmpi eq, %vj, %b1 : i64
    %vh = arith.select %vq, %one, %zero : f32
    %vp = arith.subf %ve, %vh : f32
    %vs = arith.mulf %vp, %b3 : f32
    %vt = arith.truncf %vs : f32 to bf16
    linalg.yield %vt : bf16
  } -> tensor<?x768xbf16>
  return %dx : tensor<?x768xbf16>
}
