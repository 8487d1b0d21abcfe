// Which part of a model an operation belongs to: groups that are off keep their types.
// RUN: split-file %s %t
// RUN: mpopt %t/graph.mlir --mp-apply-policy=file=%t/none.toml | FileCheck %t/graph.mlir
// RUN: mpopt %t/graph.mlir --mp-apply-policy=file=%t/ffn.toml | FileCheck %t/graph.mlir --check-prefix=FFN
// RUN: mpopt %t/graph.mlir --mp-apply-policy=file=%t/open.toml | FileCheck %t/graph.mlir --check-prefix=OPEN

//--- none.toml
version = 1
[groups]
enable = []
//--- open.toml
version = 1
//--- ffn.toml
version = 1
[groups]
enable = ["ffn", "residual"]
[[rule]]
module = "h.0.attn"
op = "aten.mm"
precision = "fp32"
why = "by hand"
//--- graph.mlir
#attn = loc("h.0.attn"("net.py":3:0))
#fc = loc("h.0.mlp.fc"("net.py":4:0))
#cls = loc("net.fc"("net.py":8:0))
#gate = loc("h.0.mlp.gate"("net.py":4:0))
#ln = loc("h.0.attn.q_norm"("net.py":5:0))
#block = loc("h.0"("net.py":6:0))
#head = loc("lm_head"("net.py":7:0))
module {
  // A module's name decides, the innermost that says something.
  // CHECK-LABEL: func.func @named
  // FFN-LABEL: func.func @named
  // OPEN-NOT: mp.pin
  func.func @named(%x: tensor<4x8xbf16>, %w: tensor<8x8xbf16>, %s: tensor<4x1xbf16>) -> tensor<4x8xbf16> {
    // CHECK: mp.matmul {{.*}}<keep both, "policy", "group 'attention' is not enabled (none.toml:3)">
    // FFN: mp.matmul {{.*}}mp.pin = [#mp.pin<fp32 both, "policy", "by hand (ffn.toml:4)">]
    %0 = mp.matmul %x, %w : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16> loc(#attn)
    // CHECK: "aten.mul.Tensor"{{.*}}'norm'
    // FFN: "aten.mul.Tensor"{{.*}}<keep both, "policy", "group 'norm' is not enabled (ffn.toml:3)">
    %1 = mp.aten "aten.mul.Tensor"(%0, %s) : (tensor<4x8xbf16>, tensor<4x1xbf16>) -> tensor<4x8xbf16> loc(#ln)
    // CHECK: mp.matmul {{.*}}'ffn'
    // FFN-NEXT: mp.matmul %1, %arg1 : (
    %2 = mp.matmul %1, %w : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16> loc(#fc)
    // CHECK: mp.matmul {{.*}}'router'
    // FFN: mp.matmul {{.*}}'router'
    %3 = mp.matmul %1, %w : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16> loc(#gate)
    // CHECK: "aten.mul.Tensor"{{.*}}'other'
    %4 = mp.aten "aten.mul.Tensor"(%2, %3) : (tensor<4x8xbf16>, tensor<4x8xbf16>) -> tensor<4x8xbf16> loc(#block)
    // CHECK: "aten.add.Tensor"{{.*}}'residual'
    // FFN: "aten.add.Tensor"(%arg0, %4) : (
    // FFN: mp.matmul {{.*}}'head'
    %5 = mp.aten "aten.add.Tensor"(%x, %4) : (tensor<4x8xbf16>, tensor<4x8xbf16>) -> tensor<4x8xbf16> loc(#block)
    // CHECK: mp.matmul {{.*}}'head'
    %6 = mp.matmul %5, %w : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16> loc(#head)
    // "fc" is a head only where nothing else in the path says what it is.
    // CHECK: mp.matmul {{.*}}'head'
    %7 = mp.matmul %5, %w : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16> loc(#cls)
    return %6 : tensor<4x8xbf16>
  }

  // Without names: products around an attention, and around an activation.
  // CHECK-LABEL: func.func @unnamed
  func.func @unnamed(%x: tensor<4x8xbf16>, %w: tensor<8x8xbf16>) -> tensor<4x8xbf16> {
    // CHECK: mp.matmul {{.*}}'attention'
    %0 = mp.matmul %x, %w : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
    %1 = mp.aten "aten.view.default"(%0) {args = {size = [1, 2, 4, 4]}} : (tensor<4x8xbf16>) -> tensor<1x2x4x4xbf16>
    // CHECK: flash_attention{{.*}}'attention'
    %2:2 = mp.aten "aten._scaled_dot_product_flash_attention_for_cpu.default"(%1, %1, %1) : (tensor<1x2x4x4xbf16>, tensor<1x2x4x4xbf16>, tensor<1x2x4x4xbf16>) -> (tensor<1x2x4x4xbf16>, tensor<1x2x4xf32>)
    %3 = mp.aten "aten.view.default"(%2#0) {args = {size = [4, 8]}} : (tensor<1x2x4x4xbf16>) -> tensor<4x8xbf16>
    // CHECK: mp.matmul {{.*}}'attention'
    %4 = mp.matmul %3, %w : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
    // CHECK: "aten.add.Tensor"{{.*}}'residual'
    %5 = mp.aten "aten.add.Tensor"(%x, %4) : (tensor<4x8xbf16>, tensor<4x8xbf16>) -> tensor<4x8xbf16>
    // CHECK: mp.matmul {{.*}}'ffn'
    %6 = mp.matmul %5, %w : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
    // CHECK: mp.silu{{.*}}'ffn'
    %7 = mp.silu(%6) : (tensor<4x8xbf16>) -> tensor<4x8xbf16>
    // CHECK: mp.matmul {{.*}}'ffn'
    %8 = mp.matmul %5, %w : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
    // CHECK: "aten.mul.Tensor"{{.*}}'ffn'
    %9 = mp.aten "aten.mul.Tensor"(%7, %8) : (tensor<4x8xbf16>, tensor<4x8xbf16>) -> tensor<4x8xbf16>
    // CHECK: mp.matmul {{.*}}'ffn'
    %10 = mp.matmul %9, %w : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
    return %10 : tensor<4x8xbf16>
  }

  // What leads to the choice of experts; a softmax in front of a loss.
  // CHECK-LABEL: func.func @choices
  func.func @choices(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %t: tensor<4xi64>) -> (tensor<4x2xf32>, tensor<f32>) {
    // CHECK: mp.matmul {{.*}}'router'
    %0 = mp.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    // CHECK: mp.softmax{{.*}}'router'
    %1 = mp.softmax(%0) {args = {dim = -1 : i64, half_to_float = false}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    // CHECK: "aten.topk.default"{{.*}}'router'
    %2:2 = mp.aten "aten.topk.default"(%1) {args = {k = 2 : i64}} : (tensor<4x8xf32>) -> (tensor<4x2xf32>, tensor<4x2xi64>)
    // CHECK: mp.matmul {{.*}}'other'
    %3 = mp.matmul %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    // CHECK: mp.log_softmax{{.*}}'loss'
    %4 = mp.log_softmax(%3) {args = {dim = -1 : i64, half_to_float = false}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    // CHECK: mp.nll_loss{{.*}}'loss'
    %5:2 = mp.nll_loss(%4, %t) {args = {reduction = 1 : i64, ignore_index = -100 : i64}} : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<f32>)
    return %2#0, %5#0 : tensor<4x2xf32>, tensor<f32>
  }

  // Sums that are no residual stream: a bias, a polynomial in a feed-forward layer, two
  // terms of scores; nor is a convolution around relu a feed-forward layer.
  // CHECK-LABEL: func.func @others
  func.func @others(%x: tensor<4x8xbf16>, %w: tensor<8x8xbf16>, %b: tensor<8xbf16>, %i: tensor<1x4x8x8xbf16>, %k: tensor<4x4x1x1xbf16>) -> (tensor<4x8xbf16>, tensor<1x4x8x8xbf16>) {
    // CHECK: mp.matmul {{.*}}'other'
    %0 = mp.matmul %x, %w : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
    // CHECK: "aten.add.Tensor"{{.*}}'other'
    %1 = mp.aten "aten.add.Tensor"(%0, %b) : (tensor<4x8xbf16>, tensor<8xbf16>) -> tensor<4x8xbf16>
    // CHECK: "aten.add.Tensor"{{.*}}'ffn'
    %2 = mp.aten "aten.add.Tensor"(%1, %0) : (tensor<4x8xbf16>, tensor<4x8xbf16>) -> tensor<4x8xbf16> loc(#fc)
    %3 = mp.matmul %2, %w : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
    %4 = mp.matmul %2, %w : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
    // CHECK: "aten.add.Tensor"{{.*}}'attention'
    %5 = mp.aten "aten.add.Tensor"(%3, %4) : (tensor<4x8xbf16>, tensor<4x8xbf16>) -> tensor<4x8xbf16> loc(#attn)
    // CHECK: "aten.convolution.default"{{.*}}'other'
    %6 = mp.aten "aten.convolution.default"(%i, %k) : (tensor<1x4x8x8xbf16>, tensor<4x4x1x1xbf16>) -> tensor<1x4x8x8xbf16>
    // CHECK: "aten.relu.default"{{.*}}'other'
    %7 = mp.aten "aten.relu.default"(%6) : (tensor<1x4x8x8xbf16>) -> tensor<1x4x8x8xbf16>
    return %5, %7 : tensor<4x8xbf16>, tensor<1x4x8x8xbf16>
  }
}
