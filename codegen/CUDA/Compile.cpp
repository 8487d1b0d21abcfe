//===- Compile.cpp - from a kernel of the contract to PTX -----------------===//

#include "codegen/CUDA/Compile.h"
#include "codegen/CUDA/Hopper/Emit.h"
#include "codegen/CUDA/Matmul/Matmul.h"
#include "codegen/CUDA/Rows/Rows.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;

namespace {
/// What an emitter made, and the tensor maps that its launch needs.
struct Made {
  EmittedKernel kernel;
  std::vector<::mp::runtime::TensorMap> maps;
};
} // namespace

/// The kernel for wgmma, where the chip has it and the path takes the shape.
static std::optional<Made> emitForHopper(const MatmulKernel &kernel,
                                         const Chip &chip) {
  if (chip.name != "sm_90a")
    return std::nullopt;
  std::string whyNot; // the other path has no such limits
  const hopper::Schedule &schedule =
      hopper::chooseSchedule(kernel, int(chip.multiprocessors));
  std::optional<hopper::Emitted> emitted =
      hopper::emit(kernel, schedule, whyNot);
  if (!emitted)
    return std::nullopt;
  return Made{{std::move(emitted->module), emitted->launch},
              std::move(emitted->maps)};
}

static FailureOr<Made> emit(const MatmulKernel &kernel, const Chip &chip) {
  if (std::optional<Made> made = emitForHopper(kernel, chip))
    return std::move(*made);
  FailureOr<MatmulSchedule> schedule = chooseSchedule(kernel, chip);
  if (failed(schedule))
    return failure();
  FailureOr<EmittedKernel> emitted = emitMatmul(kernel, *schedule);
  if (failed(emitted))
    return failure();
  return Made{std::move(*emitted), {}};
}

static FailureOr<Made> emit(const RowKernel &kernel, const Chip &) {
  FailureOr<EmittedKernel> emitted = emitRows(kernel);
  if (failed(emitted))
    return failure();
  return Made{std::move(*emitted), {}};
}

FailureOr<std::vector<CompiledKernel>>
cuda::compileKernel(ModuleOp module, const Chip &chip,
                    const LoweringOptions &options) {
  FailureOr<Kernel> kernel = parseKernel(module);
  if (failed(kernel))
    return failure();
  FailureOr<Made> made =
      std::visit([&](const auto &kind) { return emit(kind, chip); }, *kernel);
  if (failed(made))
    return failure();
  CompiledKernel compiled;
  compiled.name = made->kernel.launch.name;
  compiled.launch = made->kernel.launch;
  compiled.launch.maps = nullptr; // they stand in `maps`
  compiled.maps = std::move(made->maps);
  FailureOr<std::string> ptx =
      compileToPTX(*made->kernel.module, chip, options);
  if (failed(ptx))
    return failure();
  compiled.ptx = std::move(*ptx);
  return std::vector<CompiledKernel>{std::move(compiled)};
}
