// One case for each constraint of Spec.md; a function bears the label.
// RUN: mpopt %s --split-input-file --verify-diagnostics

func.func @cast_c1(%x: tensor<4xf32>) -> tensor<8xbf16> {
  // expected-error @+1 {{op requires the same shape for all operands and results}}
  %0 = mp.cast %x origin(user) : tensor<4xf32> to tensor<8xbf16>
  return %0 : tensor<8xbf16>
}

// -----

func.func @cast_c2(%x: tensor<*xf32>) -> tensor<*xbf16> {
  // expected-error @+1 {{expected builtin.tensor, but found 'tensor<*xf32>'}}
  %0 = mp.cast %x origin(user) : tensor<*xf32> to tensor<*xbf16>
  return %0 : tensor<*xbf16>
}

// -----

func.func @cast_c3(%x: tensor<4xf32>) -> tensor<4xbf16> {
  // expected-error @+1 {{unknown origin 'nobody', expected user, autocast, promotion, decomposition or mpopt}}
  %0 = mp.cast %x origin(nobody) : tensor<4xf32> to tensor<4xbf16>
  return %0 : tensor<4xbf16>
}

// -----

func.func @cast_c3_generic(%x: tensor<4xf32>) -> tensor<4xbf16> {
  // expected-error @+1 {{requires attribute 'origin'}}
  %0 = "mp.cast"(%x) : (tensor<4xf32>) -> tensor<4xbf16>
  return %0 : tensor<4xbf16>
}

// -----

func.func @round_c1(%x: tensor<4xf16>) -> tensor<4xf16> {
  // expected-error @+1 {{rounding 'f16' to 'f32' changes no value}}
  %0 = mp.round %x to f32 origin(user) : tensor<4xf16>
  return %0 : tensor<4xf16>
}

// -----

func.func @round_c1_not_a_float(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{format must be a float type, found 'i32'}}
  %0 = mp.round %x to i32 origin(user) : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// Two half types: a bf16 value may have no place in f16.
func.func @round_c2(%x: tensor<4xf16>) -> tensor<4xf16> {
  // expected-error @+1 {{type 'f16' does not hold every 'bf16'}}
  %0 = mp.round %x to bf16 origin(user) : tensor<4xf16>
  return %0 : tensor<4xf16>
}

// -----

