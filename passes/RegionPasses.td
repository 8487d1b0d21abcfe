//===- RegionPasses.td - passes about regions for our own kernels ---------===//

#ifndef MP_PASSES_REGIONPASSES_TD
#define MP_PASSES_REGIONPASSES_TD

include "passes/PassOptions.td"

def OutlineHotRegions : Pass<"mp-outline-hot-regions", "::mlir::func::FuncOp"> {
  let summary = "Give hot regions of the graph to kernels of our own";
  let description = [{
    A matrix product with what comes after it (bias, activation or its
    gradient, residual, dropout mask, roundings, conversions, and the sums that
    are gradients of a bias), and the stages over rows of a norm, a softmax or a
    cross entropy with their neighbours, become `mp.region`. Views in between
    are looked through. Run it after `mp-raise`.

    A region moves operations and changes none: each rounds as before, up to the
    order of sums. Nothing is computed twice; a value that is read outside as
    well is a further result. Growth stops at what no kernel computes, between
    forward and backward, at effects, at pins to the traced type, and where
    another operation would have to run in the middle.

    With numerics `strict` no candidate is taken: a kernel of ours adds in another
    order than the library, and its functions have other last bits.

    A candidate becomes a region if the cost model says that it pays: bytes that
    cross memory and kernels that run, with and without it, at the share of the
    library's speed that `passes/Outline/Efficiency.def` gives our kernels of
    that shape. Each candidate, taken or not, is recorded with these numbers.

    Example: test/Passes/Examples/outline-hot-regions.mlir
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"",
      "off, cpu (the function's cost model, or else the host's), or the name "
      "of a cost model such as sm_90">,
    Option<"all", "all", "bool", "false",
      "take candidates whether or not they pay">,
    MP_NumericsOption<>];
  let dependentDialects = ["::mlir::mp::MPDialect"];
}

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
