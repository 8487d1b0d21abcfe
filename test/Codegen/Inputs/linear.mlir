// A linear layer with bias and ReLU: one tile of 64 x 64, three steps of 32 along k.

#m = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (n, k)>
#acc = affine_map<(m, n, k) -> (m, n)>
#element = affine_map<(m, n) -> (m, n)>
#column = affine_map<(m, n) -> (n)>

func.func @kernel(%x: tensor<64x96xbf16>, %w: tensor<64x96xbf16>,
                  %bias: tensor<64xf32>) -> tensor<64x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %acc = linalg.generic {indexing_maps = [#m, #w, #acc],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<64x96xbf16>, tensor<64x96xbf16>) outs(%z : tensor<64x64xf32>) {
  ^bb0(%a: bf16, %b: bf16, %c: f32):
    %af = arith.extf %a : bf16 to f32
    %bf = arith.extf %b : bf16 to f32
    %p = arith.mulf %af, %bf : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  } -> tensor<64x64xf32>
  %o = tensor.empty() : tensor<64x64xbf16>
  %y = linalg.generic {indexing_maps = [#element, #column, #element],
      iterator_types = ["parallel", "parallel"]}
      ins(%acc, %bias : tensor<64x64xf32>, tensor<64xf32>)
      outs(%o : tensor<64x64xbf16>) {
  ^bb0(%a: f32, %b: f32, %u: bf16):
    %s = arith.addf %a, %b : f32
    %relu = arith.maximumf %s, %zero : f32
    %h = arith.truncf %relu : f32 to bf16
    linalg.yield %h : bf16
  } -> tensor<64x64xbf16>
  return %y : tensor<64x64xbf16>
}
