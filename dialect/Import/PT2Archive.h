//===- PT2Archive.h - files of torch.export.save ---------------*- C++ -*-===//
//
// The layout of a .pt2 file (all members under one folder of any name):
//
//   archive_format                              "pt2"
//   models/<name>.json                          one exported program each
//   data/weights/<name>_weights_config.json     tensor name -> payload
//   data/weights/weight_N                       bytes of one storage
//   data/constants/<name>_constants_config.json
//
// Payloads are ranges of the mapped file. A pickled payload is opaque: reading
// it would run code from the file, so nothing here does.
//
//===----------------------------------------------------------------------===//

#ifndef MP_DIALECT_IMPORT_PT2ARCHIVE_H
#define MP_DIALECT_IMPORT_PT2ARCHIVE_H

#include "dialect/Import/ZipArchive.h"

#include <string>
#include <vector>

namespace mlir::mp {

/// One named tensor of a program.
struct PT2Payload {
  std::string name;      ///< "layers.0.weight"
  std::string member;    ///< file in the archive; several may share one
  llvm::StringRef bytes; ///< the whole storage, empty if `isOpaque`
  bool isParameter = false;
  bool isOpaque = false; ///< pickled: a tensor subclass or a script object
};

class PT2Archive {
public:
  static llvm::Expected<PT2Archive>
  open(std::unique_ptr<llvm::MemoryBuffer> file);

  /// Names of the programs, in the order of the archive.
  llvm::ArrayRef<std::string> models() const { return modelNames; }

  /// The program to use: `wanted`, or the only one when `wanted` is empty.
  llvm::Expected<std::string> pickModel(llvm::StringRef wanted) const;

  /// The JSON text of a program.
  llvm::Expected<llvm::StringRef> program(llvm::StringRef model) const;

  /// Parameters, buffers and constants of a program.
  llvm::Expected<std::vector<PT2Payload>> payloads(llvm::StringRef model) const;

  llvm::StringRef path() const { return zip.path(); }

private:
  explicit PT2Archive(ZipArchive zip) : zip(std::move(zip)) {}
  llvm::Error findRoot();
  llvm::Error fail(const llvm::Twine &what) const;
  llvm::Error readConfig(llvm::StringRef folder, llvm::StringRef member,
                         std::vector<PT2Payload> &payloads) const;

  ZipArchive zip;
  std::string root; ///< with its slash
  std::vector<std::string> modelNames;
};

} // namespace mlir::mp

#endif // MP_DIALECT_IMPORT_PT2ARCHIVE_H
