// Round trip of every op: text, generic form and bytecode.
// RUN: mpopt %s | mpopt - | FileCheck %s
// RUN: mpopt %s --mlir-print-op-generic | mpopt - | FileCheck %s
// RUN: mpopt %s --emit-bytecode -o %t.mlirbc
// RUN: mpopt %t.mlirbc | FileCheck %s

// CHECK-LABEL: func.func @cast
func.func @cast(%x: tensor<4x?xf32>, %i: tensor<3xi64>) -> (tensor<4x?xbf16>, tensor<3xf16>) {
  // CHECK: mp.cast %{{.*}} origin(autocast) : tensor<4x?xf32> to tensor<4x?xbf16>
  %0 = mp.cast %x origin(autocast) : tensor<4x?xf32> to tensor<4x?xbf16>
  // CHECK: mp.cast %{{.*}} origin(user) {mp.backward} : tensor<3xi64> to tensor<3xf16>
  %1 = mp.cast %i origin(user) {mp.backward} : tensor<3xi64> to tensor<3xf16>
  return %0, %1 : tensor<4x?xbf16>, tensor<3xf16>
}

// CHECK-LABEL: func.func @cast_origins
func.func @cast_origins(%x: tensor<f32>) -> (tensor<f16>, tensor<f64>, tensor<bf16>) {
  // CHECK: origin(promotion)
  %0 = mp.cast %x origin(promotion) : tensor<f32> to tensor<f16>
  // CHECK: origin(decomposition)
  %1 = mp.cast %x origin(decomposition) : tensor<f32> to tensor<f64>
  // CHECK: origin(mpopt)
  %2 = mp.cast %x origin(mpopt) : tensor<f32> to tensor<bf16>
  return %0, %1, %2 : tensor<f16>, tensor<f64>, tensor<bf16>
}

// CHECK-LABEL: func.func @round
func.func @round(%x: tensor<4xf32>, %d: tensor<?xf64>) -> (tensor<4xf32>, tensor<?xf64>) {
  // CHECK: mp.round %{{.*}} to bf16 origin(user) : tensor<4xf32>
  %0 = mp.round %x to bf16 origin(user) : tensor<4xf32>
  // CHECK: mp.round %{{.*}} to f16 origin(decomposition) : tensor<?xf64>
  %1 = mp.round %d to f16 origin(decomposition) : tensor<?xf64>
  return %0, %1 : tensor<4xf32>, tensor<?xf64>
}

// CHECK-LABEL: func.func @aten
func.func @aten(%x: tensor<4x8xf32>, %s: index) -> (tensor<?x1xf32>, tensor<4x4xf32>) {
  // CHECK: mp.aten "aten.sum.dim_IntList"(%{{.*}}) {args = {dim = [1], keepdim = true}} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %0 = mp.aten "aten.sum.dim_IntList"(%x) {args = {dim = [1], keepdim = true}} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  // CHECK: mp.aten "aten.view.default"(%{{.*}}, %{{.*}}) {args = {size = ["%1", 1]}} : (tensor<4x1xf32>, index) -> tensor<?x1xf32>
  %1 = mp.aten "aten.view.default"(%0, %s) {args = {size = ["%1", 1]}} : (tensor<4x1xf32>, index) -> tensor<?x1xf32>
  // CHECK: %{{.*}}:2 = mp.aten "aten.split.Tensor"(%{{.*}}) {args = {dim = 1 : i64, split_size = 4 : i64}} : (tensor<4x8xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>)
  %2:2 = mp.aten "aten.split.Tensor"(%x) {args = {dim = 1, split_size = 4}} : (tensor<4x8xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>)
  // CHECK: mp.aten effects "aten.copy_.default"(%{{.*}}, %{{.*}}) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = mp.aten effects "aten.copy_.default"(%2#0, %2#1) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %1, %2#1 : tensor<?x1xf32>, tensor<4x4xf32>
}

