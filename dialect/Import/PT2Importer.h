//===- PT2Importer.h - exported programs as modules ------------*- C++ -*-===//
//
// Turns the JSON of an exported program into `func.func @<name>`: training IR
// and core ATen, with symbolic sizes as dynamic dimensions and `index` values.
// Parameters and buffers are arguments. `wrap_with_autocast` and
// `wrap_with_set_grad_enabled` are inlined; the ops of an autocast region carry
// the string attribute `mp.autocast`, its dtype or "off", innermost region
// first. Every other higher-order op is one opaque op with effects.
//
//===----------------------------------------------------------------------===//

#ifndef MP_DIALECT_IMPORT_PT2IMPORTER_H
#define MP_DIALECT_IMPORT_PT2IMPORTER_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

namespace mlir::mp {

/// Attribute of an op inside an autocast region: "bf16", "f16", ... or "off".
inline constexpr llvm::StringLiteral kAutocastAttrName = "mp.autocast";

/// Attribute of a function result: the kind of its output ("user_output",
/// "buffer_mutation", "gradient_to_parameter", ...).
inline constexpr llvm::StringLiteral kOutputKindAttrName = "mp.output";

/// Imports the JSON `text` of one program as `func.func @<name>`. A program
/// that changes tensors in place is refused with the call that makes it
/// functional. Warnings go to the context's diagnostics.
llvm::Expected<OwningOpRef<ModuleOp>>
importProgram(llvm::StringRef text, llvm::StringRef name, MLIRContext *context);

} // namespace mlir::mp

#endif // MP_DIALECT_IMPORT_PT2IMPORTER_H
