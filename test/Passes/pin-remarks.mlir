// Each pin is a remark.
// RUN: mpopt %s --mp-pin --remark-policy=all --remark-format=emitRemark \
// RUN:   --remarks-filter='mp-.*' -verify-diagnostics

func.func @remark(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-remark @+1 {{[Analysis] softmax | Category:mp-pin | Remark="aten._softmax of 4x8: exp turns an absolute error of a score into a relative one of its probability; bf16 steps by 0.0625 at 10"}}
  %0 = mp.aten "aten._softmax.default"(%x) {args = {dim = -1, half_to_float = false}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// The graph tells the half format, by an argument or by an operation.
func.func @graph_of_f16(%x: tensor<4x8xf16>) -> tensor<4x8xf32> {
  %0 = mp.cast %x origin(user) : tensor<4x8xf16> to tensor<4x8xf32>
  // expected-remark @+1 {{f16 steps by 0.007812 at 10}}
  %1 = mp.aten "aten._softmax.default"(%0) {args = {dim = -1, half_to_float = false}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

func.func private @external(tensor<4xf16>) -> tensor<4xf16>
