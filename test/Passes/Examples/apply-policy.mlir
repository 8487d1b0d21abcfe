// The example that the reference of mp-apply-policy shows.
// RUN: mpopt %s --mp-apply-policy | FileCheck %s

// CHECK-LABEL: func.func @head
func.func @head(%x: tensor<4x8xbf16>, %w: tensor<8x16xbf16>) -> tensor<4x16xbf16>
    attributes {mp.policy = {file = "run.toml", text = "version = 1\0A[[rule]]\0Amodule = 'lm_head'\0Aop = 'aten.mm'\0Aprecision = 'fp32'\0Awhere = 'result'\0Awhy = 'logits'\0A"}} {
  // CHECK: mp.matmul
  // CHECK-SAME: mp.pin = [#mp.pin<fp32 result, "policy", "logits (run.toml:2)">]
  %0 = mp.matmul %x, %w : (tensor<4x8xbf16>, tensor<8x16xbf16>) -> tensor<4x16xbf16> loc("lm_head"("net.py":7:0))
  return %0 : tensor<4x16xbf16>
}
