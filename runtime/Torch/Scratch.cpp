//===- Scratch.cpp - memory that a thread's calls use in turn -------------===//

#include "runtime/Torch/Scratch.h"
#include <cstdlib>
#include <memory>
#include <sys/mman.h>

/// Memory of this size and above is aligned for large pages: packed panels are
/// read in strides that the small ones' table of the processor does not hold.
static constexpr size_t kLargePage = size_t(2) << 20;

namespace {
struct Free {
  void operator()(void *memory) const { std::free(memory); }
};

struct Block {
  std::unique_ptr<void, Free> memory;
  size_t bytes = 0;
};
} // namespace

static Block allocate(size_t bytes) {
  size_t alignment = bytes >= kLargePage ? kLargePage : 64;
  bytes = (bytes + alignment - 1) / alignment * alignment;
  Block block{{}, bytes};
  block.memory.reset(std::aligned_alloc(alignment, bytes));
  if (block.memory && bytes >= kLargePage)
    (void)madvise(block.memory.get(), bytes, MADV_HUGEPAGE);
  return block;
}

void *mp::launch::scratch(size_t bytes) {
  thread_local Block block;
  if (bytes > block.bytes) {
    block = {}; // before the larger one is made
    block = allocate(bytes);
    if (!block.memory)
      block.bytes = 0;
  }
  return block.memory.get();
}
