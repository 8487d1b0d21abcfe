// What a pin makes f32 that the trace has in half, and what it leaves alone.
// RUN: mpopt %s --split-input-file --mp-widen-pinned | FileCheck %s
// RUN: mpopt %s --split-input-file --mp-widen-pinned=numerics=strict | FileCheck %s --check-prefix=STRICT

// Only the result: operands keep the rounding that autocast gave them.
// CHECK-LABEL: func.func @result
// CHECK-SAME: the policy wants its result in f32
func.func @result(%x: tensor<8x4xf32>, %w: tensor<4x4xbf16>) -> tensor<8x4xbf16> {
  // CHECK: %[[HALF:.*]] = mp.cast %{{.*}} origin(autocast) : tensor<8x4xf32> to tensor<8x4xbf16>
  // CHECK-NEXT: %[[X:.*]] = mp.cast %[[HALF]] origin(mpopt) : tensor<8x4xbf16> to tensor<8x4xf32>
  // CHECK-NEXT: %[[W:.*]] = mp.cast %{{.*}} origin(mpopt) : tensor<4x4xbf16> to tensor<4x4xf32>
  // CHECK-NEXT: %[[Y:.*]] = mp.matmul %[[X]], %[[W]]
  // CHECK-NEXT: mp.cast %[[Y]] origin(autocast) : tensor<8x4xf32> to tensor<8x4xbf16>
  %0 = mp.cast %x origin(autocast) : tensor<8x4xf32> to tensor<8x4xbf16>
  %1 = mp.matmul %0, %w {mp.pin = [#mp.pin<fp32 result, "policy", "mine">]} : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xbf16>
  return %1 : tensor<8x4xbf16>
}

// -----

// Only operands: the result is rounded as before, for good.
// CHECK-LABEL: func.func @operands
func.func @operands(%w: tensor<6x4xf32>, %x: tensor<8x4xbf16>) -> tensor<8x6xf32> {
  // CHECK: %[[X:.*]] = mp.cast %{{.*}} origin(mpopt) : tensor<8x4xbf16> to tensor<8x4xf32>
  // The wide value takes the same view.
  // CHECK: %[[T:.*]] = mp.aten "aten.t.default"(%{{.*}}) : (tensor<6x4xf32>) -> tensor<4x6xf32>
  // CHECK: %[[Y:.*]] = mp.matmul %[[X]], %[[T]]
  // CHECK-NEXT: mp.cast %[[Y]] origin(mpopt) : tensor<8x6xf32> to tensor<8x6xbf16>
  %0 = mp.cast %w origin(autocast) : tensor<6x4xf32> to tensor<6x4xbf16>
  %1 = mp.aten "aten.t.default"(%0) : (tensor<6x4xbf16>) -> tensor<4x6xbf16>
  %2 = mp.matmul %x, %1 {mp.pin = [#mp.pin<fp32 operands, "policy", "mine">]} : (tensor<8x4xbf16>, tensor<4x6xbf16>) -> tensor<8x6xbf16>
  %3 = mp.cast %2 origin(autocast) : tensor<8x6xbf16> to tensor<8x6xf32>
  return %3 : tensor<8x6xf32>
}

// -----

// A rounding that the user wrote is meant.
// CHECK-LABEL: func.func @meant
func.func @meant(%x: tensor<8x4xf32>) -> tensor<8x4xbf16> {
  // CHECK: %[[HALF:.*]] = mp.cast %{{.*}} origin(user)
  // CHECK-NEXT: %[[X:.*]] = mp.cast %[[HALF]] origin(mpopt)
  // CHECK-NEXT: mp.aten "aten.sin.default"(%[[X]])
  %0 = mp.cast %x origin(user) : tensor<8x4xf32> to tensor<8x4xbf16>
  %1 = mp.aten "aten.sin.default"(%0) {mp.pin = [#mp.pin<fp32 both, "policy", "mine">]} : (tensor<8x4xbf16>) -> tensor<8x4xbf16>
  return %1 : tensor<8x4xbf16>
}

// -----

// A router's product keeps half operands, where the target has such products.
// CHECK-LABEL: func.func @router_on_cuda
// CHECK-SAME: rule = "wide-result"
// STRICT-LABEL: func.func @router_on_cuda
// STRICT-NOT: wide-result
func.func @router_on_cuda(%x: tensor<8x4xbf16>, %w: tensor<4x4xbf16>) -> tensor<8x4xbf16> attributes {mp.target = "cuda"} {
  // CHECK: %[[Y:.*]] = mp.matmul %{{.*}}, %{{.*}} : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xf32>
  // CHECK-NEXT: mp.cast %[[Y]] origin(autocast)
  // STRICT: mp.matmul {{.*}} -> tensor<8x4xbf16>
  %0 = mp.matmul %x, %w {mp.pin = [#mp.pin<fp32 result, "router", "top-k">]} : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xbf16>
  return %0 : tensor<8x4xbf16>
}

// -----

// Elsewhere it would move more bytes than the trace.
// CHECK-LABEL: func.func @router_elsewhere
// CHECK-SAME: status = "missed", why = "the target has no product of halves with an f32 result"
func.func @router_elsewhere(%x: tensor<8x4xbf16>, %w: tensor<4x4xbf16>) -> tensor<8x4xbf16> {
  // CHECK: mp.matmul {{.*}} : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xbf16>
  %0 = mp.matmul %x, %w {mp.pin = [#mp.pin<fp32 result, "router", "top-k">]} : (tensor<8x4xbf16>, tensor<4x4xbf16>) -> tensor<8x4xbf16>
  return %0 : tensor<8x4xbf16>
}

// -----

// Several results share a node, so their roundings stay; integers stay too.
// CHECK-LABEL: func.func @several
func.func @several(%x: tensor<8x4xbf16>) -> (tensor<8xbf16>, tensor<8xi64>) {
  // CHECK: %[[Y:.*]]:2 = mp.aten "aten.var_mean.correction"(%{{.*}}) {{.*}} : (tensor<8x4xf32>) -> (tensor<8xf32>, tensor<8xi64>)
  // CHECK-NEXT: mp.cast %[[Y]]#0 origin(mpopt) : tensor<8xf32> to tensor<8xbf16>
  %0:2 = mp.aten "aten.var_mean.correction"(%x) {mp.pin = [#mp.pin<fp32 result, "policy", "mine">]} : (tensor<8x4xbf16>) -> (tensor<8xbf16>, tensor<8xi64>)
  return %0#0, %0#1 : tensor<8xbf16>, tensor<8xi64>
}

// -----

// CHECK-LABEL: func.func @named_type
// CHECK-SAME: status = "missed", why = "an argument names its type"
func.func @named_type(%x: tensor<8x4xbf16>) -> tensor<8xbf16> {
  // CHECK: mp.aten "aten.sum.dim_IntList"(%{{.*}}) {{.*}} -> tensor<8xbf16>
  %0 = mp.aten "aten.sum.dim_IntList"(%x) {args = {dtype = bf16}, mp.pin = [#mp.pin<fp32 both, "policy", "mine">]} : (tensor<8x4xbf16>) -> tensor<8xbf16>
  return %0 : tensor<8xbf16>
}

// -----

// CHECK-LABEL: func.func @no_arithmetic
// CHECK-SAME: why = "its type does not follow from its operands'"
func.func @no_arithmetic(%x: tensor<8x4xbf16>) -> tensor<4x8xbf16> {
  // CHECK: mp.aten "aten.t.default"(%{{.*}}) {{.*}} -> tensor<4x8xbf16>
  %0 = mp.aten "aten.t.default"(%x) {mp.pin = [#mp.pin<fp32 both, "policy", "mine">]} : (tensor<8x4xbf16>) -> tensor<4x8xbf16>
  return %0 : tensor<4x8xbf16>
}

// -----

// CHECK-LABEL: func.func @double
// CHECK-SAME: why = "it has a type other than f32 and a half"
func.func @double(%x: tensor<8x4xbf16>, %y: tensor<8x4xf64>) -> tensor<8x4xbf16> {
  // CHECK: mp.aten "aten.mul.Tensor"({{.*}}) {{.*}} -> tensor<8x4xbf16>
  %0 = mp.aten "aten.mul.Tensor"(%x, %y) {mp.pin = [#mp.pin<fp32 both, "policy", "mine">]} : (tensor<8x4xbf16>, tensor<8x4xf64>) -> tensor<8x4xbf16>
  return %0 : tensor<8x4xbf16>
}

// -----

// Other rules forbid, and ask for nothing; so does a wish for half.
// CHECK-LABEL: func.func @other_rules
// CHECK-NOT: mp.rewrites
func.func @other_rules(%x: tensor<8x4xbf16>) -> (tensor<8x4xbf16>, tensor<8x4xbf16>) {
  // CHECK: mp.aten "aten.exp.default"({{.*}}) {{.*}} -> tensor<8x4xbf16>
  // CHECK: mp.aten "aten.sin.default"({{.*}}) {{.*}} -> tensor<8x4xbf16>
  %0 = mp.aten "aten.exp.default"(%x) {mp.pin = [#mp.pin<fp32 both, "exponential", "range">]} : (tensor<8x4xbf16>) -> tensor<8x4xbf16>
  %1 = mp.aten "aten.sin.default"(%x) {mp.pin = [#mp.pin<half both, "policy", "mine">]} : (tensor<8x4xbf16>) -> tensor<8x4xbf16>
  return %0, %1 : tensor<8x4xbf16>, tensor<8x4xbf16>
}