// CHECK-LABEL: func.func @matmul
func.func @matmul(%a: tensor<4x8xbf16>, %b: tensor<8x2xbf16>, %c: tensor<2xbf16>, %d: tensor<3x4x8xf16>, %e: tensor<3x8x2xf16>) -> (tensor<4x2xf32>, tensor<4x2xbf16>, tensor<3x4x2xf16>) {
  // CHECK: mp.matmul %{{.*}}, %{{.*}} : (tensor<4x8xbf16>, tensor<8x2xbf16>) -> tensor<4x2xf32>
  %0 = mp.matmul %a, %b : (tensor<4x8xbf16>, tensor<8x2xbf16>) -> tensor<4x2xf32>
  // CHECK: mp.matmul %{{.*}}, %{{.*}} bias(%{{.*}} : tensor<2xbf16>) : (tensor<4x8xbf16>, tensor<8x2xbf16>) -> tensor<4x2xbf16>
  %1 = mp.matmul %a, %b bias(%c : tensor<2xbf16>) : (tensor<4x8xbf16>, tensor<8x2xbf16>) -> tensor<4x2xbf16>
  // CHECK: mp.matmul %{{.*}}, %{{.*}} : (tensor<3x4x8xf16>, tensor<3x8x2xf16>) -> tensor<3x4x2xf16>
  %2 = mp.matmul %d, %e : (tensor<3x4x8xf16>, tensor<3x8x2xf16>) -> tensor<3x4x2xf16>
  return %0, %1, %2 : tensor<4x2xf32>, tensor<4x2xbf16>, tensor<3x4x2xf16>
}

// CHECK-LABEL: func.func @norms
func.func @norms(%x: tensor<4x8xf32>, %w: tensor<8xf32>, %n: tensor<2x8x4xf32>) -> tensor<4x8xf32> {
  // CHECK: mp.layer_norm(%{{.*}}, %{{.*}}, %{{.*}}) {args = {eps = 1.000000e-05 : f64, normalized_shape = [8]}} : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x1xf32>, tensor<4x1xf32>)
  %0:3 = mp.layer_norm(%x, %w, %w) {args = {eps = 1.0e-5, normalized_shape = [8]}} : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x1xf32>, tensor<4x1xf32>)
  // CHECK: mp.layer_norm_backward(%{{.*}}) {args = {normalized_shape = [8]}, mp.backward} :
  %1:3 = mp.layer_norm_backward(%x, %x, %0#1, %0#2, %w, %w) {args = {normalized_shape = [8]}, mp.backward} : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x1xf32>, tensor<4x1xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
  // CHECK: mp.group_norm(%{{.*}}) {args = {C = 8 : i64, HxW = 4 : i64, N = 2 : i64, eps = 1.000000e-05 : f64, group = 2 : i64}} :
  %2:3 = mp.group_norm(%n, %w, %w) {args = {N = 2, C = 8, HxW = 4, group = 2, eps = 1.0e-5}} : (tensor<2x8x4xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x8x4xf32>, tensor<2x2xf32>, tensor<2x2xf32>)
  // CHECK: mp.rms_norm(%{{.*}}, %{{.*}}) {args = {normalized_shape = [8]}} : (tensor<4x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x1xf32>)
  %3:2 = mp.rms_norm(%x, %w) {args = {normalized_shape = [8]}} : (tensor<4x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x1xf32>)
  return %1#0 : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @activations
func.func @activations(%x: tensor<4x8xbf16>) -> (tensor<4x8xbf16>, tensor<4x8xbf16>) {
  // CHECK: mp.softmax(%{{.*}}) {args = {dim = -1 : i64, half_to_float = false}} : (tensor<4x8xbf16>) -> tensor<4x8xbf16>
  %0 = mp.softmax(%x) {args = {dim = -1, half_to_float = false}} : (tensor<4x8xbf16>) -> tensor<4x8xbf16>
  // CHECK: mp.gelu(%{{.*}}) {args = {approximate = "tanh"}} : (tensor<4x8xbf16>) -> tensor<4x8xbf16>
  %1 = mp.gelu(%0) {args = {approximate = "tanh"}} : (tensor<4x8xbf16>) -> tensor<4x8xbf16>
  // CHECK: mp.silu(%{{.*}}) : (tensor<4x8xbf16>) -> tensor<4x8xbf16>
  %2 = mp.silu(%1) : (tensor<4x8xbf16>) -> tensor<4x8xbf16>
  return %1, %2 : tensor<4x8xbf16>, tensor<4x8xbf16>
}

// CHECK-LABEL: func.func @cross_entropy
func.func @cross_entropy(%x: tensor<4x8xf32>, %t: tensor<4xi64>) -> tensor<f32> {
  // CHECK: mp.log_softmax(%{{.*}}) {args = {dim = 1 : i64, half_to_float = false}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %0 = mp.log_softmax(%x) {args = {dim = 1, half_to_float = false}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: mp.nll_loss(%{{.*}}, %{{.*}}) {args = {ignore_index = -100 : i64, reduction = 1 : i64}} : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<f32>)
  %1:2 = mp.nll_loss(%0, %t) {args = {reduction = 1, ignore_index = -100}} : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<f32>)
  return %1#0 : tensor<f32>
}

