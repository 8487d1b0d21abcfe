//===- Pipelines.h - named sequences of passes -----------------*- C++ -*-===//

#ifndef MP_PASSES_PIPELINES_H
#define MP_PASSES_PIPELINES_H

#include "mlir/Pass/PassOptions.h"
#include "passes/Passes.h"

namespace mlir::mp {

/// Options of mp-default.
struct PipelineOptions : PassPipelineOptions<PipelineOptions> {
  Option<Numerics> numerics{
      *this, "numerics", llvm::cl::desc("contract that rewrites must keep"),
      llvm::cl::init(Numerics::Precise),
      llvm::cl::values(
          clEnumValN(Numerics::Strict, "strict",
                     "bit-identical to the traced graph"),
          clEnumValN(Numerics::Precise, "precise",
                     "may also drop roundings that autocast inserted"))};
  Option<Half> precision{
      *this, "precision",
      llvm::cl::desc("half type that calls of f32 operands may be computed in"),
      llvm::cl::init(Half::None),
      llvm::cl::values(clEnumValN(Half::None, "none", "none"),
                       clEnumValN(Half::BF16, "bf16", "bf16"),
                       clEnumValN(Half::F16, "f16", "f16"))};
  Option<std::string> costModel{
      *this, "cost-model",
      llvm::cl::desc(
          "name or file of the cost model; by default the target's")};
  Option<std::string> ranges{*this, "ranges",
                             llvm::cl::desc("file of mpopt.calibrate")};
  ListOption<std::string> disable{
      *this, "disable", llvm::cl::desc("passes to leave out, by name")};
};

/// Options of mp-partitioned.
struct PartitionedOptions : PassPipelineOptions<PartitionedOptions> {
  Option<Numerics> numerics{
      *this, "numerics", llvm::cl::desc("contract that rewrites must keep"),
      llvm::cl::init(Numerics::Precise),
      llvm::cl::values(
          clEnumValN(Numerics::Precise, "precise", "adds no rounding"),
          clEnumValN(Numerics::Relaxed, "relaxed",
                     "may add roundings within an error budget"))};
  Option<double> epsilon{
      *this, "epsilon",
      llvm::cl::desc("relaxed: growth of the estimated error"),
      llvm::cl::init(0.05)};
  Option<std::string> costModel{
      *this, "cost-model",
      llvm::cl::desc(
          "name or file of the cost model; by default the target's")};
  Option<std::string> ranges{*this, "ranges",
                             llvm::cl::desc("file of mpopt.calibrate")};
  ListOption<std::string> disable{
      *this, "disable", llvm::cl::desc("passes to leave out, by name")};
};

/// Appends the default pipeline to `pm`, which runs on modules.
void buildDefaultPipeline(OpPassManager &pm, const PipelineOptions &options);

/// Appends the pipeline for a graph whose partition is known: it chooses the
/// types of what is stored.
void buildPartitionedPipeline(OpPassManager &pm,
                              const PartitionedOptions &options);

/// Registers mp-default, mp-partitioned and mp-update.
void registerPipelines();

/// The passes of a textual pipeline for modules, each as a pipeline of its own,
/// so that a caller can run them one by one: "mp-default" gives
/// "func.func(mp-normalize)", ... Fails with a message in `error`.
FailureOr<std::vector<std::string>> splitPipeline(llvm::StringRef pipeline,
                                                  std::string &error);

/// The weakest contract that a textual pipeline for modules gives its passes,
/// "strict" if they may not change a bit. Fails with a message in `error`.
FailureOr<std::string> contractOf(llvm::StringRef pipeline, std::string &error);

} // namespace mlir::mp

#endif // MP_PASSES_PIPELINES_H
