//===- Read.h - kernels from text -------------------------------*- C++ -*-===//

#ifndef MP_CODEGEN_KERNEL_READ_H
#define MP_CODEGEN_KERNEL_READ_H

#include "codegen/Kernel/Kernel.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

namespace mlir::mp {

/// A kernel's text with the context that it is read in, which what is parsed
/// belongs to.
class KernelText {
public:
  explicit KernelText(StringRef text);
  ~KernelText();

  /// An error holds all that the parser and the contract said.
  llvm::Expected<Kernel> parse();

  /// All errors about it so far, one a line.
  std::string errors() const { return messages; }
  MLIRContext *getContext() { return &context; }

private:
  std::string text;
  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::string messages;
};

} // namespace mlir::mp

#endif // MP_CODEGEN_KERNEL_READ_H
