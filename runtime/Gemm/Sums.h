//===- Sums.h - sums over rows or columns of a stored matrix ----*- C++ -*-===//

#ifndef RUNTIME_GEMM_SUMS_H
#define RUNTIME_GEMM_SUMS_H

#include "runtime/Gemm/Gemm.h"

namespace mp::runtime::gemm {

/// The tasks of all sums of a product, and some of them.
int64_t sumTasks(const Product &product, const int64_t *sizes);
void runSums(const Product &product, int64_t begin, int64_t end,
             void *const *buffers, const int64_t *sizes);

} // namespace mp::runtime::gemm

#endif // RUNTIME_GEMM_SUMS_H
