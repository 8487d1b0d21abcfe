//===- PassOptions.td - options of several passes -------------------------===//

#ifndef MP_PASSES_PASSOPTIONS_TD
#define MP_PASSES_PASSOPTIONS_TD

include "mlir/Pass/PassBase.td"

class MP_NumericsOption<string name = "numerics"> : Option<name, "numerics",
    "::mlir::mp::Numerics", "::mlir::mp::Numerics::Precise",
    "contract that rewrites must keep",
    [{::llvm::cl::values(
      clEnumValN(::mlir::mp::Numerics::Strict, "strict",
                 "bit-identical to the traced graph"),
      clEnumValN(::mlir::mp::Numerics::Precise, "precise",
                 "may also drop roundings that autocast inserted"),
      clEnumValN(::mlir::mp::Numerics::Relaxed, "relaxed",
                 "may also add roundings within an error budget")
    )}]>;

#endif // MP_PASSES_PASSOPTIONS_TD
