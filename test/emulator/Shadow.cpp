//===- Shadow.cpp - who accessed which bytes of shared memory -------------===//

#include "test/emulator/Shadow.h"

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

void Shadow::record(const Stamp &stamp, size_t offset, size_t size,
                    bool isWrite, bool isAtomic) {
  for (size_t i = first(offset), end = last(offset, size); i <= end; ++i) {
    Granule &granule = granules[i];
    if (isWrite) {
      granule = {stamp, {}, true, isAtomic};
      continue;
    }
    if (granule.readers[0].agent != stamp.agent)
      granule.readers[1] = granule.readers[0];
    granule.readers[0] = stamp;
  }
}
