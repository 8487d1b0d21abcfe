//===- ZipArchive.cpp - members of a zip file, mapped ---------------------===//

#include "dialect/Import/ZipArchive.h"
#include "llvm/Support/CRC.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/Errc.h"

using namespace mlir::mp;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

// Sizes of the fixed parts and their signatures (APPNOTE.TXT, 4.3).
static constexpr uint32_t kLocalSignature = 0x04034b50;
static constexpr uint32_t kCentralSignature = 0x02014b50;
static constexpr uint32_t kEndSignature = 0x06054b50;
static constexpr uint32_t kEnd64Signature = 0x06064b50;
static constexpr uint32_t kLocator64Signature = 0x07064b50;
static constexpr uint64_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22;
static constexpr uint64_t kEnd64Size = 56, kLocator64Size = 20;
static constexpr uint64_t kMaxComment = 0xffff;

namespace {
/// Little-endian numbers of a byte range; the caller has checked the range.
struct Bytes {
  StringRef data;
  uint16_t u16(uint64_t at) const {
    return llvm::support::endian::read16le(data.data() + at);
  }
  uint32_t u32(uint64_t at) const {
    return llvm::support::endian::read32le(data.data() + at);
  }
  uint64_t u64(uint64_t at) const {
    return llvm::support::endian::read64le(data.data() + at);
  }
};

/// Where the central directory lies and how many entries it has.
struct Directory {
  uint64_t offset = 0, size = 0, entries = 0;
};
} // namespace

/// The range [at, at + size) of `data`, or none if it is not all there.
static std::optional<Bytes> slice(StringRef data, uint64_t at, uint64_t size) {
  if (at > data.size() || size > data.size() - at)
    return std::nullopt;
  return Bytes{data.substr(at, size)};
}

/// Offset of the end record: the last one whose comment fits the file.
static std::optional<uint64_t> findEnd(StringRef data) {
  if (data.size() < kEndSize)
    return std::nullopt;
  uint64_t last = data.size() - kEndSize;
  uint64_t first = last > kMaxComment ? last - kMaxComment : 0;
  for (uint64_t at = last + 1; at-- > first;) {
    Bytes end{data.substr(at, kEndSize)};
    if (end.u32(0) == kEndSignature &&
        at + kEndSize + end.u16(20) <= data.size())
      return at;
  }
  return std::nullopt;
}

/// Replaces the fields of `dir` that do not fit 32 bits; false if the zip64
/// records are damaged.
static bool readDirectory64(StringRef data, uint64_t end, Directory &dir) {
  if (end < kLocator64Size)
    return true;
  auto locator = slice(data, end - kLocator64Size, kLocator64Size);
  if (!locator || locator->u32(0) != kLocator64Signature)
    return true;
  auto record = slice(data, locator->u64(8), kEnd64Size);
  if (!record || record->u32(0) != kEnd64Signature)
    return false;
  dir = {record->u64(48), record->u64(40), record->u64(32)};
  return true;
}

/// Reads the 64-bit sizes of an entry from its extra field (id 1), in which
/// only the fields that overflowed are present, in this order.
static bool readExtra64(Bytes extra, ZipArchive::Member &member) {
  for (uint64_t at = 0; at + 4 <= extra.data.size();) {
    uint64_t id = extra.u16(at), size = extra.u16(at + 2);
    auto field = slice(extra.data, at + 4, size);
    if (!field)
      return false;
    at += 4 + size;
    if (id != 1)
      continue;
    uint64_t next = 0;
    for (uint64_t *value :
         {&member.size, &member.storedSize, &member.headerOffset}) {
      if (*value != 0xffffffff)
        continue;
      if (next + 8 > size)
        return false;
      *value = field->u64(next);
      next += 8;
    }
  }
  return true;
}

Error ZipArchive::fail(const llvm::Twine &what) const {
  return llvm::createStringError(llvm::errc::invalid_argument,
                                 path() + ": " + what);
}

