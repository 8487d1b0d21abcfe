//===- Dispatch.cpp - the loops for the machine that runs -----------------===//

#include "runtime/Update/Kernels.h"

#include <cstring>

using namespace mpopt::update;

/// Best first.
static const Kernels *const kAll[] = {
#ifdef MPOPT_X86_KERNELS
    &kAVX512, &kAVX2,
#endif
    &kPortable};

const Kernels &mpopt::update::bestKernels() {
  static const Kernels &best = [&]() -> const Kernels & {
    for (const Kernels *kernels : kAll)
      if (kernels->isSupported())
        return *kernels;
    return kPortable;
  }();
  return best;
}

const Kernels *mpopt::update::findKernels(const char *name) {
  for (const Kernels *kernels : kAll)
    if (std::strcmp(kernels->name, name) == 0)
      return kernels->isSupported() ? kernels : nullptr;
  return nullptr;
}
