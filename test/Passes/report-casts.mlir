// RUN: mpopt %s --mp-report-casts | FileCheck %s

// One record for each activation's conversion, none for a weight's, a
// gradient's or an integer's; the graph stays.
// CHECK-LABEL: func.func @report
// CHECK-SAME: mp.rewrites = [
// CHECK-SAME: contract = "strict", module = "", node = -1 : i64, op = "mp.cast", rule = "keep-cast", status = "missed", why = "autocast asked for f32 to bf16; read by aten.mm.default; a reader sees the half value; inside the kernel of aten.exp.default"
// CHECK-NOT: keep-cast
// CHECK-SAME: ]
// CHECK-COUNT-4: mp.cast %
func.func @report(%x: tensor<8x8xf32>, %w: tensor<8x8xf32> {mp.role = "parameter"}, %i: tensor<4xi64>) -> (tensor<8x8xbf16>, tensor<4xf32>, tensor<8x8xf32>) {
  %0 = mp.aten "aten.exp.default"(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = mp.cast %0 origin(autocast) : tensor<8x8xf32> to tensor<8x8xbf16>
  %2 = mp.aten "aten.t.default"(%w) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = mp.cast %2 origin(autocast) : tensor<8x8xf32> to tensor<8x8xbf16>
  %4 = mp.aten "aten.mm.default"(%1, %3) : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  %5 = mp.cast %i origin(user) : tensor<4xi64> to tensor<4xf32>
  %6 = mp.aten "aten.mm.default"(%4, %4) {mp.backward} : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  %7 = mp.cast %6 origin(autocast) {mp.backward} : tensor<8x8xbf16> to tensor<8x8xf32>
  return %4, %5, %7 : tensor<8x8xbf16>, tensor<4xf32>, tensor<8x8xf32>
}

// CHECK-LABEL: func.func @user_rounding
// CHECK-SAME: why = "user asked for f32 to f16; it is a graph output, whose type stays; a rounding that the user wrote is never dropped"
func.func @user_rounding(%x: tensor<4xf32>) -> tensor<4xf16> {
  %0 = mp.cast %x origin(user) : tensor<4xf32> to tensor<4xf16>
  return %0 : tensor<4xf16>
}

// Seen through views; the reader that comes first is named.
// CHECK-LABEL: func.func @first_reader
// CHECK-SAME: read by aten.sin.default; exact, changes no value
func.func @first_reader(%x: tensor<4x4xbf16>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = mp.cast %x origin(promotion) : tensor<4x4xbf16> to tensor<4x4xf32>
  %1 = mp.aten "aten.t.default"(%0) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = mp.aten "aten.sin.default"(%1) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = mp.aten "aten.cos.default"(%1) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %2, %3 : tensor<4x4xf32>, tensor<4x4xf32>
}

// Nothing converted, nothing recorded.
// CHECK-LABEL: func.func @nothing
// CHECK-NOT: mp.rewrites
func.func @nothing(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
