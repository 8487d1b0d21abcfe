//===- Libdevice.cpp - NVIDIA's mathematical functions --------------------===//

#include "codegen/CUDA/Libdevice.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/IR/Module.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace mlir::mp::cuda;

static constexpr llvm::StringLiteral kFile = "libdevice.10.bc";

/// The file that a place stands for, if there is one.
static std::string fileAt(StringRef place) {
  if (llvm::sys::fs::is_regular_file(place))
    return place.str();
  for (StringRef inside : {"", "nvvm/libdevice"}) {
    SmallString<128> path(place);
    llvm::sys::path::append(path, inside, kFile);
    if (llvm::sys::fs::is_regular_file(path))
      return std::string(path);
  }
  return {};
}

std::string mp::cuda::findLibdevice(ArrayRef<std::string> places) {
  for (const std::string &place : places)
    if (std::string file = fileAt(place); !file.empty())
      return file;
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (auto root = llvm::sys::Process::GetEnv(variable))
      if (std::string file = fileAt(*root); !file.empty())
        return file;
  return {};
}

/// The name of a function of libdevice that is called and not there.
static StringRef missingFunction(const llvm::Module &module) {
  for (const llvm::Function &function : module)
    if (function.isDeclaration() && function.getName().starts_with("__nv_"))
      return function.getName();
  return {};
}

LogicalResult mp::cuda::linkLibdevice(llvm::Module &module,
                                      const LoweringOptions &options,
                                      Location location) {
  StringRef missing = missingFunction(module);
  if (missing.empty())
    return success();
  std::string path = findLibdevice(options.libdevice);
  if (path.empty())
    return emitError(location)
           << "the kernel calls " << missing << " of " << kFile
           << ", which was not found; name its folder, set CUDA_HOME or "
              "install triton";
  llvm::SMDiagnostic diagnostic;
  auto library = llvm::parseIRFile(path, diagnostic, module.getContext());
  if (!library)
    return emitError(location) << path << ": " << diagnostic.getMessage();
  library->setTargetTriple(module.getTargetTriple());
  library->setDataLayout(module.getDataLayout());
  bool failed = llvm::Linker::linkModules(
      module, std::move(library), llvm::Linker::LinkOnlyNeeded,
      [](llvm::Module &linked, const llvm::StringSet<> &names) {
        for (const auto &name : names)
          if (llvm::Function *function = linked.getFunction(name.getKey()))
            if (!function->isDeclaration())
              function->setLinkage(llvm::GlobalValue::InternalLinkage);
      });
  if (failed)
    return emitError(location) << path << ": cannot be linked";
  if (StringRef still = missingFunction(module); !still.empty())
    return emitError(location) << path << " has no " << still;
  return success();
}
