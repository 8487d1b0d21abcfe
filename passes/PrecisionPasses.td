//===- PrecisionPasses.td - which type each value gets --------------------===//

#ifndef MP_PASSES_PRECISIONPASSES_TD
#define MP_PASSES_PRECISIONPASSES_TD

include "mlir/Pass/PassBase.td"
include "passes/PassOptions.td"

def PinTypes : Pass<"mp-pin", "::mlir::func::FuncOp"> {
  let summary = "Say which values must stay in f32, and why";
  let description = [{
    Adds `mp.pin` to operations whose results or operands a half format would
    damage, and changes nothing else. Evidence is a union: operators that are
    sensitive by themselves (`PinOps.def`); patterns, such as a variance by
    hand, an epsilon that a half flushes, positions that reach a cosine, a router
    and what else decides an index, fillers of masks, logarithms of
    probabilities, moving averages, complex numbers; intervals that follow from
    the graph's constants; sums of more terms than a half counts; and ranges that
    `mpopt.calibrate` measured. f16 fails on range and bf16 on resolution, so
    that rules differ. Each pin names its rule, the value and a number, and is a
    remark. `passes/docs/Pins.md` lists the rules.

    It runs after `mp-raise`. Where a graph rounds integers that the half format
    does not hold, it warns.

    Example: test/Passes/Examples/pin.mlir
  }];
  let options = [
    Option<"half", "half", "::mlir::mp::Half", "::mlir::mp::Half::Auto",
      "half format that rules guard against",
      [{::llvm::cl::values(
        clEnumValN(::mlir::mp::Half::Auto, "auto",
                   "f16 if the graph holds any, else bf16"),
        clEnumValN(::mlir::mp::Half::BF16, "bf16", "resolution of 8 bits"),
        clEnumValN(::mlir::mp::Half::F16, "f16", "range up to 65504")
      )}]>,
    Option<"rangesFile", "ranges", "std::string", "",
      "file of mpopt.calibrate">];
  let dependentDialects = ["::mlir::mp::MPDialect"];
}

def ApplyPolicy : Pass<"mp-apply-policy", "::mlir::func::FuncOp"> {
  let summary = "Pin what the user's policy names";
  let description = [{
    Reads a policy (`passes/docs/Policy.md`) and sets `#mp.pin` attributes with
    the rule id "policy" on the operations and arguments that its rules select,
    with the rule's `why` and its place in the file as the reason. Of several
    rules the last one decides, about results and operands apart. Operations in
    groups that the policy does not enable keep their types. Kinds that it gives
    to operators without a row go into the function's `mp.op_rows`. A rule that
    matches nothing is a warning and a record, with the nearest name in the
    graph. Nothing else changes.

    The policy is the option `file`, or else the function's `mp.policy`, which
    the pass sets; without either it does nothing.

    Example: test/Passes/Examples/apply-policy.mlir
  }];
  let options = [Option<"file", "file", "std::string", "",
    "the policy; by default what the function carries">];
  let dependentDialects = ["::mlir::mp::MPDialect"];
}

def AssignPrecision : Pass<"mp-assign-precision", "::mlir::func::FuncOp"> {
  let summary = "Choose the type of each stored value by a minimum cut";
  let description = [{
    Estimates the kernels that a fuser makes of the graph, and decides at once
    in which type each value between them is stored and read: the assignment of
    least cost in bytes, which a minimum cut finds exactly. Only hints are left:
    `mp.read_as` on an operation for operands to be read rounded, `mp.store_as`
    on a matrix product of halves that stores its f32 accumulator, and on a value
    that stays in memory in f32 beside its half copy. Run it on the
    graph after partitioning, where what is saved for backward is known.

    `precise` adds no rounding. `relaxed` may round what forward keeps for
    backward (`freedom=saved`), what kernels of backward hand on (`gradients`),
    and what kernels of forward hand on (`stream`), each with those before it,
    as long as the estimated error of the results grows by `epsilon` at most.
    A budget of a module (`[[budget]]` of the policy) bounds what its values add
    to that. What the cut leaves of the budget, for its placements lie on a convex
    hull, goes to single values, those first that save most for their noise.
    Never rounded: arguments, results, what is pinned (`mp.pin`), what a
    comparison, an index or an integer conversion reads, small tensors.

    With `precision`, matrix products, convolutions and attention of f32 operands
    may become ones of halves (`mp.compute_as`), where the cost model says that it
    pays for the call and for the conversions around it; so a program without
    autocast gets what autocast is for. A call that stays is a missed record with
    the figures.

    Example: test/Passes/Examples/assign-precision.mlir
  }];
  let options = [
    MP_NumericsOption<>,
    Option<"epsilon", "epsilon", "double", "0.05",
           "relaxed: growth of the estimated error">,
    Option<"freedom", "freedom", "::mlir::mp::Freedom",
           "::mlir::mp::Freedom::Stream", "relaxed: what may be rounded",
           [{::llvm::cl::values(
             clEnumValN(::mlir::mp::Freedom::None, "none", "nothing"),
             clEnumValN(::mlir::mp::Freedom::Saved, "saved",
                        "what forward keeps for backward"),
             clEnumValN(::mlir::mp::Freedom::Gradients, "gradients",
                        "also what backward hands on"),
             clEnumValN(::mlir::mp::Freedom::Stream, "stream",
                        "also what forward hands on")
           )}]>,
    Option<"precision", "precision", "::mlir::mp::Half",
           "::mlir::mp::Half::None",
           "half type that calls of f32 operands may be computed in",
           [{::llvm::cl::values(
             clEnumValN(::mlir::mp::Half::None, "none", "none"),
             clEnumValN(::mlir::mp::Half::BF16, "bf16", "bf16"),
             clEnumValN(::mlir::mp::Half::F16, "f16", "f16")
           )}]>,
    Option<"costModel", "cost-model", "std::string", "",
           "name or file of the cost model; by default that of the target">,
    Option<"minElements", "min-elements", "int64_t", "16384",
           "smaller tensors are left alone">];
  let dependentDialects = ["::mlir::mp::MPDialect"];
}

