//===- Check.cpp - mpopt check --------------------------------------------===//

#include "tools/mpopt/Commands.h"
#include "tools/mpopt/Session.h"

using namespace mlir;
using namespace mlir::mp;

int mlir::mp::runCheck(const Arguments &arguments) {
  return reportError("this build has no checker");
}
