//===- Load.cpp - any input as a module -----------------------------------===//

#include "dialect/Import/Load.h"
#include "dialect/IR/MPDialect.h"
#include "dialect/Import/GuardedParse.h"
#include "dialect/Import/PT2Archive.h"
#include "dialect/Import/PT2Importer.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/Errc.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::mp;
using llvm::Error;
using llvm::Expected;

static Error failure(StringRef path, const Twine &what) {
  return llvm::createStringError(llvm::errc::invalid_argument,
                                 path + ": " + what);
}

InputKind mlir::mp::kindOf(StringRef path, StringRef data) {
  if (ZipArchive::looksLikeZip(data))
    return InputKind::Archive;
  if (data.starts_with("ML\xefR"))
    return InputKind::Bytecode;
  // MLIR text may begin with a brace too, but only with that of {-# ... #-}.
  StringRef begin = data.ltrim();
  if (begin.starts_with("{") && !begin.starts_with("{-#"))
    return InputKind::Program;
  StringRef extension = llvm::sys::path::extension(path);
  if (extension == ".pt2")
    return InputKind::Archive;
  if (extension == ".json")
    return InputKind::Program;
  if (extension == ".mlirbc")
    return InputKind::Bytecode;
  return InputKind::Text;
}

bool mlir::mp::isBundle(StringRef path) {
  return llvm::sys::fs::is_directory(path);
}

Expected<std::string> mlir::mp::bundleMember(StringRef path, StringRef stage) {
  for (StringRef extension : {".mlir", ".mlirbc"}) {
    SmallString<256> file(path);
    llvm::sys::path::append(file, stage + extension);
    if (llvm::sys::fs::exists(file))
      return file.str().str();
  }
  return ::failure(path, "no bundle of mpopt: it has no file '" + stage +
                             ".mlir'; write one with MPOPT_DUMP=<folder>");
}

static std::string metaFile(StringRef bundle) {
  SmallString<256> file(bundle);
  llvm::sys::path::append(file, kBundleMeta);
  return file.str().str();
}

Expected<std::optional<std::string>> mlir::mp::bundleText(StringRef path,
                                                          StringRef key) {
  std::string file = metaFile(path);
  if (!llvm::sys::fs::exists(file))
    return std::nullopt;
  auto buffer = llvm::MemoryBuffer::getFile(file, /*IsText=*/true);
  if (!buffer)
    return ::failure(file, "cannot be read: " + buffer.getError().message());
  auto meta = llvm::json::parse((*buffer)->getBuffer());
  if (!meta)
    return ::failure(file, "no JSON: " + llvm::toString(meta.takeError()));
  const llvm::json::Object *object = meta->getAsObject();
  auto text = object ? object->getString(key) : std::optional<StringRef>();
  return text ? std::optional(text->str()) : std::nullopt;
}

Expected<std::optional<std::string>> mlir::mp::bundlePipeline(StringRef path) {
  Expected<std::optional<std::string>> pipeline = bundleText(path, "pipeline");
  if (pipeline && !*pipeline && llvm::sys::fs::exists(metaFile(path)))
    return ::failure(metaFile(path), "has no text under the key 'pipeline'");
  return pipeline;
}

/// Verifies what our own importer built, and adds the file's name to errors.
static Expected<OwningOpRef<ModuleOp>>
finishImport(StringRef path, Expected<OwningOpRef<ModuleOp>> module) {
  if (!module)
    return ::failure(path, llvm::toString(module.takeError()));
  std::string error;
  ScopedDiagnosticHandler handler((*module)->getContext(),
                                  [&](Diagnostic &diagnostic) {
                                    if (error.empty())
                                      error = diagnostic.str();
                                    return success();
                                  });
  if (failed(verify(**module)))
    return ::failure(path, "malformed program: " + error);
  return module;
}

static Expected<OwningOpRef<ModuleOp>>
loadArchive(std::unique_ptr<llvm::MemoryBuffer> buffer, MLIRContext *context,
            StringRef model) {
  Expected<PT2Archive> archive = PT2Archive::open(std::move(buffer));
  if (!archive)
    return archive.takeError();
  Expected<std::string> name = archive->pickModel(model);
  if (!name)
    return name.takeError();
  Expected<StringRef> program = archive->program(*name);
  if (!program)
    return program.takeError();
  return finishImport(archive->path(), importProgram(*program, *name, context));
}

Expected<OwningOpRef<ModuleOp>>
mlir::mp::loadBuffer(std::unique_ptr<llvm::MemoryBuffer> buffer,
                     MLIRContext *context, StringRef model) {
  context->loadDialect<MPDialect, func::FuncDialect>();
  std::string path = buffer->getBufferIdentifier().str();
  switch (kindOf(path, buffer->getBuffer())) {
  case InputKind::Archive:
    return loadArchive(std::move(buffer), context, model);
  case InputKind::Program:
    return finishImport(path, importProgram(buffer->getBuffer(),
                                            model.empty() ? "model" : model,
                                            context));
  case InputKind::Bytecode:
    if (!isBytecode(buffer->getMemBufferRef()))
      return ::failure(path, "no MLIR bytecode");
    [[fallthrough]];
  case InputKind::Text:
    return parseGuarded(std::move(buffer), context);
  }
  llvm_unreachable("all kinds are handled");
}

/// Maps the file. MLIR's lexer needs a zero after the last byte, which a mapped
/// file of whole pages has not: text is then read instead.
static Expected<std::unique_ptr<llvm::MemoryBuffer>> openFile(StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(
      path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (buffer && path != "-" &&
      kindOf(path, (*buffer)->getBuffer()) == InputKind::Text)
    buffer = llvm::MemoryBuffer::getFile(path);
  if (!buffer)
    return ::failure(path, "cannot read: " + buffer.getError().message());
  return std::move(*buffer);
}

Expected<OwningOpRef<ModuleOp>>
mlir::mp::loadModule(StringRef path, MLIRContext *context, StringRef model) {
  if (isBundle(path)) {
    Expected<std::string> member = bundleMember(path, kBundleBefore);
    if (!member)
      return member.takeError();
    return loadModule(*member, context, model);
  }
  Expected<std::unique_ptr<llvm::MemoryBuffer>> buffer = openFile(path);
  if (!buffer)
    return buffer.takeError();
  return loadBuffer(std::move(*buffer), context, model);
}
