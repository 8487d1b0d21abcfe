// Ranges that calibration measured.
// RUN: mpopt %s --mp-pin="half=f16 ranges=%S/../Inputs/ranges.json" | FileCheck %s
// RUN: mpopt %s --mp-pin="half=bf16 ranges=%S/../Inputs/ranges.json" | FileCheck %s --check-prefix=BF16
// RUN: mpopt %s --mp-pin=half=f16 | FileCheck %s --check-prefix=BF16
// RUN: not mpopt %s --mp-pin=ranges=%t.none.json 2>&1 | FileCheck %s --check-prefix=NONE

// Less than a factor of 2 to the end of the range; a quarter becomes zero; neither.
// CHECK: aten.relu.default"(%arg0) {mp.pin = [#mp.pin<fp32 result, "measured-overflow", "aten.relu of 8: measured up to 40000; f16 ends at 65504">]}
// CHECK: aten.view.default
// CHECK-NOT: mp.pin
// CHECK: aten.relu.default{{.*}}mp.pin = [#mp.pin<fp32 result, "measured-underflow", "aten.relu of 2x4: measured: 25 % of 800 elements become zero in f16">]
// CHECK-NOT: mp.pin
// BF16-NOT: mp.pin
// BF16: return
// NONE: error: mp-pin: {{.*}}none.json
func.func @measured(%x: tensor<8xf32>) -> tensor<2x4xf32> {
  %0 = mp.aten "aten.relu.default"(%x) : (tensor<8xf32>) -> tensor<8xf32> loc(#ffn)
  %1 = mp.aten "aten.view.default"(%0) {args = {size = [2, 4]}} : (tensor<8xf32>) -> tensor<2x4xf32> loc(#ffn)
  %2 = mp.aten "aten.relu.default"(%1) : (tensor<2x4xf32>) -> tensor<2x4xf32> loc(#ffn)
  %3 = mp.aten "aten.relu.default"(%2) : (tensor<2x4xf32>) -> tensor<2x4xf32> loc(#ffn)
  return %3 : tensor<2x4xf32>
}
#ffn = loc("ffn"("net.py":3:0))
