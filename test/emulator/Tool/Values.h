//===- Values.h - arguments of an emulated kernel ---------------*- C++ -*-===//

#ifndef TEST_EMULATOR_TOOL_VALUES_H
#define TEST_EMULATOR_TOOL_VALUES_H

#include "codegen/Kernel/Kernel.h"
#include "codegen/Reference/Tensor.h"
#include "llvm/Support/Error.h"

namespace mlir::mp::emulator {

/// What floats are: integers from -3 to 3, whose sums no order changes, or
/// numbers from -2 to 2.
enum class Data { Integer, Real };

/// One tensor for each argument, the same for the same seed on every machine; a
/// dynamic extent is `size`. A float of a row is from 1 to 3, so that it can be
/// a statistic of any kind; an integer is the number of a column.
llvm::Expected<std::vector<reference::Tensor>>
makeArguments(const mlir::mp::Kernel &kernel, uint64_t seed, int64_t size,
              Data data);

/// The function of a kernel of either kind.
func::FuncOp functionOf(const mlir::mp::Kernel &kernel);

/// Zeros for a result of this type.
reference::Tensor makeResult(Type type, int64_t size);

/// The elements as a kernel has them in memory; i1 takes one byte.
size_t bytesOf(Type element);
std::vector<char> pack(const reference::Tensor &tensor);
void unpack(llvm::ArrayRef<char> bytes, reference::Tensor &tensor);

} // namespace mlir::mp::emulator

#endif // TEST_EMULATOR_TOOL_VALUES_H
