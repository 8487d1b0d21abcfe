//===- Passes.td - all passes ---------------------------------------------===//

#ifndef MP_PASSES_TD
#define MP_PASSES_TD

include "mlir/Pass/PassBase.td"

#endif // MP_PASSES_TD
