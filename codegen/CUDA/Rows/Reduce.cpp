//===- Reduce.cpp - reductions within a vector ----------------------------===//

#include "codegen/CUDA/Rows/Values.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;

Value cuda::combineElements(ImplicitLocOpBuilder &b, Operation *combiner,
                            Value vector) {
  auto type = dyn_cast<VectorType>(vector.getType());
  if (!type)
    return vector;
  SmallVector<Value> values;
  for (int64_t i = 0, e = type.getNumElements(); i < e; ++i)
    values.push_back(vector::ExtractOp::create(b, vector, i));
  while (values.size() > 1) {
    size_t half = values.size() / 2;
    for (size_t i = 0; i < half; ++i)
      values[i] = combine(b, combiner, values[i], values[i + half]);
    values.truncate(half);
  }
  return values.front();
}
