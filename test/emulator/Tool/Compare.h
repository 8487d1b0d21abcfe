//===- Compare.h - results of a kernel against the reference ----*- C++ -*-===//

#ifndef TEST_EMULATOR_TOOL_COMPARE_H
#define TEST_EMULATOR_TOOL_COMPARE_H

#include "codegen/Reference/Tensor.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::mp::emulator {

/// How far elements may be from the reference: `places` units in the last place
/// of the result's type, and 2^-17 of the largest result for what sums in
/// another order lose.
struct Bound {
  double places = 1;
  /// Not at all, instead.
  bool isExact = false;
};

/// A result next to its reference.
struct Comparison {
  int64_t elements = 0;
  /// Elements with other bits, and elements beyond the bound.
  int64_t different = 0, wrong = 0;
  /// The largest distance of two numbers, and the first element that is wrong.
  double distance = 0;
  int64_t firstWrong = -1;
  double got = 0, want = 0;
};

Comparison compare(const reference::Tensor &result,
                   const reference::Tensor &expected, const Bound &bound);

/// One line: "result 0 (8x64xbf16): ...".
void print(llvm::raw_ostream &os, unsigned number,
           const reference::Tensor &result, const Comparison &comparison);
llvm::json::Value toJson(const Comparison &comparison);

} // namespace mlir::mp::emulator

#endif // TEST_EMULATOR_TOOL_COMPARE_H
