// What `mpopt explain` says of pins: by region, like layers together.
// RUN: mkdir -p %t.bundle
// RUN: cp %s %t.bundle/00_import.mlir
// RUN: mpopt %s --mp-raise --mp-pin=half=bf16 --mp-lower --mlir-print-debuginfo -o %t.bundle/after.mlir
// RUN: mpopt explain %t.bundle | FileCheck %s --check-prefix=TEXT
// RUN: mpopt explain %t.bundle --format=json | FileCheck %s --check-prefix=JSON
// RUN: mpopt explain %t.bundle --format=html | FileCheck %s --check-prefix=HTML

// TEXT: (model)
// TEXT-NEXT: no conversions
// TEXT-NEXT: 1 x pinned keep result, policy, 64 B more: x: "as it is"
// TEXT: layers.[0,1].attn (2 regions)
// TEXT-NEXT: no conversions
// TEXT-NEXT: 2 x pinned fp32 operands, softmax: aten._softmax of 4x8: exp turns an absolute error
// TEXT: [net.py:7]
// TEXT: head
// TEXT-NEXT: no conversions
// TEXT-NEXT: 1 x pinned fp32 both, log-probability, 64 B more: aten._log_softmax of 4x8

// JSON: "pins": {
// JSON-NEXT: "log-probability": 1,
// JSON-NEXT: "policy": 1,
// JSON-NEXT: "softmax": 2
// JSON-NEXT: }
// JSON: "path": "layers.0.attn"
// JSON: "pins": [
// JSON-NEXT: {
// JSON-NEXT: "format": "fp32",
// JSON-NEXT: "where": "operands",
// JSON-NEXT: "rule": "softmax",
// JSON-NEXT: "reason": "aten._softmax of 4x8: exp
// JSON-NEXT: "op": "aten._softmax.default",
// JSON-NEXT: "bytes": 0,
// JSON-NEXT: "phase": "forward",
// JSON: "source": "net.py:7"

// HTML: <caption>What is pinned</caption>
// HTML: <code>softmax</code>
func.func @pins(%x: tensor<4x8xf32> {mp.name = "x", mp.pin = [#mp.pin<keep result, "policy", "\22as it is\22">]}) -> tensor<4x8xf32> {
  %0 = mp.aten "aten._softmax.default"(%x) {args = {dim = -1, half_to_float = false}} : (tensor<4x8xf32>) -> tensor<4x8xf32> loc(#first)
  %1 = mp.aten "aten._softmax.default"(%0) {args = {dim = -1, half_to_float = false}} : (tensor<4x8xf32>) -> tensor<4x8xf32> loc(#second)
  %2 = mp.aten "aten._log_softmax.default"(%1) {args = {dim = -1, half_to_float = false}} : (tensor<4x8xf32>) -> tensor<4x8xf32> loc(#head)
  return %2 : tensor<4x8xf32>
}
#first = loc("layers.0.attn"("net.py":7:0))
#second = loc("layers.1.attn"("net.py":7:0))
#head = loc("head"("net.py":9:0))
