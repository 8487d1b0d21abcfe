//===- Compile.cpp - from a kernel of the contract to PTX -----------------===//

#include "codegen/CUDA/Compile.h"
#include "codegen/CUDA/Hopper/Emit.h"
#include "codegen/CUDA/Matmul/Matmul.h"
#include "codegen/CUDA/Rows/Rows.h"
#include "codegen/CUDA/Update/Text.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;

/// Lowers what an emitter made.
static FailureOr<CompiledKernel> finish(EmittedKernel emitted, const Chip &chip,
                                        const LoweringOptions &options) {
  CompiledKernel result;
  result.name = emitted.launch.name;
  result.launch = emitted.launch;
  result.maps = std::move(emitted.maps);
  result.note = std::move(emitted.note);
  FailureOr<std::string> ptx = compileToPTX(*emitted.module, chip, options);
  if (failed(ptx))
    return failure();
  result.ptx = std::move(*ptx);
  return result;
}

/// The kernel for wgmma that `name` stands for, such as "128x256x64".
static FailureOr<EmittedKernel> emitWgmma(const MatmulKernel &kernel,
                                          StringRef name) {
  Location location = functionOf(kernel).getLoc();
  const hopper::Schedule *found = hopper::findSchedule(name.trim());
  if (!found) {
    auto error = emitError(location) << "unknown schedule; known are:";
    for (const hopper::Schedule &known : hopper::schedules())
      error << " 'wgmma " << known.name << "'";
    return error;
  }
  std::string whyNot;
  auto emitted = hopper::emit(kernel, *found, whyNot);
  if (!emitted)
    return emitError(location) << "wgmma does not take this kernel: " << whyNot;
  emitted->schedule = ("wgmma " + found->name).str();
  return std::move(*emitted);
}

static FailureOr<EmittedKernel> emitMma(const MatmulKernel &kernel,
                                        FailureOr<MatmulSchedule> schedule) {
  if (failed(schedule))
    return failure();
  FailureOr<EmittedKernel> emitted = emitMatmul(kernel, *schedule);
  if (succeeded(emitted))
    emitted->schedule = schedule->str();
  return emitted;
}

static FailureOr<EmittedKernel> emitBest(const MatmulKernel &kernel,
                                         const Chip &chip) {
  std::string note;
  if (hopper::supports(chip))
    if (auto emitted = hopper::emitFor(kernel, chip, note)) {
      emitted->schedule =
          ("wgmma " + hopper::chooseSchedule(kernel, chip.multiprocessors).name)
              .str();
      return std::move(*emitted);
    }
  FailureOr<EmittedKernel> emitted =
      emitMma(kernel, chooseSchedule(kernel, chip));
  if (succeeded(emitted))
    emitted->note = note;
  return emitted;
}

static FailureOr<EmittedKernel> emit(const MatmulKernel &kernel,
                                     const Chip &chip, StringRef schedule) {
  if (schedule.empty())
    return emitBest(kernel, chip);
  if (schedule.consume_front("wgmma"))
    return emitWgmma(kernel, schedule);
  return emitMma(kernel, parseSchedule(schedule, functionOf(kernel).getLoc()));
}

static FailureOr<EmittedKernel> emit(const RowKernel &kernel, const Chip &,
                                     StringRef schedule) {
  func::FuncOp func = kernel.func;
  if (!schedule.empty())
    return func.emitError("a kernel of rows takes no schedule; it follows from "
                          "the kernel");
  FailureOr<RowPlan> plan = planRows(kernel);
  if (failed(plan))
    return failure();
  RowSchedule chosen = chooseRowSchedule(kernel, *plan);
  FailureOr<EmittedKernel> emitted = emitRows(kernel, chosen);
  if (succeeded(emitted))
    emitted->schedule = chosen.str();
  return emitted;
}

FailureOr<EmittedKernel>
cuda::emitKernel(const Kernel &kernel, const Chip &chip, StringRef schedule) {
  return std::visit(
      [&](const auto &kind) { return emit(kind, chip, schedule); }, kernel);
}

FailureOr<std::vector<CompiledKernel>>
cuda::compileKernel(ModuleOp module, const Chip &chip,
                    const LoweringOptions &options) {
  FailureOr<Kernel> kernel = parseKernel(module);
  if (failed(kernel))
    return failure();
  FailureOr<EmittedKernel> emitted = emitKernel(*kernel, chip);
  if (failed(emitted))
    return failure();
  FailureOr<CompiledKernel> compiled =
      finish(std::move(*emitted), chip, options);
  if (failed(compiled))
    return failure();
  std::vector<CompiledKernel> kernels;
  kernels.push_back(std::move(*compiled));
  return kernels;
}

FailureOr<CompiledKernel> cuda::compileUpdate(MLIRContext &context,
                                              StringRef text, const Chip &chip,
                                              const LoweringOptions &options) {
  FailureOr<EmittedKernel> emitted = emitFromText(context, text);
  if (failed(emitted))
    return failure();
  return finish(std::move(*emitted), chip, options);
}
