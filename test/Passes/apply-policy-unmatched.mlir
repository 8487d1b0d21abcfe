// A rule that matches nothing is told once, with the selector that fails and the nearest name.
// RUN: split-file %s %t
// RUN: mpopt %t/graph.mlir --mp-apply-policy=file=%t/rules.toml --remarks-filter-missed=".*" 2>&1 | FileCheck %s
// CHECK: warning: rules.toml:2: the rule matches nothing in @f: no operation is in a module 'layers.*.mpl'; did you mean 'layers.0.mlp'?
// CHECK: warning: rules.toml:5: the rule matches nothing in @f: no operation is in a module 'layers.0' itself, but some are in 'layers.0.mlp'; did you mean 'layers.0.**'?
// CHECK: warning: rules.toml:8: the rule matches nothing in @f: no operator is 'aten.gello'; did you mean 'aten.gelu'?
// CHECK: warning: rules.toml:11: the rule matches nothing in @f: no operation is on line 99 of 'net.py'
// CHECK: warning: rules.toml:14: the rule matches nothing in @f: no operation is of a file 'nett.py'; did you mean 'net.py'?
// CHECK: warning: rules.toml:17: the rule matches nothing in @f: no name matches 'conv[0-9]'; names are like 'layers.0.mlp/aten.mm.default'
// CHECK: warning: rules.toml:20: the rule matches nothing in @f: no operation meets all of its selectors
// CHECK-NOT: warning
// CHECK: remark: [Missed] unmatched-policy-rule | Category:mp-apply-policy {{.*}}rules.toml:2
// CHECK: func.func @f
// CHECK: mp.rewrites = [{{.*}}rule = "unmatched-policy-rule", status = "missed", why = "rules.toml:2: the rule matches nothing

// The tool says the same of a file and a graph, and returns 1.
// RUN: not mpopt policy check %t/rules.toml %t/graph.mlir | FileCheck %s --check-prefix=TOOL
// TOOL: rules.toml: 8 rules, 0 operators, sha256 {{[0-9a-f]+$}}
// TOOL: rules.toml:2: fp32 both, matches nothing: no operation is in a module 'layers.*.mpl'
// TOOL: rules.toml:24: keep result, matches 1, decides 1
// TOOL-NEXT: 1 x aten.gelu.default {{ *}}layers.*.mlp

//--- rules.toml
version = 1
[[rule]]
module = "layers.*.mpl"
precision = "fp32"
[[rule]]
module = "layers.0"
precision = "fp32"
[[rule]]
op = "aten.gello"
precision = "fp32"
[[rule]]
line = "net.py:99"
precision = "fp32"
[[rule]]
line = "nett.py:3"
precision = "fp32"
[[rule]]
name = "conv[0-9]"
precision = "fp32"
[[rule]]
op = "aten.gelu"
dtype = "fp16"
precision = "fp32"
[[rule]]
op = "aten.gelu"
precision = "keep"
where = "result"
//--- graph.mlir
module {
  func.func @f(%x: tensor<4xbf16>) -> tensor<4xbf16> {
    %0 = mp.gelu(%x) : (tensor<4xbf16>) -> tensor<4xbf16> loc("layers.0.mlp"("/src/net.py":3:0))
    return %0 : tensor<4xbf16>
  }
}
