//===- Passes.td - all passes ---------------------------------------------===//

#ifndef MP_PASSES_TD
#define MP_PASSES_TD

include "passes/PassOptions.td"
include "passes/PrecisionPasses.td"
include "passes/RegionPasses.td"
include "passes/UpdatePasses.td"

def Normalize : Pass<"mp-normalize", "::mlir::func::FuncOp"> {
  let summary = "Turn each spelling of a conversion into mp.cast";
  let description = [{
    `aten.to.dtype`, `aten._to_copy`, `aten.type_as` and
    `prims.convert_element_type` become `mp.cast`, and a pointwise operator that
    widens an operand by itself gets that conversion as a cast of origin
    `promotion`. Operations without a node number get one, so that records can
    name them. No value changes in any bit.

    Example: test/Passes/Examples/normalize.mlir
  }];
  let dependentDialects = ["::mlir::mp::MPDialect"];
}

def Raise : Pass<"mp-raise", "::mlir::func::FuncOp"> {
  let summary = "Give operators that precision turns on their own op";
  let description = [{
    Norms, softmax, GELU, SiLU, the halves of a cross entropy and matrix
    products become `mp` operations that state where they accumulate. Each
    stands for one framework operator; `mp-lower` is the exact inverse.

    Example: test/Passes/Examples/raise.mlir
  }];
  let dependentDialects = ["::mlir::mp::MPDialect"];
}

def Lower : Pass<"mp-lower", "::mlir::func::FuncOp"> {
  let summary = "Turn raised ops back into framework operators";
  let description = [{
    The inverse of `mp-raise`. `mp.round` becomes the narrowing and the widening
    that it stands for, and a widening that an operator does by
    itself becomes implicit again.

    Example: test/Passes/Examples/lower.mlir
  }];
  let dependentDialects = ["::mlir::mp::MPDialect"];
}

def EliminateCasts : Pass<"mp-eliminate-casts", "::mlir::func::FuncOp"> {
  let summary = "Remove and move conversions under a contract";
  let description = [{
    To a fixpoint: folds conversions that cancel, merges chains whose first
    conversion is exact, shares equal conversions of one phase, hoists a
    narrowing towards its definition and sinks a widening towards its readers
    where fewer bytes are stored for it, and (`precise`) drops a rounding that
    autocast inserted when every reader sees the same value, and reads half
    operands in a matrix product where the target can.

    Never: two half types are not exchanged; a rounding that a comparison, an
    index or an integer conversion reads stays; forward and backward are not
    merged. Each rewrite is recorded in the function's `mp.rewrites` and
    reported as a remark; `mpopt check` proves the record with code of its own.

    Example: test/Passes/Examples/eliminate-casts.mlir
  }];
  let options = [MP_NumericsOption<>];
  let dependentDialects = ["::mlir::mp::MPDialect"];
}

def PlaceStores : Pass<"mp-place-stores", "::mlir::func::FuncOp"> {
  let summary = "Store a narrowed value where it is computed";
  let description = [{
    A narrowing whose source is also kept wide, and which a matrix product, a
    convolution or an attention reads through views, is stored in the shape of
    that source (`mp.materialize`); views before the narrowing then come after
    it. A fuser computes it in the kernel that writes the source: no kernel that
    only converts is left. It runs on the graph that the fuser gets, one phase
    at a time. No value changes.

    Left alone: weights and other arguments, and results of library calls, for
    they have no kernel to join; tensors of at most `min-elements`; dynamic
    shapes; a source without another reader, which the fuser computes inside the
    conversion already; a narrowing with a reader in its own shape, which is
    stored in it anyway; a permuted source that only convolutions or attentions
    read, for they would copy it first.

    Example: test/Passes/Examples/place-stores.mlir
  }];
  let options = [Option<"minElements", "min-elements", "int64_t", "16384",
    "smaller tensors are not worth a change">];
  let dependentDialects = ["::mlir::mp::MPDialect"];
}

def ReportCasts : Pass<"mp-report-casts", "::mlir::func::FuncOp"> {
  let summary = "Record why each remaining conversion stays";
  let description = [{
    Leaves the graph alone and adds one record of status `missed` for each
    conversion of a tensor that is neither a weight's nor a gradient's: who
    asked for it, what reads it, and the contract or fact that keeps it.

    Example: test/Passes/Examples/report-casts.mlir
  }];
  let options = [MP_NumericsOption<>];
}

#endif // MP_PASSES_TD
