//===- mpopt-codegen.cpp - compile one kernel for one target --------------===//
//
// Reads a kernel in the form of the backend contract and prints one stage of
// its compilation. Exit codes: 0 done, 1 not compiled, 2 wrong command line or
// file.
//
//===----------------------------------------------------------------------===//

#include "codegen/CUDA/Compile.h"
#include "mlir/Parser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"

using namespace mlir;
using namespace mlir::mp;

namespace cl = llvm::cl;

namespace {
enum class Stage { MLIR, NVVM, LLVM, PTX, Launch };
} // namespace

static cl::OptionCategory category("mpopt-codegen options");
static cl::opt<std::string> inputFile(cl::Positional, cl::desc("FILE"),
                                      cl::init("-"), cl::cat(category));
static cl::opt<std::string> target("target", cl::desc("chip, such as sm_80"),
                                   cl::init("sm_80"), cl::cat(category));
static cl::opt<std::string>
    schedule("schedule",
             cl::desc("such as '128x128x32 w64x64 s4' (default: chosen)"),
             cl::cat(category));
static cl::opt<Stage>
    stage("emit", cl::desc("what to print"), cl::init(Stage::PTX),
          cl::values(clEnumValN(Stage::MLIR, "mlir", "the gpu.module"),
                     clEnumValN(Stage::NVVM, "nvvm", "the NVVM dialect"),
                     clEnumValN(Stage::LLVM, "llvm", "LLVM IR, optimised"),
                     clEnumValN(Stage::PTX, "ptx", "PTX"),
                     clEnumValN(Stage::Launch, "launch",
                                "schedule, grid, block and shared memory")),
          cl::cat(category));
static cl::list<std::string> libdevice("libdevice",
                                       cl::desc("where libdevice.10.bc lies"),
                                       cl::value_desc("path"),
                                       cl::cat(category));
static cl::opt<std::string> dumpFolder("dump",
                                       cl::desc("folder that gets all stages"),
                                       cl::value_desc("folder"),
                                       cl::cat(category));

static void printMap(const ::mp::runtime::TensorMap &map) {
  llvm::outs() << "map of buffer " << map.buffer << ':';
  for (int i = 0; i < map.rank; ++i) {
    llvm::outs() << (i ? " x " : " ") << map.extents[i].factor;
    if (map.extents[i].size >= 0)
      llvm::outs() << " * size " << map.extents[i].size;
  }
  llvm::outs() << ", box " << map.box[0] << " x " << map.box[1] << '\n';
}

static void printLaunch(const ::mp::runtime::CudaKernel &launch) {
  llvm::outs() << "block " << launch.block[0] << '\n'
               << "shared " << launch.dynamicSharedBytes << '\n'
               << "workspace " << launch.workspacePerBlock << " per block\n";
  for (int i = 0; i < 3; ++i)
    llvm::outs() << "grid " << launch.grid.extent[i] << " * "
                 << launch.grid.factor[i] << " / " << launch.grid.tile[i]
                 << '\n';
  for (int i = 0; i < launch.mapCount; ++i)
    printMap(launch.maps[i]);
}

/// Prints the stage that was asked for.
static LogicalResult compile(ModuleOp module, const cuda::Chip &chip) {
  cuda::LoweringOptions options;
  options.libdevice.assign(libdevice.begin(), libdevice.end());
  options.dumpFolder = dumpFolder;
  if (stage == Stage::MLIR) {
    module.print(llvm::outs());
    return success();
  }
  if (stage == Stage::PTX) {
    auto ptx = cuda::compileToPTX(module, chip, options);
    if (succeeded(ptx))
      llvm::outs() << *ptx;
    return LogicalResult(ptx);
  }
  if (failed(cuda::lowerToNVVM(module, chip)))
    return failure();
  if (stage == Stage::NVVM) {
    module.print(llvm::outs());
    return success();
  }
  llvm::LLVMContext context;
  auto translated = cuda::translateToLLVM(module, chip, context, options);
  if (succeeded(translated))
    (*translated)->print(llvm::outs(), nullptr);
  return LogicalResult(translated);
}

/// Prints how the kernel is launched, or a stage of its compilation.
static LogicalResult run(ModuleOp module, const cuda::Chip &chip) {
  FailureOr<Kernel> kernel = parseKernel(module);
  if (failed(kernel))
    return failure();
  FailureOr<cuda::EmittedKernel> emitted =
      cuda::emitKernel(*kernel, chip, schedule);
  if (failed(emitted))
    return failure();
  if (stage != Stage::Launch)
    return compile(*emitted->module, chip);
  llvm::outs() << "schedule " << emitted->schedule << '\n';
  printLaunch(emitted->launch);
  return success();
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv,
                              "compile one kernel for one target\n");
  const cuda::Chip *chip = cuda::findChip(target);
  if (!chip) {
    llvm::errs() << "error: " << cuda::unknownChip(target) << '\n';
    return 2;
  }
  DialectRegistry registry;
  cuda::registerCudaDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto module = parseSourceFile<ModuleOp>(inputFile, &context);
  if (!module)
    return 2;
  return failed(run(*module, *chip));
}
