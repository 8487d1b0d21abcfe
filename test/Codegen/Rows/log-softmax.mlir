// Log softmax of half values in f32.
//
// RUN: mpopt-codegen %s --emit=nvvm | FileCheck %s
// CHECK: llvm.func @kernel({{.*}}) attributes {{{.*}}nvvm.kernel

#e = affine_map<(r, c) -> (r, c)>
#row = affine_map<(r, c) -> (r)>
#v = affine_map<(i) -> (i)>

func.func @kernel(%x: tensor<?x768xbf16>)
    -> (tensor<?x768xf32>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %rows = tensor.dim %x, %c0 : tensor<?x768xbf16>
  %e1 = tensor.empty(%rows) : tensor<?xf32>
  %e2 = linalg.fill ins(%low : f32) outs(%e1 : tensor<?xf32>) -> tensor<?xf32>
  %max = linalg.generic {indexing_maps = [#e, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<?x768xbf16>) outs(%e2 : tensor<?xf32>) {
  ^bb0(%b0: bf16, %o0: f32):
    %vx = arith.extf %b0 : bf16 to f32
    %vs = arith.maximumf %o0, %vx : f32
    linalg.yield %vs : f32
  } -> tensor<?xf32>
  %e3 = tensor.empty(%rows) : tensor<?xf32>
  %e4 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<?xf32>) -> tensor<?xf32>
  %sum = linalg.generic {indexing_maps = [#e, #row, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x, %max : tensor<?x768xbf16>, tensor<?xf32>) outs(%e4 : tensor<?xf32>) {
  ^bb0(%b0: bf16, %b1: f32, %o0: f32):
    %vx = arith.extf %b0 : bf16 to f32
    %vd = arith.subf %vx, %b1 : f32
    %ve = math.exp %vd : f32
    %vs = arith.addf %o0, %ve : f32
    linalg.yield %vs : f32
  } -> tensor<?xf32>
  %e5 = tensor.empty(%rows) : tensor<?xf32>
  %ln = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
      ins(%sum : tensor<?xf32>) outs(%e5 : tensor<?xf32>) {
  ^bb0(%b0: f32, %o0: f32):
    %vs = math.log %b0 : f32
    linalg.yield %vs : f32
  } -> tensor<?xf32>
  %e6 = tensor.empty(%rows) : tensor<?x768xf32>
  %y = linalg.generic {indexing_maps = [#e, #row, #row, #e], iterator_types = ["parallel", "parallel"]}
      ins(%x, %max, %ln : tensor<?x768xbf16>, tensor<?xf32>, tensor<?xf32>) outs(%e6 : tensor<?x768xf32>) {
  ^bb0(%b0: bf16, %b1: f32, %b2: f32, %o0: f32):
    %vx = arith.extf %b0 : bf16 to f32
    %vd = arith.subf %vx, %b1 : f32
    %vs = arith.subf %vd, %b2 : f32
    linalg.yield %vs : f32
  } -> tensor<?x768xf32>
  return %y : tensor<?x768xf32>
}
