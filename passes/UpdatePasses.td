//===- UpdatePasses.td - the update of a traced step ----------------------===//

#ifndef MP_PASSES_UPDATEPASSES_TD
#define MP_PASSES_UPDATEPASSES_TD

include "mlir/Pass/PassBase.td"

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

#endif // MP_PASSES_UPDATEPASSES_TD
