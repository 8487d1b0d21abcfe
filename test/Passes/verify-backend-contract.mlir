// Each rule, and what is said at the region whose kernel breaks it.
// RUN: mpopt %s --split-input-file --mp-verify-backend-contract --verify-diagnostics

// expected-error @+1 {{rule K1: unsupported argument or result type 'tensor<4x8xf64>'}}
func.func @kernel(%x: tensor<4x8xf64>) -> tensor<4x8xf64> {
  return %x : tensor<4x8xf64>
}

// -----

// expected-error @+1 {{rule K2: only the first dimension may be dynamic}}
func.func @kernel(%x: tensor<4x?xf32>) -> tensor<4x?xf32> {
  return %x : tensor<4x?xf32>
}

// -----

func.func @kernel(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{rule K3: linalg.copy may not stand in a kernel}}
  %0 = linalg.copy ins(%x : tensor<4x8xf32>) outs(%x : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

#id = affine_map<(r, c) -> (r, c)>
func.func @kernel(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %e = tensor.empty() : tensor<4x8xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    // expected-error @+1 {{rule K4: fast-math flags are not allowed}}
    %1 = arith.addf %a, %a fastmath<fast> : f32
    linalg.yield %1 : f32
  } -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

#id = affine_map<(r, c) -> (r, c)>
#turned = affine_map<(r, c) -> (c, r)>
func.func @kernel(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %e = tensor.empty() : tensor<8x8xf32>
  // expected-error @+1 {{rule K5: operand 0 is not read in the order of the loops}}
  %0 = linalg.generic {indexing_maps = [#turned, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

func.func @region(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{has a kernel that breaks rule K1: the module of a kernel holds one function, @kernel}}
  %0 = mp.region rows "relu" (%x) {kernel = "module {}"} : (tensor<4x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%a: tensor<4x8xf32>):
    mp.yield %a : tensor<4x8xf32>
  }
  return %0 : tensor<4x8xf32>
}

// -----

func.func @not_parsed(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{has a kernel that cannot be parsed}}
  %0 = mp.region rows "relu" (%x) {kernel = "modul {}"} : (tensor<4x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%a: tensor<4x8xf32>):
    mp.yield %a : tensor<4x8xf32>
  }
  return %0 : tensor<4x8xf32>
}

// -----

func.func @other_kernel(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{has a kernel with other operands or results than its own}}
  %0 = mp.region rows "relu" (%x) {kernel = "#id = affine_map<(r, c) -> (r, c)>\nfunc.func @kernel(%x: tensor<2x8xf32>) -> tensor<2x8xf32> {\n%e = tensor.empty() : tensor<2x8xf32>\n%0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = [\"parallel\", \"parallel\"]} ins(%x : tensor<2x8xf32>) outs(%e : tensor<2x8xf32>) {\n^bb0(%a: f32, %b: f32):\nlinalg.yield %a : f32\n} -> tensor<2x8xf32>\nreturn %0 : tensor<2x8xf32>\n}"} : (tensor<4x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%a: tensor<4x8xf32>):
    mp.yield %a : tensor<4x8xf32>
  }
  return %0 : tensor<4x8xf32>
}
