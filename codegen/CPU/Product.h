//===- Product.h - the fixed part of a matmul kernel ------------*- C++ -*-===//

#ifndef MP_CODEGEN_CPU_PRODUCT_H
#define MP_CODEGEN_CPU_PRODUCT_H

#include "codegen/Kernel/Kernel.h"
#include "runtime/Gemm/Gemm.h"

namespace mlir::mp::cpu {

/// What runtime/Gemm needs to know of a kernel, but for `finish`. Fails with an
/// error that says what the CPU has no products of.
FailureOr<::mp::runtime::gemm::Product> productOf(const MatmulKernel &kernel);

} // namespace mlir::mp::cpu

#endif // MP_CODEGEN_CPU_PRODUCT_H
