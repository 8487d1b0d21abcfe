//===- Dump.cpp - stages of a compilation as files ------------------------===//

#include "codegen/CUDA/Dump.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

void mlir::mp::cuda::dump(const LoweringOptions &options,
                          llvm::StringRef suffix,
                          llvm::function_ref<void(llvm::raw_ostream &)> print) {
  if (options.dumpFolder.empty())
    return;
  llvm::SmallString<128> path(options.dumpFolder);
  llvm::sys::path::append(path, options.dumpName + "." + suffix);
  std::error_code error = llvm::sys::fs::create_directories(options.dumpFolder);
  if (error) {
    llvm::errs() << "warning: " << path << ": " << error.message() << '\n';
    return;
  }
  llvm::raw_fd_ostream file(path, error);
  if (error) {
    llvm::errs() << "warning: " << path << ": " << error.message() << '\n';
    return;
  }
  print(file);
}
