//===- Optimize.cpp - LLVM's optimiser on one module ----------------------===//

#include "codegen/Optimize/Optimize.h"

using namespace llvm;

void mlir::mp::optimize(Module &module, OptimizationLevel level,
                        TargetMachine *machine, PipelineTuningOptions tuning) {
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules; // not MLIR's
  PassBuilder builder(machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(level).run(module, modules);
}
