//===- SavedValues.h - what forward keeps for backward ---------*- C++ -*-===//
//
// A value that an operation of forward computes and one of backward reads is
// kept in memory between the two, unless it is computed again. A view keeps
// what it shows; inputs of the graph are alive anyway and count for nothing.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_REPORT_SAVEDVALUES_H
#define MP_PASSES_REPORT_SAVEDVALUES_H

#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>
#include <vector>

namespace mlir::mp {

struct SavedValue {
  std::string region;           ///< module path of what computes it
  std::string op;               ///< "aten.exp.default", "mp.cast"
  std::string type;             ///< "4x8xbf16"
  std::string source;           ///< "file.py:12", may be empty
  std::optional<int64_t> bytes; ///< none for a dynamic shape
};

/// Each value that is kept, once, in graph order.
std::vector<SavedValue> collectSavedValues(ModuleOp module);

} // namespace mlir::mp

#endif // MP_PASSES_REPORT_SAVEDVALUES_H
