//===- ObjectStore.cpp - compiled objects on disk -------------------------===//

#include "codegen/CPU/ObjectStore.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"

using namespace llvm;
using namespace mlir::mp::cpu;

static constexpr size_t kDigestBytes = 32;

std::string mlir::mp::cpu::digestOf(ArrayRef<StringRef> parts) {
  SHA256 hash;
  for (StringRef part : parts) {
    hash.update(std::to_string(part.size()) + ":");
    hash.update(part);
  }
  return toHex(hash.final(), /*LowerCase=*/true);
}

std::string ObjectStore::pathOf(StringRef key) const {
  SmallString<128> path(directory);
  sys::path::append(path, key + ".o");
  return std::string(path);
}

std::unique_ptr<MemoryBuffer> ObjectStore::load(StringRef key) const {
  if (directory.empty())
    return nullptr;
  auto file = MemoryBuffer::getFile(pathOf(key), /*IsText=*/false,
                                    /*RequiresNullTerminator=*/false);
  if (!file || (*file)->getBufferSize() < kDigestBytes)
    return nullptr;
  StringRef contents = (*file)->getBuffer().drop_back(kDigestBytes);
  StringRef digest = (*file)->getBuffer().take_back(kDigestBytes);
  auto expected = SHA256::hash(arrayRefFromStringRef(contents));
  if (digest != toStringRef(ArrayRef<uint8_t>(expected)))
    return nullptr;
  return MemoryBuffer::getMemBufferCopy(contents, key);
}

void ObjectStore::save(StringRef key, MemoryBufferRef object) const {
  if (directory.empty() || sys::fs::create_directories(directory))
    return;
  // Readers see the whole file or none.
  auto write = [&](raw_ostream &os) -> Error {
    auto digest = SHA256::hash(arrayRefFromStringRef(object.getBuffer()));
    os << object.getBuffer() << toStringRef(ArrayRef<uint8_t>(digest));
    return Error::success();
  };
  consumeError(writeToOutput(pathOf(key), write));
}
