//===- ZipArchive.h - members of a zip file, mapped ------------*- C++ -*-===//
//
// Reads archives as PyTorch writes them: members are stored, not compressed, so
// that a member is a range of the mapped file and no byte is copied. Every
// offset is checked against the file; nothing in it is trusted.
//
//===----------------------------------------------------------------------===//

#ifndef MP_DIALECT_IMPORT_ZIPARCHIVE_H
#define MP_DIALECT_IMPORT_ZIPARCHIVE_H

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>
#include <vector>

namespace mlir::mp {

class ZipArchive {
public:
  struct Member {
    std::string name;
    uint64_t headerOffset = 0; ///< of the local header, in bytes
    uint64_t storedSize = 0;   ///< bytes in the archive
    uint64_t size = 0;         ///< bytes when unpacked
    uint32_t crc = 0;
    uint16_t method = 0; ///< 0 for stored
    bool isEncrypted = false;
  };

  /// True if `data` begins as a zip file does.
  static bool looksLikeZip(llvm::StringRef data);

  /// Reads the directory of the archive in `file`, whose bytes it keeps.
  static llvm::Expected<ZipArchive>
  open(std::unique_ptr<llvm::MemoryBuffer> file);

  llvm::StringRef path() const { return file->getBufferIdentifier(); }
  llvm::ArrayRef<Member> members() const { return directory; }

  /// The member called `name`, or null.
  const Member *find(llvm::StringRef name) const;

  /// The bytes of a member; they live as long as the archive. Fails for a
  /// compressed or encrypted member and for one that reaches past the file.
  llvm::Expected<llvm::StringRef> read(const Member &member) const;

  /// As `read`, and compares the bytes with the member's CRC-32.
  llvm::Expected<llvm::StringRef> readChecked(const Member &member) const;

private:
  llvm::Error readDirectory();
  llvm::Error fail(const llvm::Twine &what) const;

  std::unique_ptr<llvm::MemoryBuffer> file;
  std::vector<Member> directory;
  llvm::StringMap<size_t> byName;
};

} // namespace mlir::mp

#endif // MP_DIALECT_IMPORT_ZIPARCHIVE_H
