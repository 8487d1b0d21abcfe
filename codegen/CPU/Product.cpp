//===- Product.cpp - the fixed part of a matmul kernel --------------------===//

#include "codegen/CPU/Product.h"

using namespace mlir;
using namespace mlir::mp;
using namespace ::mp::runtime::gemm;
using ::mp::runtime::Extent;

static std::optional<Element> elementOf(Type type) {
  if (type.isF32())
    return Element::F32;
  if (type.isBF16())
    return Element::BF16;
  if (type.isF16())
    return Element::F16;
  return std::nullopt;
}

static Operand operandOf(const MatmulOperand &operand) {
  Operand result;
  result.buffer = int32_t(operand.argument);
  result.transposed = operand.transposed;
  result.batched = operand.batched;
  return result;
}

/// The matrix that a sum reads, as it is stored.
static Sum sumOf(const MatmulKernel &kernel, const SideSum &side) {
  Sum sum;
  func::FuncOp func = kernel.func;
  auto arguments = int32_t(func.getNumArguments());
  Extent m = kernel.extent(kernel.m), n = kernel.extent(kernel.n),
         k = kernel.extent(kernel.k);
  auto read = [&](int32_t buffer, Type element, Extent rows, Extent columns,
                  bool overRows) {
    sum.source = buffer;
    sum.element = *elementOf(element);
    sum.rows = rows;
    sum.columns = columns;
    sum.overRows = overRows;
  };
  switch (side.over) {
  case SideSum::Over::LhsOverK:
    read(int32_t(kernel.lhs.argument), kernel.lhs.element,
         kernel.lhs.transposed ? k : m, kernel.lhs.transposed ? m : k,
         kernel.lhs.transposed);
    break;
  case SideSum::Over::RhsOverK:
    read(int32_t(kernel.rhs.argument), kernel.rhs.element,
         kernel.rhs.transposed ? n : k, kernel.rhs.transposed ? k : n,
         !kernel.rhs.transposed);
    break;
  case SideSum::Over::ResultOverM:
    for (const KernelResult &result : kernel.results)
      if (result.yielded == side.yielded)
        read(arguments + int32_t(result.result), result.element, m, n, true);
    break;
  }
  sum.result = arguments + int32_t(side.result);
  sum.resultElement = *elementOf(side.element);
  return sum;
}

static LogicalResult checkSum(const MatmulKernel &kernel, const SideSum &side) {
  func::FuncOp func = kernel.func;
  if (!elementOf(side.element))
    return func.emitError("a sum has the type ") << side.element;
  if (side.over != SideSum::Over::ResultOverM)
    return success();
  for (const KernelResult &result : kernel.results)
    if (result.yielded == side.yielded)
      return elementOf(result.element)
                 ? success()
                 : func.emitError("a sum reads the type ") << result.element;
  return func.emitError("a sum reads a value that the kernel does not store");
}

FailureOr<Product> mlir::mp::cpu::productOf(const MatmulKernel &kernel) {
  func::FuncOp func = kernel.func;
  std::optional<Element> element = elementOf(kernel.lhs.element);
  if (!element)
    return func.emitError("the CPU has no product of ") << kernel.lhs.element;
  Product product;
  product.batch = kernel.extent(kernel.batch);
  product.m = kernel.extent(kernel.m);
  product.n = kernel.extent(kernel.n);
  product.k = kernel.extent(kernel.k);
  product.element = *element;
  product.lhs = operandOf(kernel.lhs);
  product.rhs = operandOf(kernel.rhs);
  for (const SideSum &side : kernel.sums) {
    if (failed(checkSum(kernel, side)))
      return failure();
    if (product.sumCount == kMaxSums)
      return func.emitError("has more than ") << kMaxSums << " sums";
    product.sums[product.sumCount++] = sumOf(kernel, side);
  }
  return product;
}
