// One function per constraint, named after its label in Spec.md.
// RUN: mpopt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{'mp.op_rows' must be a dictionary, and on a function}}
func.func @op_rows_c1(%x: tensor<4xf32>) attributes {mp.op_rows = ["mylib.scale"]} {
  return
}

// -----

func.func @op_rows_c1_place(%x: tensor<4xf32>) {
  // expected-error @+1 {{'mp.op_rows' must be a dictionary, and on a function}}
  %0 = mp.gelu(%x) {mp.op_rows = {mylib.scale = "pointwise"}} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

// expected-error @+1 {{'mp.op_rows' has no kind for 'mylib.scale', but "pointwize"}}
func.func @op_rows_c2(%x: tensor<4xf32>) attributes {mp.op_rows = {mylib.scale = "pointwize"}} {
  return
}
