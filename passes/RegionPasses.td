//===- RegionPasses.td - passes about regions for our own kernels ---------===//

#ifndef MP_PASSES_REGIONPASSES_TD
#define MP_PASSES_REGIONPASSES_TD

include "passes/PassOptions.td"

def InlineRegions : Pass<"mp-inline-regions", "::mlir::func::FuncOp"> {
  let summary = "Put regions back as the operations that they hold";
  let description = [{
    The inverse of `mp-outline-hot-regions`: a region that no backend takes is
    the graph again, as it was, and stays with the framework. With
    `without-kernel` only those regions that have no kernel.

    Example: test/Passes/Examples/inline-regions.mlir
  }];
  let options = [Option<"withoutKernel", "without-kernel", "bool", "false",
    "leave regions alone that have a kernel">];
  let dependentDialects = ["::mlir::mp::MPDialect"];
}

#endif // MP_PASSES_REGIONPASSES_TD
