//===- RandomRegion.h - graphs that our kernels compute ---------*- C++ -*-===//

#ifndef TEST_UNIT_RANDOMREGION_H
#define TEST_UNIT_RANDOMREGION_H

#include <cstdint>
#include <string>

namespace mlir::mp {

/// The text of a function @f: a matrix product, or reductions of rows, with
/// what may come before and after. With `isExact` no operation loses a bit of
/// small integers, so that the order of a sum cannot matter.
std::string randomProduct(uint64_t seed, bool isExact);
std::string randomRows(uint64_t seed, bool isExact);

} // namespace mlir::mp

#endif // TEST_UNIT_RANDOMREGION_H
