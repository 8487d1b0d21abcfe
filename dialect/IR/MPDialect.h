//===- MPDialect.h - the mp dialect ----------------------------*- C++ -*-===//

#ifndef MP_DIALECT_IR_MPDIALECT_H
#define MP_DIALECT_IR_MPDIALECT_H

#include "mlir/IR/Dialect.h"

#include "dialect/IR/MPDialect.h.inc"

#endif // MP_DIALECT_IR_MPDIALECT_H