bool ZipArchive::looksLikeZip(StringRef data) {
  return data.size() >= 4 && Bytes{data}.u32(0) == kLocalSignature;
}

Expected<ZipArchive>
ZipArchive::open(std::unique_ptr<llvm::MemoryBuffer> file) {
  ZipArchive archive;
  archive.file = std::move(file);
  if (Error error = archive.readDirectory())
    return error;
  return archive;
}

Error ZipArchive::readDirectory() {
  StringRef data = file->getBuffer();
  std::optional<uint64_t> end = findEnd(data);
  if (!end)
    return fail(looksLikeZip(data)
                    ? "truncated archive: its directory, at the end, is missing"
                    : "not a zip archive");
  Bytes record{data.substr(*end, kEndSize)};
  Directory dir{record.u32(16), record.u32(12), record.u16(10)};
  if (!readDirectory64(data, *end, dir))
    return fail("damaged archive: the zip64 end record is not where it should "
                "be");
  auto entries = slice(data, dir.offset, dir.size);
  if (!entries)
    return fail("damaged archive: its directory reaches past the end of the "
                "file");

  uint64_t at = 0;
  for (uint64_t i = 0; i != dir.entries; ++i) {
    auto entry = slice(entries->data, at, kCentralSize);
    if (!entry || entry->u32(0) != kCentralSignature)
      return fail("damaged archive: directory entry " + llvm::Twine(i) +
                  " of " + llvm::Twine(dir.entries) + " is not readable");
    uint64_t nameSize = entry->u16(28), extraSize = entry->u16(30);
    auto name = slice(entries->data, at + kCentralSize, nameSize);
    auto extra = slice(entries->data, at + kCentralSize + nameSize, extraSize);
    Member member;
    member.isEncrypted = entry->u16(8) & 1;
    member.method = entry->u16(10);
    member.crc = entry->u32(16);
    member.storedSize = entry->u32(20);
    member.size = entry->u32(24);
    member.headerOffset = entry->u32(42);
    if (!name || !extra || !readExtra64(*extra, member))
      return fail("damaged archive: directory entry " + llvm::Twine(i) +
                  " is cut off");
    member.name = name->data.str();
    at += kCentralSize + nameSize + extraSize + entry->u16(32);
    byName[member.name] = directory.size();
    directory.push_back(std::move(member));
  }
  return Error::success();
}

const ZipArchive::Member *ZipArchive::find(StringRef name) const {
  auto it = byName.find(name);
  return it == byName.end() ? nullptr : &directory[it->second];
}

Expected<StringRef> ZipArchive::read(const Member &member) const {
  if (member.isEncrypted)
    return fail("member '" + member.name + "' is encrypted");
  if (member.method != 0 || member.size != member.storedSize)
    return fail("member '" + member.name +
                "' is compressed; PyTorch stores members uncompressed, so "
                "write the file again with torch.export.save");
  StringRef data = file->getBuffer();
  auto header = slice(data, member.headerOffset, kLocalSize);
  if (!header || header->u32(0) != kLocalSignature)
    return fail("damaged archive: member '" + member.name +
                "' is not where the directory says");
  uint64_t begin =
      member.headerOffset + kLocalSize + header->u16(26) + header->u16(28);
  auto content = slice(data, begin, member.size);
  if (!content)
    return fail("damaged archive: member '" + member.name +
                "' reaches past the end of the file");
  return content->data;
}

Expected<StringRef> ZipArchive::readChecked(const Member &member) const {
  Expected<StringRef> content = read(member);
  if (!content)
    return content.takeError();
  llvm::ArrayRef<uint8_t> bytes(
      reinterpret_cast<const uint8_t *>(content->data()), content->size());
  if (llvm::crc32(bytes) != member.crc)
    return fail("damaged archive: the bytes of member '" + member.name +
                "' do not match their CRC-32");
  return *content;
}
