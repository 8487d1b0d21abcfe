//===- Shadow.cpp - who accessed which bytes of shared memory -------------===//

#include "test/emulator/Shadow.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir::mp::emulator;

std::optional<Stamp> Shadow::conflict(const Clock &clock, size_t offset,
                                      size_t size, bool isWrite,
                                      bool isAtomic) const {
  auto isOpen = [&](const Stamp &stamp) {
    return stamp.time != 0 && !clock.knows(stamp.agent, stamp.time);
  };
  for (size_t i = first(offset), end = last(offset, size); i <= end; ++i) {
    const Granule &granule = granules[i];
    if (isAtomic && granule.isAtomic)
      continue;
    if (isOpen(granule.writer))
      return granule.writer;
    if (!isWrite)
      continue;
    for (const Stamp &reader : granule.readers)
      if (isOpen(reader))
        return reader;
  }
  return std::nullopt;
}

bool Shadow::isUninitialized(size_t offset, size_t size) const {
  for (size_t i = first(offset), end = last(offset, size); i <= end; ++i)
    if (!granules[i].isWritten)
      return true;
  return false;
}

void Shadow::record(const Clock &clock, const Stamp &stamp, size_t offset,
                    size_t size, bool isWrite, bool isAtomic) {
  for (size_t i = first(offset), end = last(offset, size); i <= end; ++i) {
    Granule &granule = granules[i];
    if (isWrite) {
      granule.writer = stamp;
      granule.readers.clear();
      granule.isWritten = true;
      granule.isAtomic = isAtomic;
      continue;
    }
    llvm::erase_if(granule.readers, [&](const Stamp &reader) {
      return clock.knows(reader.agent, reader.time);
    });
    granule.readers.push_back(stamp);
  }
}
