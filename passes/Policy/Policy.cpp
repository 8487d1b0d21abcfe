//===- Policy.cpp - groups, digest, files of a policy ---------------------===//

#include "passes/Policy/Policy.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Errc.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"

using namespace mlir::mp;
using llvm::Expected;
using llvm::StringRef;

static constexpr StringRef kGroupNames[] = {
#define MP_GROUP(ID, NAME, HELP) NAME,
#include "passes/Policy/Groups.def"
};

static constexpr StringRef kGroupHelps[] = {
#define MP_GROUP(ID, NAME, HELP) HELP,
#include "passes/Policy/Groups.def"
};

llvm::ArrayRef<StringRef> mlir::mp::groupNames() { return kGroupNames; }

StringRef mlir::mp::stringifyGroup(Group group) {
  return kGroupNames[static_cast<int>(group)];
}

StringRef mlir::mp::groupHelp(Group group) {
  return kGroupHelps[static_cast<int>(group)];
}

std::string Policy::digest() const {
  auto hash = llvm::SHA256::hash(llvm::arrayRefFromStringRef(text));
  return llvm::toHex(hash, /*LowerCase=*/true);
}

std::string Policy::placeOf(unsigned line) const {
  return (llvm::sys::path::filename(name) + ":" + llvm::Twine(line)).str();
}

bool Policy::isEnabled(Group group) const {
  return !enabled || llvm::is_contained(*enabled, group);
}

Expected<Policy> mlir::mp::loadPolicy(StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return llvm::createStringError(
        llvm::errc::io_error,
        path + ": cannot read the policy: " + buffer.getError().message());
  return parsePolicy((*buffer)->getBuffer(), path);
}
