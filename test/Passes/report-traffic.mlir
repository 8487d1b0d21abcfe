// What kernels read of buffers, which stored values share a kernel, and what is
// saved.
// RUN: mpopt %s --mp-report-traffic | FileCheck %s
// RUN: mpopt %s '--pass-pipeline=builtin.module(func.func(mp-report-traffic{kernels}))' \
// RUN:   -o /dev/null 2>&1 | FileCheck %s --check-prefix=KERNEL

// A quarter of what is computed inside the kernel is all that it needs of %x.
// CHECK-LABEL: func.func @slice_of_computed
// CHECK-SAME: fused_bytes = 131072
// KERNEL: remark: kernel reads 65536 B and stores 65536 B
// KERNEL: note: read by it: <block argument> of type 'tensor<64x1024xf32>' at index: 0
func.func @slice_of_computed(%x: tensor<64x1024xf32>) -> tensor<64x256xf32> {
  %0 = mp.aten "aten.add.Tensor"(%x, %x) : (tensor<64x1024xf32>, tensor<64x1024xf32>) -> tensor<64x1024xf32>
  %1 = mp.aten "aten.slice.Tensor"(%0) {args = {dim = 1 : i64, start = 0 : i64, end = 256 : i64}} : (tensor<64x1024xf32>) -> tensor<64x256xf32>
  %2 = mp.aten "aten.neg.default"(%1) : (tensor<64x256xf32>) -> tensor<64x256xf32>
  return %2 : tensor<64x256xf32>
}

// Two different halves are all of it; the same half twice is a half.
// CHECK-LABEL: func.func @two_slices
// CHECK-SAME: fused_bytes = 393216
// CHECK-LABEL: func.func @one_slice_twice
// CHECK-SAME: fused_bytes = 262144
func.func @two_slices(%x: tensor<64x1024xf32>) -> tensor<64x512xf32> {
  %0 = mp.aten "aten.slice.Tensor"(%x) {args = {dim = 1 : i64, start = 0 : i64, end = 512 : i64}} : (tensor<64x1024xf32>) -> tensor<64x512xf32>
  %1 = mp.aten "aten.slice.Tensor"(%x) {args = {dim = 1 : i64, start = 512 : i64, end = 1024 : i64}} : (tensor<64x1024xf32>) -> tensor<64x512xf32>
  %2 = mp.aten "aten.mul.Tensor"(%0, %1) : (tensor<64x512xf32>, tensor<64x512xf32>) -> tensor<64x512xf32>
  return %2 : tensor<64x512xf32>
}
func.func @one_slice_twice(%x: tensor<64x1024xf32>) -> tensor<64x512xf32> {
  %0 = mp.aten "aten.slice.Tensor"(%x) {args = {dim = 1 : i64, start = 0 : i64, end = 512 : i64}} : (tensor<64x1024xf32>) -> tensor<64x512xf32>
  %1 = mp.aten "aten.neg.default"(%0) : (tensor<64x512xf32>) -> tensor<64x512xf32>
  %2 = mp.aten "aten.mul.Tensor"(%0, %1) : (tensor<64x512xf32>, tensor<64x512xf32>) -> tensor<64x512xf32>
  return %2 : tensor<64x512xf32>
}

// One element a row: 256 B of %x, 512 B of indices, 256 B stored.
// CHECK-LABEL: func.func @gather_of_computed
// CHECK-SAME: fused_bytes = 1024
func.func @gather_of_computed(%x: tensor<64x1024xf32>, %index: tensor<64x1xi64>) -> tensor<64x1xf32> {
  %0 = mp.aten "aten.exp.default"(%x) : (tensor<64x1024xf32>) -> tensor<64x1024xf32>
  %1 = mp.aten "aten.gather.default"(%0, %index) {args = {dim = 1 : i64}} : (tensor<64x1024xf32>, tensor<64x1xi64>) -> tensor<64x1xf32>
  return %1 : tensor<64x1xf32>
}

// Without a slice all of %x is read, once.
// CHECK-LABEL: func.func @all_of_it
// CHECK-SAME: fused_bytes = 524288
func.func @all_of_it(%x: tensor<64x1024xf32>) -> tensor<64x1024xf32> {
  %0 = mp.aten "aten.exp.default"(%x) : (tensor<64x1024xf32>) -> tensor<64x1024xf32>
  %1 = mp.aten "aten.mul.Tensor"(%0, %x) : (tensor<64x1024xf32>, tensor<64x1024xf32>) -> tensor<64x1024xf32>
  return %1 : tensor<64x1024xf32>
}

// A GPU sums rows and columns in one kernel, but not two kinds of columns; what
// follows one of the sums joins it.
// CHECK-LABEL: func.func @rows_and_columns
// CHECK-SAME: fused_kernels = 1
// CHECK-LABEL: func.func @two_kinds_of_columns
// CHECK-SAME: cast_kernels = 0
// CHECK-SAME: fused_kernels = 2
func.func @rows_and_columns(%x: tensor<64x32x128xf32>) -> (tensor<64x32xf32>, tensor<32x128xf32>) attributes {mp.target = "cuda"} {
  %0 = mp.aten "aten.sum.dim_IntList"(%x) {args = {dim = [2]}} : (tensor<64x32x128xf32>) -> tensor<64x32xf32>
  %1 = mp.aten "aten.sum.dim_IntList"(%x) {args = {dim = [0]}} : (tensor<64x32x128xf32>) -> tensor<32x128xf32>
  return %0, %1 : tensor<64x32xf32>, tensor<32x128xf32>
}
func.func @two_kinds_of_columns(%x: tensor<64x32x128xbf16>) -> (tensor<64x32xbf16>, tensor<32x128xbf16>, tensor<128xf32>) attributes {mp.target = "cuda"} {
  %0 = mp.aten "aten.sum.dim_IntList"(%x) {args = {dim = [2]}} : (tensor<64x32x128xbf16>) -> tensor<64x32xbf16>
  %1 = mp.aten "aten.sum.dim_IntList"(%x) {args = {dim = [0]}} : (tensor<64x32x128xbf16>) -> tensor<32x128xbf16>
  %2 = mp.aten "aten.sum.dim_IntList"(%x) {args = {dim = [0, 1]}} : (tensor<64x32x128xbf16>) -> tensor<128xbf16>
  %3 = mp.cast %2 origin(autocast) : tensor<128xbf16> to tensor<128xf32>
  return %0, %1, %3 : tensor<64x32xbf16>, tensor<32x128xbf16>, tensor<128xf32>
}

// A constant that forward makes and backward reads is saved like any other.
// CHECK-LABEL: func.func @saved_constant
// CHECK-SAME: saved_bytes = 4096
func.func @saved_constant(%x: tensor<1024xf32>) -> (tensor<1024xf32>, tensor<1024xf32>) {
  %0 = mp.aten "aten.full.default"() {args = {fill_value = 1.0 : f64, size = [1024]}} : () -> tensor<1024xf32>
  %1 = mp.aten "aten.add.Tensor"(%x, %0) : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  %2 = mp.aten "aten.mul.Tensor"(%x, %0) {mp.backward} : (tensor<1024xf32>, tensor<1024xf32>) -> tensor<1024xf32>
  return %1, %2 : tensor<1024xf32>, tensor<1024xf32>
}
