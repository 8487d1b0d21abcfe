//===- Passes.td - all passes ---------------------------------------------===//

#ifndef MP_PASSES_TD
#define MP_PASSES_TD

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

def ExpandForeach : Pass<"mp-expand-foreach", "::mlir::func::FuncOp"> {
  let summary = "Turn operators over lists into operators over tensors";
  let description = [{
    Each `aten._foreach_*` becomes the operators of its loop (`ForeachOps.def`),
    and `aten._amp_foreach_non_finite_check_and_unscale` a test and a product for
    each gradient, so that later passes see what happens to each tensor. Values
    stay the same. Marks loss scales with `mp.loss_scale` on the way.

    Example: test/Passes/Examples/expand-foreach.mlir
  }];
  let dependentDialects = ["::mlir::mp::MPDialect"];
}

def CheckLossScale : Pass<"mp-check-loss-scale", "::mlir::func::FuncOp"> {
  let summary = "Check that gradients are unscaled once, by their own scale";
  let description = [{
    Treats the loss scale as a unit of measure (`ScaleRules.def`) and infers the
    unit of each value of a traced step. An error, with a note at each place that
    scales or unscales, where units that differ meet: a gradient that reaches the
    update still scaled, or unscaled twice, or by another scale; clipping before
    unscaling; sums of gradients under different scales. What the inference does
    not know is never an error.

    Scales are the arguments and operations with `mp.loss_scale`, an integer
    power; the operators of PyTorch's scaler mark what they read. Parameters and
    buffers (`mp.role`) have no unit. Adam's epsilon, a limit and any other
    literal that is added or compared have none either.

    Example: test/Passes/Examples/check-loss-scale.mlir
  }];
  let options = [Option<"warnOnly", "warn-only", "bool", "false",
    "report as warnings, and go on">];
}

def FuseScaledUpdate : Pass<"mp-fuse-scaled-update", "::mlir::func::FuncOp"> {
  let summary = "Make each parameter's update one sweep over memory";
  let description = [{
    What is elementwise between a gradient and the new values of a parameter, its
    optimizer states and its half copy becomes one `mp.scaled_update`, whatever
    the optimizer: unscaling, clipping, decay, moments, step and conversions.
    Reductions, such as the norm that clipping needs, stay outside; what they
    read of the sweep's inside they compute themselves, so that no unscaled
    gradient is stored. Run `mp-expand-foreach` first. `mp-lower` puts the bodies
    back. Values stay the same.

    Left alone: values that replace no argument of their type; dynamic shapes.

    Example: test/Passes/Examples/fuse-scaled-update.mlir
  }];
  let dependentDialects = ["::mlir::mp::MPDialect"];
}

def RemoveLossScale : Pass<"mp-remove-loss-scale", "::mlir::func::FuncOp"> {
  let summary = "Take a loss scale out that no type of the step needs";
  let description = [{
    Where each value that carries the loss scale is of bf16, f32 or f64, which
    have the range of f32, the loss is no longer multiplied and gradients are no
    longer unscaled: all products with the scale go, or none. With a scale that
    is a power of two this changes no bit, unless a scaled value overflows or an
    unscaled one underflows in f32's range. The step still returns the scale, and
    tests for infinities and NaN as before.

    Left alone: steps in which an f16 value carries the scale, in which a unit is
    not known, or which return a scaled value. Not part of a pipeline.

    Example: test/Passes/Examples/remove-loss-scale.mlir
  }];
  let dependentDialects = ["::mlir::mp::MPDialect"];
}

def AssignPrecision : Pass<"mp-assign-precision", "::mlir::func::FuncOp"> {
  let summary = "Choose the type of each stored value by a minimum cut";
  let description = [{
    Estimates the kernels that a fuser makes of the graph, and decides at once
    in which type each value between them is stored and read: the assignment of
    least cost in bytes, which a minimum cut finds exactly. Only hints are left:
    `mp.read_as` on an operation for operands to be read rounded, `mp.store_as`
    on a matrix product of halves that stores its f32 accumulator. Run it on the
    graph after partitioning, where what is saved for backward is known.

    `precise` adds no rounding. `relaxed` may round what forward keeps for
    backward (`freedom=saved`), what kernels of backward hand on (`gradients`),
    and what kernels of forward hand on (`stream`), each with those before it,
    as long as the estimated error of the results grows by `epsilon` at most.
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

#endif // MP_PASSES_TD
