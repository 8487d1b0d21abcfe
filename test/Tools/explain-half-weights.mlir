// Weights that come in as half copies are no conversions, and the report says so.
// RUN: mpopt explain %s | FileCheck %s
// RUN: mpopt explain --format=json %s | FileCheck %s --check-prefix=JSON
// RUN: mpopt explain --format=html %s | FileCheck %s --check-prefix=HTML

// CHECK: note: 2 weights come in as half copies that the optimizer writes (48 B)
// JSON: "half_weights":{{ ?}}{
// JSON: "casts":{{ ?}}2
// HTML: 2 weights come in as half copies that the optimizer writes (48 B)
func.func @f(%x: tensor<2x4xbf16>, %w: tensor<4x4xbf16> {mp.role = "half_weight"}, %b: tensor<2x4xbf16> {mp.role = "half_weight"},
             %e: tensor<4x4xf32> {mp.role = "parameter"}) -> tensor<2x4xbf16> {
  %0 = mp.aten "aten.mm.default"(%x, %w) : (tensor<2x4xbf16>, tensor<4x4xbf16>) -> tensor<2x4xbf16>
  %1 = mp.aten "aten.add.Tensor"(%0, %b) : (tensor<2x4xbf16>, tensor<2x4xbf16>) -> tensor<2x4xbf16>
  return %1 : tensor<2x4xbf16>
}