def ApplyPrecision : Pass<"mp-apply-precision", "::mlir::func::FuncOp"> {
  let summary = "Do what the hints of mp-assign-precision say";
  let description = [{
    A value that some kernel is to read rounded gets one half copy, stored by the
    kernel that makes the value, and each such reader widens it again. A matrix
    product with `mp.store_as` gets that result type. A call with `mp.compute_as`
    reads its operands narrowed, and its results are widened, by conversions of
    origin `autocast`. Removes the hints. Each
    rewrite is recorded.

    Example: test/Passes/Examples/apply-precision.mlir
  }];
  let dependentDialects = ["::mlir::mp::MPDialect"];
}

def PlanSaves : Pass<"mp-plan-saves", "::mlir::func::FuncOp"> {
  let summary = "Keep one type of each value for backward, and no copy of a weight";
  let description = [{
    What a partitioner saves for backward is chosen three times. It chooses the
    values, under the checkpointing policies of the model; mp-assign-precision
    chooses the type of each by what it costs to keep; and here, on forward and
    backward as one graph, conversions that would be kept beside what they
    convert are computed again in backward:

    - of a parameter or a buffer, which lives on anyway: no half copy of a weight
      is kept;
    - of a value that backward also reads as it was made: not both types of one
      value are kept.

    Backward converts the same bits in the same way, so that it sees what forward
    saw. A copy that a checkpointing policy decided about (`mp.recompute`) stays.
    Widenings of what is kept narrow, and constants, are always computed in
    backward; whoever splits the graph sees to it.

    Example: test/Passes/Examples/plan-saves.mlir
  }];
  let dependentDialects = ["::mlir::mp::MPDialect"];
}

def WidenPinned : Pass<"mp-widen-pinned", "::mlir::func::FuncOp"> {
  let summary = "Compute in f32 what a pin wants in f32 and the trace has in half";
  let description = [{
    Other pins only forbid roundings that are not there. Two also ask for what
    the trace does not have. A policy's `fp32`: the operation is computed in f32,
    for `where = "operands"` or `"both"` from the values that autocast rounded.
    And a router: the matrix product whose scores choose an expert hands on its
    f32 accumulator, of operands that stay half (not in `strict`, and only on a
    target with such products: elsewhere it would move more bytes). What
    reads the result in half reads it rounded, as before; a rounding that all
    readers widen again goes with mp-eliminate-casts. An operation whose type an
    argument names, or that does not compute, is left alone, with a record.

    Example: test/Passes/Examples/widen-pinned.mlir
  }];
  let options = [MP_NumericsOption<>];
  let dependentDialects = ["::mlir::mp::MPDialect"];
}

def ReportTraffic : Pass<"mp-report-traffic", "::mlir::func::FuncOp"> {
  let summary = "Count the bytes that the kernels of a graph move";
  let description = [{
    Leaves the graph alone and sets `mp.traffic`: what generated kernels and
    library calls read and store, what forward keeps for backward, and what
    kernels that only convert move, by the same estimate of fusion that
    mp-assign-precision uses. With `kernels` a remark on each kernel says what it
    reads and stores.

    Example: test/Passes/Examples/report-traffic.mlir
  }];
  let options = [
    Option<"kernels", "kernels", "bool", "false", "a remark for each kernel">];
}

#endif // MP_PASSES_PRECISIONPASSES_TD
