//===- Freedom.h - which roundings may be added ----------------*- C++ -*-===//

#ifndef MP_PASSES_PLACEMENT_FREEDOM_H
#define MP_PASSES_PLACEMENT_FREEDOM_H

#include <cstdint>

namespace mlir::mp {

/// Which roundings may be added, each with those before it.
enum class Freedom : uint8_t {
  None,      ///< no rounding is added
  Saved,     ///< values that forward keeps for backward
  Gradients, ///< values that kernels of backward hand on
  Stream,    ///< values that kernels of forward hand on
};

} // namespace mlir::mp

#endif // MP_PASSES_PLACEMENT_FREEDOM_H