// CHECK-LABEL: func.func @origin_attribute
// CHECK-SAME: mp.default = #mp.origin<promotion>
func.func @origin_attribute(%x: tensor<f32>) -> tensor<f32> attributes {mp.default = #mp.origin<promotion>} {
  return %x : tensor<f32>
}

// CHECK-LABEL: func.func @pins
// CHECK-SAME: %arg0: tensor<4x8xf32> {mp.pin = [#mp.pin<keep result, "policy", "embeddings stay \22as they are\22">]}
func.func @pins(%x: tensor<4x8xf32> {mp.pin = [#mp.pin<keep result, "policy", "embeddings stay \22as they are\22">]}, %w: tensor<8xf32>) -> tensor<4x8xf32> {
  // CHECK: mp.layer_norm{{.*}}mp.pin = [#mp.pin<fp32 result[1, 2], "norm-statistics", "mean">, #mp.pin<fp32 operands, "range", "up to 1e+05">]
  %0:3 = mp.layer_norm(%x, %w, %w) {mp.pin = [#mp.pin<fp32 result[1, 2], "norm-statistics", "mean">, #mp.pin<fp32 operands, "range", "up to 1e+05">]} : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x1xf32>, tensor<4x1xf32>)
  // CHECK: mp.gelu{{.*}}mp.pin = [#mp.pin<half both, "policy", "ffn">]
  %1 = mp.gelu(%0#0) {mp.pin = [#mp.pin<half both, "policy", "ffn">]} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @materialize
func.func @materialize(%x: tensor<4x?xbf16>) -> tensor<4x?xbf16> {
  // CHECK: mp.materialize %{{.*}} : tensor<4x?xbf16>
  %0 = mp.materialize %x : tensor<4x?xbf16>
  return %0 : tensor<4x?xbf16>
}

// CHECK-LABEL: func.func @scaled_update
// CHECK-SAME: %arg1: tensor<f32> {mp.loss_scale = -1 : i64}
func.func @scaled_update(%g: tensor<8xf16>, %inv: tensor<f32> {mp.loss_scale = -1 : i64}, %w: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xbf16>) {
  // CHECK: %{{.*}}:2 = mp.scaled_update(%arg0, %arg1, %arg2) : (tensor<8xf16>, tensor<f32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xbf16>) {
  // CHECK-NEXT: ^bb0(%[[G:.*]]: tensor<8xf16>, %[[S:.*]]: tensor<f32>, %[[W:.*]]: tensor<8xf32>):
  %0:2 = mp.scaled_update(%g, %inv, %w) : (tensor<8xf16>, tensor<f32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xbf16>) {
  ^bb0(%a: tensor<8xf16>, %s: tensor<f32>, %b: tensor<8xf32>):
    // CHECK-NEXT: %[[F:.*]] = mp.cast %[[G]] origin(decomposition) : tensor<8xf16> to tensor<8xf32>
    %1 = mp.cast %a origin(decomposition) : tensor<8xf16> to tensor<8xf32>
    // CHECK-NEXT: %[[P:.*]] = mp.aten "aten.mul.Tensor"(%[[F]], %[[S]])
    %2 = mp.aten "aten.mul.Tensor"(%1, %s) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
    // CHECK-NEXT: %[[N:.*]] = mp.aten "aten.sub.Tensor"(%[[W]], %[[P]])
    %3 = mp.aten "aten.sub.Tensor"(%b, %2) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    // CHECK-NEXT: %[[H:.*]] = mp.cast %[[N]] origin(user) : tensor<8xf32> to tensor<8xbf16>
    %4 = mp.cast %3 origin(user) : tensor<8xf32> to tensor<8xbf16>
    // CHECK-NEXT: mp.yield %[[N]], %[[H]] : tensor<8xf32>, tensor<8xbf16>
    mp.yield %3, %4 : tensor<8xf32>, tensor<8xbf16>
  }
  return %0#0, %0#1 : tensor<8xf32>, tensor<8xbf16>
}
