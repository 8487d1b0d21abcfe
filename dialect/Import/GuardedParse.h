//===- GuardedParse.h - MLIR's parsers on untrusted input ------*- C++ -*-===//
//
// MLIR's parsers recurse as deep as the input nests, and its bytecode reader
// trusts some of what it reads. Here text is parsed on a deep stack after a
// check of its nesting, and bytecode is read by a child process that hands back
// text, so that its faults are errors of the file. The context must not be in
// use by other threads.
//
//===----------------------------------------------------------------------===//

#ifndef MP_DIALECT_IMPORT_GUARDEDPARSE_H
#define MP_DIALECT_IMPORT_GUARDEDPARSE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

namespace mlir::mp {

/// Fails if `text` nests deeper than any graph does.
llvm::Error checkNesting(const llvm::MemoryBuffer &text);

/// Parses and verifies text or bytecode. The error is the first diagnostic.
llvm::Expected<OwningOpRef<ModuleOp>>
parseGuarded(std::unique_ptr<llvm::MemoryBuffer> buffer, MLIRContext *context);

} // namespace mlir::mp

#endif // MP_DIALECT_IMPORT_GUARDEDPARSE_H
