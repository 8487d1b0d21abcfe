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

static FailureOr<EmittedKernel> emit(const MatmulKernel &kernel,
                                     const Chip &chip) {
  std::string note;
  if (hopper::supports(chip))
    if (auto emitted = hopper::emitFor(kernel, chip, note))
      return std::move(*emitted);
  FailureOr<MatmulSchedule> schedule = chooseSchedule(kernel, chip);
  if (failed(schedule))
    return failure();
  FailureOr<EmittedKernel> emitted = emitMatmul(kernel, *schedule);
  if (succeeded(emitted))
    emitted->note = note;
  return emitted;
}

static FailureOr<EmittedKernel> emit(const RowKernel &kernel, const Chip &) {
  return emitRows(kernel);
}

FailureOr<std::vector<CompiledKernel>>
cuda::compileKernel(ModuleOp module, const Chip &chip,
                    const LoweringOptions &options) {
  FailureOr<Kernel> kernel = parseKernel(module);
  if (failed(kernel))
    return failure();
  FailureOr<EmittedKernel> emitted =
      std::visit([&](const auto &kind) { return emit(kind, chip); }, *kernel);
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
