// One case for each constraint of pins in Spec.md; a function bears the label.
// RUN: mpopt %s --split-input-file --verify-diagnostics

func.func @pin_c1(%x: tensor<4xf32>) {
  // expected-error @+1 {{'mp.gelu' op 'mp.pin' must be an array of #mp.pin, found "fp32"}}
  %0 = mp.gelu(%x) {mp.pin = "fp32"} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @pin_c1_element(%x: tensor<4xf32>) {
  // expected-error @+1 {{'mp.pin' must be an array of #mp.pin, found "fp32" in it}}
  %0 = mp.gelu(%x) {mp.pin = ["fp32"]} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// expected-error @+1 {{op argument 0: 'mp.pin' must be an array of #mp.pin, found unit}}
func.func @pin_c1_argument(%x: tensor<4xf32> {mp.pin}) {
  return
}

// -----

func.func @pin_c2(%x: tensor<4xf32>) {
  // expected-error @+1 {{pin has no rule}}
  %0 = mp.gelu(%x) {mp.pin = [#mp.pin<fp32 result, "", "exponentials">]} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @pin_c2_reason(%x: tensor<4xf32>) {
  // expected-error @+1 {{pin of rule 'softmax' has no reason}}
  %0 = mp.gelu(%x) {mp.pin = [#mp.pin<fp32 operands, "softmax", "">]} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @pin_c3(%x: tensor<4xf32>) {
  // expected-error @+1 {{pin of both results and operands has indices}}
  %0 = mp.gelu(%x) {mp.pin = [#mp.pin<keep both[0], "policy", "asked for">]} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @pin_c4(%x: tensor<4xf32>) {
  // expected-error @+1 {{'mp.gelu' op pin is about result 1, of 1}}
  %0 = mp.gelu(%x) {mp.pin = [#mp.pin<fp32 result[1], "policy", "asked for">]} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @pin_c4_operand(%x: tensor<4xf32>) {
  // expected-error @+1 {{'mp.gelu' op pin is about operand -1, of 1}}
  %0 = mp.gelu(%x) {mp.pin = [#mp.pin<fp32 operands[-1], "policy", "asked for">]} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// expected-error @+1 {{op argument 0: pin is about operand 0, of 0}}
func.func @pin_c4_argument(%x: tensor<4xf32> {mp.pin = [#mp.pin<fp32 operands[0], "policy", "asked for">]}) {
  return
}

// -----

// expected-error @+1 {{op 'mp.pin' belongs to operations and arguments}}
func.func @pin_c5(%x: tensor<4xf32>) attributes {mp.pin = []} {
  return
}
