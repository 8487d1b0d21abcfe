//===- ImportFixtures.h - small inputs for the loader's tests --*- C++ -*-===//

#ifndef MP_TEST_UNIT_IMPORTFIXTURES_H
#define MP_TEST_UNIT_IMPORTFIXTURES_H

#include "dialect/Import/Load.h"

#include <string>
#include <vector>

namespace mlir::mp::test {

struct ZipMember {
  std::string name, content;
  uint16_t method = 0;
};

/// A zip file of stored members, as PyTorch writes it; with `zip64` every size
/// and offset is given in 64-bit fields.
std::string makeZip(llvm::ArrayRef<ZipMember> members, bool zip64 = false);

/// The JSON of a program: y = (x: f32[s0, 4]).to(bf16), with a weight and an
/// autocast region. `major` and `minor` are its schema version.
std::string programText(int major = 8, int minor = 20);

/// An archive of torch.export.save with that program and its weight.
std::string archiveText();

/// Loads bytes: the module's text, or "error: ...".
std::string load(llvm::StringRef bytes, llvm::StringRef name = "input",
                 llvm::StringRef model = "");

} // namespace mlir::mp::test

#endif // MP_TEST_UNIT_IMPORTFIXTURES_H
