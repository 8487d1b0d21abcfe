// Every rewrite, applied or missed, is a remark of the pass's category.
// RUN: mpopt %s --mp-eliminate-casts --mp-report-casts --split-input-file \
// RUN:   --remark-policy=all --remark-format=emitRemark --remarks-filter='mp-.*' -verify-diagnostics

func.func @applied(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  %0 = mp.cast %x origin(user) : tensor<4xbf16> to tensor<4xf32>
  // expected-remark @+1 {{[Passed] fold-exact-round-trip | Category:mp-eliminate-casts | Remark="bf16 to f32 is exact and f32 to bf16 goes back"}}
  %1 = mp.cast %0 origin(user) : tensor<4xf32> to tensor<4xbf16>
  %2 = mp.aten "aten.exp.default"(%1) : (tensor<4xbf16>) -> tensor<4xbf16>
  return %2 : tensor<4xbf16>
}

// -----

func.func @missed_user(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-remark @+2 {{the user wrote this rounding: contract strict}}
  // expected-remark @+1 {{user asked for f32 to bf16}}
  %0 = mp.cast %x origin(user) : tensor<4xf32> to tensor<4xbf16>
  // expected-remark @+1 {{user asked for bf16 to f32; read by aten.exp.default; exact, changes no value}}
  %1 = mp.cast %0 origin(user) : tensor<4xbf16> to tensor<4xf32>
  %2 = mp.aten "aten.exp.default"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

func.func @missed_observed(%x: tensor<4xf32>) -> tensor<4xi1> {
  // expected-remark @+2 {{a comparison, index or integer conversion reads it}}
  // expected-remark @+1 {{autocast asked for f32 to bf16}}
  %0 = mp.cast %x origin(autocast) : tensor<4xf32> to tensor<4xbf16>
  // expected-remark @+1 {{promotion asked for bf16 to f32; read by aten.isinf.default}}
  %1 = mp.cast %0 origin(promotion) : tensor<4xbf16> to tensor<4xf32>
  %2 = mp.aten "aten.isinf.default"(%1) : (tensor<4xf32>) -> tensor<4xi1>
  return %2 : tensor<4xi1>
}

// -----

func.func @missed_saved(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-remark @+2 {{backward would keep bf16 to f32 wide: saved bytes would grow}}
  // expected-remark @+1 {{autocast asked for f32 to bf16}}
  %0 = mp.cast %x origin(autocast) : tensor<4xf32> to tensor<4xbf16>
  // expected-remark @+1 {{autocast asked for bf16 to f32}}
  %1 = mp.cast %0 origin(autocast) {mp.backward} : tensor<4xbf16> to tensor<4xf32>
  %2 = mp.aten "aten.exp.default"(%1) {mp.backward} : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

func.func @missed_target(%x: tensor<4x4xbf16>) -> tensor<4x4xf32> {
  // expected-remark @+1 {{bf16 to f32; read by aten.mm.default; exact, changes no value}}
  %0 = mp.cast %x origin(user) : tensor<4x4xbf16> to tensor<4x4xf32>
  // expected-remark @+1 {{target cpu has no matrix product of halves with an f32 result}}
  %1 = mp.matmul %0, %0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}
