// One case for each constraint of mp.region in Spec.md.
// RUN: mpopt %s --split-input-file --verify-diagnostics

func.func @region_c1(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{body takes other types than the operands'}}
  %0 = mp.region rows "neg" (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xbf16>):
    %1 = mp.cast %a origin(user) : tensor<4xbf16> to tensor<4xf32>
    mp.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @region_c2(%x: tensor<4xf32>) -> tensor<4xbf16> {
  // expected-error @+1 {{body yields other types than the results'}}
  %0 = mp.region rows "neg" (%x) : (tensor<4xf32>) -> tensor<4xbf16> {
  ^bb0(%a: tensor<4xf32>):
    mp.yield %a : tensor<4xf32>
  }
  return %0 : tensor<4xbf16>
}

// -----

func.func @region_c3_effects(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.region rows "copy" (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    // expected-error @+1 {{cannot stand in the body of a region}}
    %1 = mp.aten effects "aten.copy_.default"(%a, %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    mp.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @region_c3_nested(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.region rows "outer" (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    // expected-error @+1 {{cannot stand in the body of a region}}
    %1 = mp.region rows "inner" (%a) : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%b: tensor<4xf32>):
      mp.yield %b : tensor<4xf32>
    }
    mp.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @region_c4_none(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{of kind matmul holds 0 matrix products, expected 1}}
  %0 = mp.region matmul "relu" (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    mp.yield %a : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}

// -----

func.func @region_c4_rows(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error @+1 {{of kind rows holds 1 matrix products, expected 0}}
  %0 = mp.region rows "square" (%x) : (tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%a: tensor<4x4xf32>):
    %1 = mp.matmul %a, %a : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    mp.yield %1 : tensor<4x4xf32>
  }
  return %0 : tensor<4x4xf32>
}

// -----

func.func @region_c5(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{has an empty name}}
  %0 = mp.region rows "" (%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    mp.yield %a : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
