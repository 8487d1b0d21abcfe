// A budget of a module bounds what its values add to errors, beside the budget of all.
//
// RUN: split-file %s %t
// RUN: mpopt %t/graph.mlir --mp-apply-policy=file=%t/none.toml \
// RUN:   --mp-assign-precision='numerics=relaxed epsilon=10' | FileCheck %s --check-prefix=FREE
// RUN: mpopt %t/graph.mlir --mp-apply-policy=file=%t/first.toml \
// RUN:   --mp-assign-precision='numerics=relaxed epsilon=10' | FileCheck %s --check-prefix=FIRST
// RUN: mpopt %t/graph.mlir --mp-apply-policy=file=%t/wide.toml \
// RUN:   --mp-assign-precision='numerics=relaxed epsilon=10' | FileCheck %s --check-prefix=FREE
// RUN: mpopt %t/graph.mlir --mp-apply-policy=file=%t/unmatched.toml -o /dev/null 2>&1 \
// RUN:   | FileCheck %s --check-prefix=UNMATCHED
// RUN: not mpopt %t/graph.mlir --mp-apply-policy=file=%t/incomplete.toml 2>&1 \
// RUN:   | FileCheck %s --check-prefix=INCOMPLETE
// RUN: not mpopt %t/graph.mlir --mp-apply-policy=file=%t/negative.toml 2>&1 \
// RUN:   | FileCheck %s --check-prefix=NEGATIVE

// FREE: "aten.mul.Tensor"{{.*}}mp.read_as
// FREE: "aten.mul.Tensor"{{.*}}mp.read_as

// FIRST: "aten.mul.Tensor"(%{{[0-9]+}}, %0) {mp.backward} :
// FIRST: "aten.mul.Tensor"{{.*}}mp.read_as

// UNMATCHED: warning: unmatched.toml:2: the budget matches nothing in @f: no operation is in a module 'layers.2'
// INCOMPLETE: incomplete.toml:2:1: {{\[\[budget\]\]}} needs 'module' and 'epsilon'
// NEGATIVE: negative.toml:4:11: 'epsilon' must be a finite number of 0 or more

//--- none.toml
version = 1
//--- first.toml
version = 1
[[budget]]
module = "layers.0"
epsilon = 0.0
//--- wide.toml
version = 1
[[budget]]
module = "layers.*"
epsilon = 5
//--- unmatched.toml
version = 1
[[budget]]
module = "layers.2"
epsilon = 0.1
//--- incomplete.toml
version = 1
[[budget]]
module = "layers.0"
//--- negative.toml
version = 1
[[budget]]
module = "layers.0"
epsilon = -1

//--- graph.mlir
func.func @f(%x: tensor<256x256xf32>, %h: tensor<256x256xbf16>) -> (tensor<256x256xf32>, tensor<256x256xf32>, tensor<256x256xbf16>) {
  %0 = mp.aten "aten.sin.default"(%x) : (tensor<256x256xf32>) -> tensor<256x256xf32> loc("layers.0")
  %1 = mp.aten "aten.cos.default"(%x) : (tensor<256x256xf32>) -> tensor<256x256xf32> loc("layers.1")
  %2 = mp.matmul %h, %h : (tensor<256x256xbf16>, tensor<256x256xbf16>) -> tensor<256x256xbf16> loc("head")
  %3 = mp.cast %2 origin(autocast) {mp.backward} : tensor<256x256xbf16> to tensor<256x256xf32> loc("head")
  %4 = mp.aten "aten.mul.Tensor"(%3, %0) {mp.backward} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32> loc("head")
  %5 = mp.aten "aten.mul.Tensor"(%3, %1) {mp.backward} : (tensor<256x256xf32>, tensor<256x256xf32>) -> tensor<256x256xf32> loc("head")
  return %4, %5, %2 : tensor<256x256xf32>, tensor<256x256xf32>, tensor<256x256xbf16>
}
