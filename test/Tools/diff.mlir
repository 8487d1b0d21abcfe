// RUN: split-file %s %t
// RUN: mpopt diff %t/a.mlir %t/a.mlir | FileCheck %s --check-prefix=SAME
// RUN: mpopt diff %t/a.mlir %t/spelled.mlir | FileCheck %s --check-prefix=SAME
// RUN: not mpopt diff %t/a.mlir %t/b.mlir | FileCheck %s --check-prefix=OTHER
// RUN: not mpopt diff %t/a.mlir %t/none.mlir 2>&1 | FileCheck %s --check-prefix=BAD

// SAME: no difference in conversions, types or bytes

// OTHER: layer
// OTHER-NEXT: conversions {{ *}}1 -> 0
// OTHER-NEXT: f32 -> bf16 {{ *}}1 -> 0
// OTHER-NEXT: bytes of conversions {{ *}}24 -> 0
// OTHER-NEXT: results of type bf16 {{ *}}1 -> 0
// OTHER-NEXT: results of type f32 {{ *}}0 -> 1

// BAD: mpopt: error: {{.*}}none.mlir: cannot read: No such file

//--- a.mlir
#loc = loc("layer"(unknown))
func.func @f(%x: tensor<4xf32>) {
  %0 = mp.cast %x origin(user) : tensor<4xf32> to tensor<4xbf16> loc(#loc)
  %1 = mp.aten "aten.relu.default"(%0) : (tensor<4xbf16>) -> tensor<4xbf16> loc(#loc)
  return
}

//--- spelled.mlir
#loc = loc("layer"(unknown))
func.func @f(%x: tensor<4xf32>) {
  %0 = mp.aten "aten.to.dtype"(%x) {args = {dtype = bf16}} : (tensor<4xf32>) -> tensor<4xbf16> loc(#loc)
  %1 = mp.aten "aten.relu.default"(%0) : (tensor<4xbf16>) -> tensor<4xbf16> loc(#loc)
  return
}

//--- b.mlir
#loc = loc("layer"(unknown))
func.func @f(%x: tensor<4xf32>) {
  %1 = mp.aten "aten.relu.default"(%x) : (tensor<4xf32>) -> tensor<4xf32> loc(#loc)
  return
}
