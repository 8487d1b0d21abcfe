//===- ObjectStore.h - compiled objects on disk -----------------*- C++ -*-===//

#ifndef MP_CODEGEN_CPU_OBJECTSTORE_H
#define MP_CODEGEN_CPU_OBJECTSTORE_H

#include "llvm/Support/MemoryBuffer.h"
#include <string>

namespace mlir::mp::cpu {

/// Files named by digest. A file that is cut off, or was changed, is as good as
/// none: each ends with the digest of its contents. A directory that cannot be
/// written keeps nothing.
class ObjectStore {
public:
  explicit ObjectStore(std::string directory)
      : directory(std::move(directory)) {}

  /// Null if there is none.
  std::unique_ptr<llvm::MemoryBuffer> load(llvm::StringRef key) const;
  void save(llvm::StringRef key, llvm::MemoryBufferRef object) const;

private:
  std::string pathOf(llvm::StringRef key) const;

  std::string directory;
};

/// SHA-256 in hexadecimal digits.
std::string digestOf(llvm::ArrayRef<llvm::StringRef> parts);

} // namespace mlir::mp::cpu

#endif // MP_CODEGEN_CPU_OBJECTSTORE_H
