// Each selector, alone and together; what wins; what is left alone.
// RUN: split-file %s %t
// RUN: mpopt %t/graph.mlir --mp-apply-policy=file=%t/module.toml | FileCheck %t/graph.mlir --check-prefix=MODULE
// RUN: mpopt %t/graph.mlir --mp-apply-policy=file=%t/op.toml | FileCheck %t/graph.mlir --check-prefix=OP
// RUN: mpopt %t/graph.mlir --mp-apply-policy=file=%t/line.toml | FileCheck %t/graph.mlir --check-prefix=LINE
// RUN: mpopt %t/graph.mlir --mp-apply-policy=file=%t/dtype.toml | FileCheck %t/graph.mlir --check-prefix=DTYPE
// RUN: mpopt %t/graph.mlir --mp-apply-policy=file=%t/name.toml | FileCheck %t/graph.mlir --check-prefix=NAME
// RUN: mpopt %t/graph.mlir --mp-apply-policy=file=%t/all.toml | FileCheck %t/graph.mlir --check-prefix=ALL
// RUN: mpopt %t/graph.mlir --mp-apply-policy=file=%t/last.toml | FileCheck %t/graph.mlir --check-prefix=LAST
// RUN: mpopt %t/graph.mlir --mp-apply-policy=file=%t/cast.toml | FileCheck %t/graph.mlir --check-prefix=CAST

// Another policy takes the pins of the first one back, and no others.
// RUN: mpopt %t/graph.mlir --mp-apply-policy=file=%t/module.toml -o %t/first.mlir --mlir-print-debuginfo
// RUN: mpopt %t/first.mlir --mp-apply-policy=file=%t/line.toml | FileCheck %t/graph.mlir --check-prefix=LINE
// RUN: mpopt %t/first.mlir --mp-apply-policy --mlir-print-debuginfo | diff - %t/first.mlir
// Without a policy nothing happens.
// RUN: mpopt %t/graph.mlir --mlir-print-debuginfo -o %t/same.mlir
// RUN: mpopt %t/graph.mlir --mp-apply-policy --mlir-print-debuginfo | diff - %t/same.mlir

//--- module.toml
version = 1
[[rule]]
module = "layers.*.mlp"
precision = "fp32"
where = "operands"
//--- op.toml
version = 1
[[rule]]
op = "aten.mm"
precision = "half"
[[rule]]
op = "aten.gel*.default"
precision = "fp32"
//--- line.toml
version = 1
[[rule]]
line = "net.py:10-11"
precision = "fp32"
//--- dtype.toml
version = 1
[[rule]]
dtype = "float32"
precision = "keep"
//--- name.toml
version = 1
[[rule]]
name = "^layers\\.1\\.mlp/.*gelu"
precision = "fp32"
[[rule]]
name = "layers.0.mlp.weight$"
precision = "keep"
//--- all.toml
version = 1
[[rule]]
module = "layers.**"
op = "aten.mm"
line = "model/net.py:12"
dtype = "bf16"
name = "mlp"
precision = "fp32"
//--- last.toml
version = 1
[[rule]]
module = "**"
op = "aten.gelu"
precision = "half"
why = "first"
[[rule]]
module = "layers.1.*"
op = "aten.gelu"
precision = "fp32"
where = "result"
why = "second"
//--- cast.toml
version = 1
[[rule]]
op = "mp.cast"
precision = "keep"
//--- graph.mlir
#mlp0 = loc("layers.0.mlp"("/src/model/net.py":10:0))
#act0 = loc("layers.0.mlp"("/src/model/net.py":11:0))
#mlp1 = loc("layers.1.mlp"("/src/model/net.py":12:0))
#act1 = loc("layers.1.mlp"("/src/model/other_net.py":10:0))
#top = loc("layers"("/src/model/net.py":20:0))
module {
  // NAME: %[[W0:arg[0-9]]]: tensor<8x8xbf16> {mp.name = "layers.0.mlp.weight", mp.pin = [#mp.pin<keep result, "policy", "name.toml:5 asks for keep">]}
  func.func @f(%x: tensor<4x8xbf16>, %w: tensor<8x8xbf16> {mp.name = "layers.0.mlp.weight"}) -> tensor<4x8xf32> {
    // MODULE: mp.matmul {{.*}}mp.pin = [#mp.pin<fp32 operands, "policy", "module.toml:2 asks for fp32">]
    // OP: mp.matmul {{.*}}<half both, "policy", "op.toml:2 asks for half">
    // LINE: mp.matmul {{.*}}<fp32 both, "policy"
    // DTYPE-NOT: mp.pin{{.*}}bf16
    // ALL-NOT: mp.pin
    %0 = mp.matmul %x, %w : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16> loc(#mlp0)
    // MODULE: mp.gelu{{.*}}<fp32 operands
    // OP: mp.gelu{{.*}}<fp32 both, "policy", "op.toml:5 asks for fp32">
    // LINE: mp.gelu{{.*}}<fp32 both
    // LAST: mp.gelu{{.*}}mp.pin = [#mp.pin<half both, "policy", "first (last.toml:2)">]
    // NAME-NOT: mp.gelu{{.*}}mp.pin{{.*}}layers.0
    %1 = mp.gelu(%0) : (tensor<4x8xbf16>) -> tensor<4x8xbf16> loc(#act0)
    // ALL: mp.matmul{{.*}}<fp32 both
    // LINE-NOT: mp.pin
    %2 = mp.matmul %1, %w : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16> loc(#mlp1)
    // NAME: mp.gelu{{.*}}<fp32 both, "policy", "name.toml:2 asks for fp32">
    // LAST: mp.gelu{{.*}}mp.pin = [#mp.pin<fp32 result, "policy", "second (last.toml:7)">, #mp.pin<half operands, "policy", "first (last.toml:2)">]
    // ALL-NOT: mp.pin
    %3 = mp.gelu(%2) : (tensor<4x8xbf16>) -> tensor<4x8xbf16> loc(#act1)
    // A view and a conversion follow what they convert.
    // MODULE: mp.aten "aten.view.default"
    // MODULE-NOT: mp.pin
    %4 = mp.aten "aten.view.default"(%3) {args = {size = [32]}} : (tensor<4x8xbf16>) -> tensor<32xbf16> loc(#mlp1)
    // CAST: mp.cast{{.*}}<keep both
    // CAST-NOT: mp.pin
    %5 = mp.cast %3 origin(user) : tensor<4x8xbf16> to tensor<4x8xf32> loc(#mlp1)
    // Not `layers.*.mlp`: the module above.
    // DTYPE: mp.aten "aten.exp.default"{{.*}}<keep both
    // MODULE: mp.aten "aten.exp.default"
    // MODULE-NOT: mp.pin
    %6 = mp.aten "aten.exp.default"(%5) : (tensor<4x8xf32>) -> tensor<4x8xf32> loc(#top)
    // Nothing of it is a float.
    // MODULE: mp.aten "aten.arange.default"
    // MODULE-NOT: mp.pin
    %7 = mp.aten "aten.arange.default"() {args = {end = 4 : i64}} : () -> tensor<4xi64> loc(#mlp1)
    return %6 : tensor<4x8xf32>
  }
}
