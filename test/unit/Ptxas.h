//===- Ptxas.h - what the assembler says of a kernel ------------*- C++ -*-===//

#ifndef TEST_UNIT_PTXAS_H
#define TEST_UNIT_PTXAS_H

#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace mlir::mp::test {

struct PtxasReport {
  bool isAssembled = false;
  int registers = -1, spilledBytes = -1;
  std::string text;

  bool warns() const;
};

/// Assembles PTX for a chip; none where there is no ptxas (the variable
/// MPOPT_PTXAS, the PATH, CUDA_HOME or the place that CMake found).
std::optional<PtxasReport> assemble(llvm::StringRef ptx, llvm::StringRef chip);

} // namespace mlir::mp::test

#endif // TEST_UNIT_PTXAS_H
