//===- KernelsPortable.cpp - the loops for any machine --------------------===//

#include "runtime/Update/KernelsImpl.h"

const Kernels mpopt::update::kPortable =
    kernelsNamed("portable", [] { return true; });
