// Numbers that follow from the constants of a graph.
// RUN: mpopt %s --mp-pin=half=bf16 2> %t.bf16 | FileCheck %s --check-prefixes=CHECK,BF16
// RUN: mpopt %s --mp-pin=half=f16 2> %t.f16 | FileCheck %s --check-prefixes=CHECK,F16
// RUN: FileCheck %s --check-prefix=WARN < %t.bf16
// RUN: FileCheck %s --check-prefix=WARN < %t.f16

// Counts in float: of tokens in a mask, of positions, of what a type alone bounds.
// CHECK-LABEL: func.func @t21_counts
// BF16: aten.sum.default{{.*}}#mp.pin<fp32 result, "integer-values", "aten.sum of a scalar: integers up to 4096; bf16 holds all of them up to 256 only">
// F16: aten.sum.default{{.*}}"integer-values", "aten.sum of a scalar: integers up to 4096; f16 holds all of them up to 2048 only">
// BF16: mp.cast{{.*}}"integer-values", "mp.cast of 1000: integers up to 999;
// F16-NOT: integer-values{{.*}}999
// CHECK: mp.cast{{.*}}"integer-values", "mp.cast of 4: integers of a type that has no bound;
func.func @t21_counts(%m: tensor<8x512xi1>, %i: tensor<4xi64>) -> (tensor<f32>, tensor<1000xf32>, tensor<4xf32>) {
  %0 = mp.cast %m origin(user) : tensor<8x512xi1> to tensor<8x512xf32>
  %1 = mp.aten "aten.sum.default"(%0) : (tensor<8x512xf32>) -> tensor<f32>
  %2 = mp.aten "aten.arange.default"() {args = {end = 1000, dtype = i64}} : () -> tensor<1000xi64>
  %3 = mp.cast %2 origin(user) : tensor<1000xi64> to tensor<1000xf32>
  %4 = mp.cast %i origin(user) : tensor<4xi64> to tensor<4xf32>
  return %1, %3, %4 : tensor<f32>, tensor<1000xf32>, tensor<4xf32>
}

// A mask, an image of bytes, small counts, one number, a fraction of a count.
// CHECK-LABEL: func.func @t6_held_integers
// CHECK-NOT: mp.pin
// CHECK: return
func.func @t6_held_integers(%m: tensor<4x64xi1>, %b: tensor<4xui8>) {
  %0 = mp.cast %m origin(user) : tensor<4x64xi1> to tensor<4x64xf32>
  %1 = mp.aten "aten.sum.dim_IntList"(%0) {args = {dim = [1]}} : (tensor<4x64xf32>) -> tensor<4xf32>
  %2 = mp.cast %b origin(user) : tensor<4xui8> to tensor<4xf32>
  %3 = mp.aten "aten.div.Tensor"(%2) {args = {other = 255.0}} : (tensor<4xf32>) -> tensor<4xf32>
  %4 = mp.aten "aten.full.default"() {args = {size = [4], fill_value = 4096, dtype = f32}} : () -> tensor<4xf32>
  %5 = mp.aten "aten.mul.Tensor"(%3) {args = {other = 1000.0}} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// The last operation of a graph counts as well (T7). bf16 has the range.
// CHECK-LABEL: func.func @t7_overflow
// BF16-NOT: overflow
// F16: aten.mul.Tensor{{.*}}#mp.pin<fp32 result, "overflow", "aten.mul of 8: by the constants of the graph between 0 and 100000; f16 ends at 65504">
// F16: aten.clamp.default{{.*}}"overflow", "aten.clamp of 8: by the constants of the graph between -70000 and 70000;
// F16: aten.add.Tensor{{.*}}"overflow", "aten.add of 8: by the constants of the graph between -70000 and 170000;
// CHECK: return
func.func @t7_overflow(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = mp.aten "aten.sigmoid.default"(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = mp.aten "aten.mul.Tensor"(%0) {args = {other = 50000.0}} : (tensor<8xf32>) -> tensor<8xf32>
  %2 = mp.aten "aten.mul.Tensor"(%1) {args = {other = 2}} : (tensor<8xf32>) -> tensor<8xf32>
  %3 = mp.aten "aten.clamp.default"(%x) {args = {min = -60000, max = 60000}} : (tensor<8xf32>) -> tensor<8xf32>
  %4 = mp.aten "aten.clamp.default"(%x) {args = {min = -7.0e4, max = 7.0e4}} : (tensor<8xf32>) -> tensor<8xf32>
  %5 = mp.aten "aten.add.Tensor"(%2, %4) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %3, %5 : tensor<8xf32>, tensor<8xf32>
}

// Limits that cross: everything is the upper one.
// CHECK-LABEL: func.func @crossed_limits
// F16: "overflow", "aten.clamp of 8: by the constants of the graph between 70000 and 70000;
// CHECK: return
func.func @crossed_limits(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = mp.aten "aten.clamp.default"(%x) {args = {min = 8.0e4, max = 7.0e4}} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// Nothing is known of an argument, and a difference of unknowns is unknown.
// CHECK-LABEL: func.func @unknown
// CHECK-NOT: mp.pin
// CHECK: return
func.func @unknown(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = mp.aten "aten.mul.Tensor"(%x) {args = {other = 60000.0}} : (tensor<8xf32>) -> tensor<8xf32>
  %1 = mp.aten "aten.relu.default"(%0) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = mp.aten "aten.sub.Tensor"(%1, %1) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}

// The graph rounds positions itself.
// WARN: pin-ranges.mlir:[[#@LINE+4]]:{{.*}}: warning: rounds integers up to 4095 to bf16, which holds all of them up to 256 only
// WARN-NOT: warning
func.func @b23_rounded_positions() -> (tensor<4096xbf16>, tensor<100xf16>) {
  %0 = mp.aten "aten.arange.default"() {args = {end = 4096, dtype = i64}} : () -> tensor<4096xi64>
  %1 = mp.cast %0 origin(user) : tensor<4096xi64> to tensor<4096xbf16>
  %2 = mp.aten "aten.arange.default"() {args = {end = 100, dtype = i64}} : () -> tensor<100xi64>
  %3 = mp.cast %2 origin(user) : tensor<100xi64> to tensor<100xf16>
  return %1, %3 : tensor<4096xbf16>, tensor<100xf16>
}
