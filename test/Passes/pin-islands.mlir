// What has no half type, or was kept from one.
// RUN: mpopt %s --mp-raise --mp-pin | FileCheck %s

// Also of operators that the table does not know, and at both ends.
// CHECK-LABEL: func.func @complex_numbers
// CHECK: aten._fft_r2c.default{{.*}}mp.pin = [#mp.pin<keep both, "complex", "aten._fft_r2c of 4x5: there is no half complex type to compute in">]
// CHECK: aten.view_as_real.default{{.*}}#mp.pin<keep both, "complex"
func.func @complex_numbers(%x: tensor<4x8xf32>) -> tensor<4x5x2xf32> {
  %0 = mp.aten "aten._fft_r2c.default"(%x) {args = {dim = [1], normalization = 0, onesided = true}} : (tensor<4x8xf32>) -> tensor<4x5xcomplex<f32>>
  %1 = mp.aten "aten.view_as_real.default"(%0) : (tensor<4x5xcomplex<f32>>) -> tensor<4x5x2xf32>
  return %1 : tensor<4x5x2xf32>
}

// f16 and bf16 meet in f32, the only type that holds both.
// CHECK-LABEL: func.func @b31_two_halves
// CHECK: aten.native_group_norm.default{{.*}}#mp.pin<fp32 both, "mixed-halves", "aten.native_group_norm of 2x8x4: reads f16 and bf16; 1e5 is a bf16 and infinite in f16, 1.001 an f16 and 1 in bf16">
// CHECK: aten.cat.default{{.*}}"mixed-halves"
// CHECK: mp.gelu
// CHECK-NOT: mixed-halves
// CHECK: return
func.func @b31_two_halves(%x: tensor<2x8x4xf16>, %w: tensor<8xbf16>, %y: tensor<2x8x4xbf16>) -> tensor<2x8x4xf16> {
  %0:4 = mp.aten "aten.native_group_norm.default"(%x, %w, %w) {args = {N = 2, C = 8, HxW = 4, group = 2, eps = 1.0e-5}} : (tensor<2x8x4xf16>, tensor<8xbf16>, tensor<8xbf16>) -> (tensor<2x8x4xf16>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xi64>)
  %1 = mp.aten "aten.cat.default"(%x, %y) {args = {tensors = ["%0", "%1"]}} : (tensor<2x8x4xf16>, tensor<2x8x4xbf16>) -> tensor<4x8x4xf32>
  %2 = mp.aten "aten.gelu.default"(%x) : (tensor<2x8x4xf16>) -> tensor<2x8x4xf16>
  return %2 : tensor<2x8x4xf16>
}

// A reader of saved graphs marks the regions in which autocast is off.
// CHECK-LABEL: func.func @b37_marked_region
// CHECK: mp.matmul{{.*}}#mp.pin<keep both, "autocast-off", "aten.mm of 8x8: the model turned autocast off">
// CHECK: aten.arange.default
// CHECK-NOT: mp.pin
// CHECK: mp.matmul
// CHECK-NOT: mp.pin
// CHECK: return
func.func @b37_marked_region(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = mp.aten "aten.mm.default"(%x, %x) {mp.autocast = "off"} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = mp.aten "aten.arange.default"() {args = {end = 8, dtype = i64}, mp.autocast = "off"} : () -> tensor<8xi64>
  %2 = mp.aten "aten.mm.default"(%0, %0) {mp.autocast = "bf16"} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}

// In a traced step nothing marks the region, but autocast would have given an f32
// product half operands; so would it in the gradient. Of widened halves the f32
// result is pinned, the operands are halves anyway.
// CHECK-LABEL: func.func @b39_traced_region
// CHECK: mp.matmul{{.*}}bf16
// CHECK-NOT: mp.pin
// CHECK: mp.matmul{{.*}}#mp.pin<fp32 both, "autocast-off", "aten.mm of 8x8: f32 operands although autocast is on for 1 other products">
// CHECK: mp.matmul{{.*}}#mp.pin<fp32 result, "autocast-off", "aten.mm of 8x8: f32 operands although autocast is on for 1 other products; they are widened halves">
// CHECK: mp.matmul{{.*}}mp.backward{{.*}}#mp.pin<fp32 both, "autocast-off"
func.func @b39_traced_region(%x: tensor<8x8xf32>, %h: tensor<8x8xbf16>, %g: tensor<8x8xf32>) -> (tensor<8x8xbf16>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = mp.cast %x origin(autocast) : tensor<8x8xf32> to tensor<8x8xbf16>
  %1 = mp.aten "aten.mm.default"(%0, %h) : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  %2 = mp.cast %h origin(user) : tensor<8x8xbf16> to tensor<8x8xf32>
  %3 = mp.aten "aten.t.default"(%2) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %4 = mp.aten "aten.mm.default"(%x, %3) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %5 = mp.aten "aten.mm.default"(%2, %3) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %6 = mp.aten "aten.mm.default"(%g, %2) {mp.backward} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1, %4, %5, %6 : tensor<8x8xbf16>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}

// Without autocast, f32 products are free.
// CHECK-LABEL: func.func @no_autocast
// CHECK-NOT: mp.pin
// CHECK: return
func.func @no_autocast(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = mp.aten "aten.mm.default"(%x, %x) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