func.func @aten_c1(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{callee 'relu' must name an overload, as in aten.mm.default}}
  %0 = mp.aten "relu"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @aten_c2(%x: tensor<4xf32>, %s: index) -> tensor<?xf32> {
  // expected-error @+1 {{args refer to operand %2, of 2}}
  %0 = mp.aten "aten.view.default"(%x, %s) {args = {size = ["%2"]}} : (tensor<4xf32>, index) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

func.func @aten_c2_nested(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{args refer to operand %9, of 1}}
  %0 = mp.aten "aten.index.Tensor"(%x) {args = {indices = [unit, {k = "%9"}]}} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @matmul_c1(%a: tensor<4x8xf16>, %b: tensor<8x2xf32>) -> tensor<4x2xf32> {
  // expected-error @+1 {{operand element types differ: 'f16' and 'f32'}}
  %0 = mp.matmul %a, %b : (tensor<4x8xf16>, tensor<8x2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// -----

func.func @matmul_c2(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>) -> tensor<4x2xbf16> {
  // expected-error @+1 {{result element type 'bf16' does not hold the operands' 'f32'}}
  %0 = mp.matmul %a, %b : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xbf16>
  return %0 : tensor<4x2xbf16>
}

// -----

func.func @matmul_c3(%a: tensor<3x4x8xf32>, %b: tensor<8x2xf32>) -> tensor<3x4x2xf32> {
  // expected-error @+1 {{operands and result must all have rank 2 or all 3}}
  %0 = mp.matmul %a, %b : (tensor<3x4x8xf32>, tensor<8x2xf32>) -> tensor<3x4x2xf32>
  return %0 : tensor<3x4x2xf32>
}

// -----

func.func @matmul_c4(%a: tensor<4x8xf32>, %b: tensor<7x2xf32>) -> tensor<4x2xf32> {
  // expected-error @+1 {{cannot multiply 8 columns with 7 rows}}
  %0 = mp.matmul %a, %b : (tensor<4x8xf32>, tensor<7x2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// -----

func.func @raised_c1_layer_norm(%x: tensor<4x8xf32>, %w: tensor<8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{'mp.layer_norm' op expects 3 results, found 1}}
  %0 = mp.layer_norm(%x, %w, %w) : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

func.func @raised_c1_layer_norm_backward(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{'mp.layer_norm_backward' op expects 3 results, found 1}}
  %0 = mp.layer_norm_backward(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

func.func @raised_c1_group_norm(%x: tensor<2x8x4xf32>) -> tensor<2x8x4xf32> {
  // expected-error @+1 {{'mp.group_norm' op expects 3 results, found 2}}
  %0:2 = mp.group_norm(%x) : (tensor<2x8x4xf32>) -> (tensor<2x8x4xf32>, tensor<2x2xf32>)
  return %0#0 : tensor<2x8x4xf32>
}

// -----

func.func @raised_c1_rms_norm(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{'mp.rms_norm' op expects 2 results, found 1}}
  %0 = mp.rms_norm(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

func.func @raised_c1_softmax(%x: tensor<4xf32>) {
  // expected-error @+1 {{'mp.softmax' op expects 1 results, found 2}}
  %0:2 = mp.softmax(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @raised_c1_log_softmax(%x: tensor<4xf32>) {
  // expected-error @+1 {{'mp.log_softmax' op expects 1 results, found 2}}
  %0:2 = mp.log_softmax(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @raised_c1_nll_loss(%x: tensor<4x8xf32>, %t: tensor<4xi64>) {
  // expected-error @+1 {{'mp.nll_loss' op expects 2 results, found 1}}
  %0 = mp.nll_loss(%x, %t) : (tensor<4x8xf32>, tensor<4xi64>) -> tensor<f32>
  return
}

// -----

func.func @raised_c1_gelu(%x: tensor<4xf32>) {
  // expected-error @+1 {{'mp.gelu' op expects 1 results, found 2}}
  %0:2 = mp.gelu(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @raised_c1_silu(%x: tensor<4xf32>) {
  // expected-error @+1 {{'mp.silu' op expects 1 results, found 2}}
  %0:2 = mp.silu(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @materialize_c1(%x: tensor<4xf32>) -> tensor<4xbf16> {
  // expected-error @+1 {{failed to verify that all of {input, output} have same type}}
  %0 = "mp.materialize"(%x) : (tensor<4xf32>) -> tensor<4xbf16>
  return %0 : tensor<4xbf16>
}

// -----

func.func @scaled_update_c1(%g: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{body takes other types than the operands'}}
  %0 = mp.scaled_update(%g) : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<4xf32>):
    %1 = mp.aten "aten.neg.default"(%a) : (tensor<4xf32>) -> tensor<4xf32>
    mp.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<8xf32>
}

// -----

func.func @scaled_update_c2(%g: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{body yields other types than the results'}}
  %0 = mp.scaled_update(%g) : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<8xf32>):
    %1 = mp.cast %a origin(user) : tensor<8xf32> to tensor<8xbf16>
    mp.yield %1 : tensor<8xbf16>
  }
  return %0 : tensor<8xf32>
}

// -----

func.func @scaled_update_c3(%g: tensor<8xf32>) -> tensor<8xf32> {
  %0 = mp.scaled_update(%g) : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<8xf32>):
    // expected-error @+1 {{in the body of a scaled_update is not elementwise}}
    %1 = mp.aten "aten.cumsum.default"(%a) {args = {dim = 0}} : (tensor<8xf32>) -> tensor<8xf32>
    mp.yield %1 : tensor<8xf32>
  }
  return %0 : tensor<8xf32>
}

// -----

func.func @scaled_update_c4(%g: tensor<8xf32>, %h: tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>) {
  // expected-error @+1 {{results have several shapes}}
  %0:2 = mp.scaled_update(%g, %h) : (tensor<8xf32>, tensor<4xf32>) -> (tensor<8xf32>, tensor<4xf32>) {
  ^bb0(%a: tensor<8xf32>, %b: tensor<4xf32>):
    %1 = mp.aten "aten.neg.default"(%a) : (tensor<8xf32>) -> tensor<8xf32>
    %2 = mp.aten "aten.neg.default"(%b) : (tensor<4xf32>) -> tensor<4xf32>
    mp.yield %1, %2 : tensor<8xf32>, tensor<4xf32>
  }
  return %0#0, %0#1 : tensor<8xf32>, tensor<4xf32>
}

// -----

func.func @yield_c1(%g: tensor<8xf32>) {
  // expected-error @+1 {{expects parent op to be one of 'mp.region, mp.scaled_update'}}
  mp.yield %g : tensor<8xf32>
}
