//===- MPDialect.cpp - registration ---------------------------------------===//

#include "dialect/IR/MPDialect.h"
#include "dialect/IR/MPOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::mp;

#include "dialect/IR/MPDialect.cpp.inc"
#include "dialect/IR/MPEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/IR/MPAttrs.cpp.inc"

void MPDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "dialect/IR/MPOps.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialect/IR/MPAttrs.cpp.inc"
      >();
}
