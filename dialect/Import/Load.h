//===- Load.h - any input as a module --------------------------*- C++ -*-===//
//
// One loader for everything that the tool reads: .mlir, .mlirbc, .pt2, the JSON
// of an exported program, and a bundle (a folder that the backend wrote). The
// kind is told by content, not by name. Whatever is in the file, the outcome is
// a verified module or one error that names the file.
//
//===----------------------------------------------------------------------===//

#ifndef MP_DIALECT_IMPORT_LOAD_H
#define MP_DIALECT_IMPORT_LOAD_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBuffer.h"

namespace mlir::mp {

enum class InputKind { Text, Bytecode, Archive, Program };

/// The files of a bundle.
inline constexpr llvm::StringLiteral kBundleBefore = "00_import";
inline constexpr llvm::StringLiteral kBundleAfter = "after";
inline constexpr llvm::StringLiteral kBundleMeta = "meta.json";

/// What `data`, read from `path`, is. The name decides only where the content
/// does not: an empty or damaged .pt2 is still meant to be one.
InputKind kindOf(llvm::StringRef path, llvm::StringRef data);

/// True if `path` is a folder, hence a bundle.
bool isBundle(llvm::StringRef path);

/// The file of a bundle that holds `stage` (kBundleBefore or kBundleAfter).
llvm::Expected<std::string> bundleMember(llvm::StringRef path,
                                         llvm::StringRef stage);

/// The pipeline that the backend ran on the graph of a bundle, by its
/// `meta.json`; none if the folder has no such file.
llvm::Expected<std::optional<std::string>> bundlePipeline(llvm::StringRef path);

/// The text under `key` in the `meta.json` of a bundle; none without the file
/// or the key.
llvm::Expected<std::optional<std::string>> bundleText(llvm::StringRef path,
                                                      llvm::StringRef key);

/// Loads `path`; of a bundle, the module before any pass. "-" is the standard
/// input. `model` picks a program of an archive with several.
llvm::Expected<OwningOpRef<ModuleOp>> loadModule(llvm::StringRef path,
                                                 MLIRContext *context,
                                                 llvm::StringRef model = "");

/// As `loadModule`, for bytes in memory; its identifier names it in errors.
llvm::Expected<OwningOpRef<ModuleOp>>
loadBuffer(std::unique_ptr<llvm::MemoryBuffer> buffer, MLIRContext *context,
           llvm::StringRef model = "");

} // namespace mlir::mp

#endif // MP_DIALECT_IMPORT_LOAD_H
