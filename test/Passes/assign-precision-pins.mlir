// Which pins keep a rounding from being added, and a call from becoming one of
// halves.
//
// RUN: split-file %s %t
// RUN: mpopt %t/reads.mlir \
// RUN:   --mp-assign-precision='numerics=relaxed epsilon=10' \
// RUN:   | FileCheck %s --check-prefix=READS
// RUN: mpopt %t/calls.mlir \
// RUN:   --mp-assign-precision='precision=bf16 cost-model=sm_80' \
// RUN:   --mp-apply-precision | FileCheck %s --check-prefix=CALLS

//--- reads.mlir

// A pin to the traced type, or on a view of the value, holds as one to f32.
// READS-LABEL: func.func @free
// READS: "aten.mul.Tensor"{{.*}}mp.read_as
// READS-LABEL: func.func @kept
// READS-NOT: mp.read_as
func.func @free(%x: tensor<256x256xf32>, %h: tensor<256x256xbf16>) -> (tensor<256x256xf32>, tensor<256x256xbf16>) {
  %0 = mp.aten "aten.sin.default"(%x) : (tensor<256x256xf32>) -> tensor<256x256xf32>
  %1 = mp.aten "aten.t.default"(%0) : (tensor<256x256xf32>) -> tensor<256x256xf32>
  %2 = mp.matmul %h, %h : (tensor<256x256xbf16>, tensor<256x256xbf16>) -> tensor<256x256xbf16>
  %3 = mp.cast %2 origin(autocast) {mp.backward} : tensor<256x256xbf16> to tensor<256x256xf32>
  %4 = mp.aten "aten.mul.Tensor"(%3, %1) {mp.backward} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  return %4, %2 : tensor<256x256xf32>, tensor<256x256xbf16>
}
func.func @kept(%x: tensor<256x256xf32>, %h: tensor<256x256xbf16>) -> (tensor<256x256xf32>, tensor<256x256xbf16>) {
  %0 = mp.aten "aten.sin.default"(%x) {mp.pin = [#mp.pin<keep both, "policy", "off">]} : (tensor<256x256xf32>) -> tensor<256x256xf32>
  %1 = mp.aten "aten.t.default"(%0) : (tensor<256x256xf32>) -> tensor<256x256xf32>
  %2 = mp.matmul %h, %h : (tensor<256x256xbf16>, tensor<256x256xbf16>) -> tensor<256x256xbf16>
  %3 = mp.cast %2 origin(autocast) {mp.backward} : tensor<256x256xbf16> to tensor<256x256xf32>
  %4 = mp.aten "aten.mul.Tensor"(%3, %1) {mp.backward} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  return %4, %2 : tensor<256x256xf32>, tensor<256x256xbf16>
}
func.func @pinned_view(%x: tensor<256x256xf32>, %h: tensor<256x256xbf16>) -> (tensor<256x256xf32>, tensor<256x256xbf16>) {
  %0 = mp.aten "aten.sin.default"(%x) : (tensor<256x256xf32>) -> tensor<256x256xf32>
  %1 = mp.aten "aten.t.default"(%0) {mp.pin = [#mp.pin<fp32 result, "policy", "mine">]} : (tensor<256x256xf32>) -> tensor<256x256xf32>
  %2 = mp.matmul %h, %h : (tensor<256x256xbf16>, tensor<256x256xbf16>) -> tensor<256x256xbf16>
  %3 = mp.cast %2 origin(autocast) {mp.backward} : tensor<256x256xbf16> to tensor<256x256xf32>
  %4 = mp.aten "aten.mul.Tensor"(%3, %1) {mp.backward} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32>
  return %4, %2 : tensor<256x256xf32>, tensor<256x256xbf16>
}

//--- calls.mlir

// The first call rounds its result to bf16, as autocast's does.
// CALLS-LABEL: func.func @rounded
// CALLS: mp.matmul {{.*}}tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16>
func.func @rounded(%x: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> attributes {mp.target = "cuda"} {
  %0 = mp.matmul %x, %x : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %1 = mp.matmul %0, %x : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  return %1 : tensor<4096x4096xf32>
}

// A pinned result is the f32 accumulator, where the target has such a product.
// CALLS-LABEL: func.func @accumulated
// CALLS-SAME: half = bf16{{.*}}result = f32, rule = "half-call"
// CALLS: %[[SUM:.*]] = mp.matmul {{.*}}tensor<4096x4096xbf16>) -> tensor<4096x4096xf32>
// CALLS: mp.cast %[[SUM]] origin(autocast)
func.func @accumulated(%x: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> attributes {mp.target = "cuda"} {
  %0 = mp.matmul %x, %x {mp.pin = [#mp.pin<fp32 result, "policy", "mine">]} : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %1 = mp.matmul %0, %x : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  return %1 : tensor<4096x4096xf32>
}

// Nothing else can keep its result.
// CALLS-LABEL: func.func @attention
// CALLS-SAME: stays f32: pinned
// CALLS: "aten._scaled_dot_product_flash_attention_for_cpu.default"{{.*}}-> (tensor<8x16x4096x64xf32>,
func.func @attention(%x: tensor<8x16x4096x64xf32>) -> tensor<8x16x4096x64xf32> attributes {mp.target = "cuda"} {
  %0:2 = mp.aten "aten._scaled_dot_product_flash_attention_for_cpu.default"(%x, %x, %x) {mp.pin = [#mp.pin<fp32 result, "policy", "mine">]} : (tensor<8x16x4096x64xf32>, tensor<8x16x4096x64xf32>, tensor<8x16x4096x64xf32>) -> (tensor<8x16x4096x64xf32>, tensor<8x16x4096xf32>)
  return %0#0 : tensor<8x16x4096x64xf32>
}
