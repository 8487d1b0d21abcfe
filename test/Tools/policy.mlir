// `mpopt policy`: a start for a graph, and what a policy does to one.
// RUN: split-file %s %t
// RUN: mpopt policy init %t/graph.mlir -o %t/start.toml
// RUN: FileCheck %s --check-prefix=INIT --input-file=%t/start.toml
// What it writes is a policy, and with the comments taken off still one.
// RUN: mpopt policy check %t/start.toml %t/graph.mlir | FileCheck %s --check-prefix=EMPTY
// RUN: sed -e "s/^# \([a-z]* = \|\[\)/\1/" %t/start.toml > %t/open.toml
// RUN: mpopt policy check %t/open.toml | FileCheck %s --check-prefix=OPEN
// RUN: mpopt policy check %t/run.toml %t/graph.mlir | FileCheck %s --check-prefix=CHECK

// INIT: # Precision policy, started from graph.mlir.
// INIT: version = 1
// INIT-NEXT: # level = "precise"
// INIT: attention {{ *}}0
// INIT: ffn {{ *}}4 {{ *}}feed-forward layers and experts
// INIT: # enable = ["ffn"]
// INIT: layers.*.mlp {{ *}}2 modules, 4 operations
// INIT-NEXT: lm_head {{ *}}1 module, 1 operation
// INIT-NEXT: # {{\[\[rule\]\]}}
// INIT-NEXT: # module = "layers.*.mlp"
// INIT: Operators that mpopt knows nothing of
// INIT: mylib.scale (1)

// EMPTY: start.toml: 0 rules, 0 operators, sha256
// OPEN: open.toml: 1 rule, 1 operator, level precise, epsilon 0.1, groups ffn, sha256

// CHECK: run.toml: 3 rules, 0 operators, level strict, groups ffn head, sha256
// CHECK: run.toml:5: fp32 both, matches 4, decides 3
// CHECK-NEXT: 2 x aten.gelu.default {{ *}}layers.*.mlp
// CHECK-NEXT: 2 x aten.mm.default {{ *}}layers.*.mlp
// CHECK: run.toml:8: half operands, matches 1, decides 1
// CHECK-NEXT: 1 x aten.mm.default {{ *}}layers.*.mlp

// RUN: not mpopt policy inti %t/graph.mlir 2>&1 | FileCheck %s --check-prefix=VERB
// VERB: mpopt: error: 'mpopt policy' has no verb 'inti'; did you mean 'init'? ('mpopt policy --help' has both)
// RUN: not mpopt policy init 2>&1 | FileCheck %s --check-prefix=COUNT
// COUNT: mpopt: error: 'mpopt policy' needs init|check and INPUT|POLICY and [INPUT], got 1 inputs
// RUN: not mpopt explain %t/graph.mlir --policy=%t/graph.mlir 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: mpopt: error: {{.*}}graph.mlir:1:{{[0-9]+: .+}}

// The report names the policy, its level is the contract, and what fits nothing is a note.
// RUN: mpopt explain %t/graph.mlir --policy=%t/run.toml | FileCheck %s --check-prefix=EXPLAIN
// RUN: mpopt explain %t/graph.mlir --policy=%t/run.toml --format=json | FileCheck %s --check-prefix=JSON
// RUN: mpopt explain %t/graph.mlir --policy=%t/run.toml --format=html | FileCheck %s --check-prefix=HTML
// RUN: mpopt explain %t/graph.mlir --policy=%t/run.toml --numerics=precise | FileCheck %s --check-prefix=GIVEN
// RUN: mpopt explain %t/graph.mlir --policy=%t/none.toml | FileCheck %s --check-prefix=NOTE
// EXPLAIN: 6 operations, numerics strict
// EXPLAIN-NEXT: policy run.toml (sha256 {{[0-9a-f]+}})
// JSON: "policy": "run.toml (sha256 {{[0-9a-f]+}})",
// JSON-NEXT: "policy_notes": []
// HTML: numerics strict, policy run.toml (sha256 {{[0-9a-f]+}})</p>
// GIVEN: numerics precise
// NOTE: note: policy none.toml:2: the rule matches nothing in @f: no operator is 'aten.bmm'; did you mean

//--- run.toml
version = 1
level = "strict"
[groups]
enable = ["ffn", "head"]
[[rule]]
module = "layers.**"
precision = "fp32"
[[rule]]
module = "layers.1.mlp"
op = "*.mm"
precision = "half"
where = "operands"
[[rule]]
module = "layers.1.mlp"
op = "aten.mm"
precision = "keep"
where = "result"
//--- none.toml
version = 1
[[rule]]
op = "aten.bmm"
precision = "keep"
//--- graph.mlir
func.func @f(%x: tensor<4x8xbf16>, %w: tensor<8x8xbf16>) -> tensor<4x8xbf16> {
  %0 = mp.aten "aten.mm.default"(%x, %w) : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16> loc("layers.0.mlp"("/src/net.py":3:0))
  %1 = mp.aten "aten.gelu.default"(%0) : (tensor<4x8xbf16>) -> tensor<4x8xbf16> loc("layers.0.mlp"("/src/net.py":4:0))
  %2 = mp.aten "aten.mm.default"(%1, %w) : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16> loc("layers.1.mlp"("/src/net.py":3:0))
  %3 = mp.aten "aten.gelu.default"(%2) : (tensor<4x8xbf16>) -> tensor<4x8xbf16> loc("layers.1.mlp"("/src/net.py":4:0))
  %4 = mp.aten "mylib.scale.default"(%3) : (tensor<4x8xbf16>) -> tensor<4x8xbf16>
  %5 = mp.aten "aten.mm.default"(%4, %w) : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16> loc("lm_head"("/src/net.py":9:0))
  return %5 : tensor<4x8xbf16>
}
