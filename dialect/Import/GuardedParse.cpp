//===- GuardedParse.cpp - MLIR's parsers on untrusted input ---------------===//

#include "dialect/Import/GuardedParse.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/Errc.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace mlir::mp;
using llvm::Error;
using llvm::Expected;

static constexpr unsigned kStackSize = 256u << 20; // mapped, not touched
static constexpr size_t kMaxNesting = 2000;

/// Deepest nesting of brackets outside of strings and comments.
static size_t nestingOf(StringRef text) {
  size_t depth = 0, deepest = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
    case '"':
      for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
        if (text[i] == '\\')
          ++i;
      break;
    case '/':
      if (i + 1 < text.size() && text[i + 1] == '/')
        i = std::min(text.find('\n', i), text.size());
      break;
    case '(':
    case '[':
    case '{':
    case '<':
      deepest = std::max(deepest, ++depth);
      break;
    case '>':
      if (i && text[i - 1] == '-')
        break; // an arrow
      [[fallthrough]];
    case ')':
    case ']':
    case '}':
      depth -= depth != 0;
      break;
    default:
      break;
    }
  }
  return deepest;
}

static Error failure(StringRef path, const Twine &what) {
  return llvm::createStringError(llvm::errc::invalid_argument, path + ": " + what);
}

Error mlir::mp::checkNesting(const llvm::MemoryBuffer &text) {
  size_t nesting = nestingOf(text.getBuffer());
  if (nesting <= kMaxNesting)
    return Error::success();
  return ::failure(text.getBufferIdentifier(),
                   "brackets are nested " + Twine(nesting) +
                       " levels deep, more than any graph needs");
}

namespace {
/// What a parse leaves behind, outside of the guarded thread's stack.
struct Outcome {
  OwningOpRef<ModuleOp> module;
  std::string error;
};
} // namespace

/// "file.mlir:3:7: " of a diagnostic's location; empty for an unknown one.
static std::string placeOf(Location loc) {
  std::string text;
  if (auto place = loc->findInstanceOf<FileLineColLoc>())
    llvm::raw_string_ostream(text)
        << place.getFilename().getValue() << ':' << place.getLine() << ':'
        << place.getColumn() << ": ";
  return text;
}

static void parseInto(Outcome &outcome,
                      std::unique_ptr<llvm::MemoryBuffer> buffer,
                      MLIRContext *context) {
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error &&
        outcome.error.empty())
      outcome.error =
          placeOf(diagnostic.getLocation()) + diagnostic.str();
    return success();
  });
  auto sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  ParserConfig config(context, /*verifyAfterParse=*/true);
  outcome.module = parseSourceFile<ModuleOp>(sources, config);
}

Expected<OwningOpRef<ModuleOp>>
mlir::mp::parseGuarded(std::unique_ptr<llvm::MemoryBuffer> buffer,
                       MLIRContext *context) {
  std::string path = buffer->getBufferIdentifier().str();
  if (!isBytecode(buffer->getMemBufferRef()))
    if (Error error = checkNesting(*buffer))
      return std::move(error);

  // Threads of the context would run outside of the guard.
  context->disableMultithreading();
  auto outcome = std::make_unique<Outcome>();
  llvm::CrashRecoveryContext::Enable();
  llvm::CrashRecoveryContext guard;
  bool finished = guard.RunSafelyOnThread(
      [&] { parseInto(*outcome, std::move(buffer), context); }, kStackSize);
  llvm::CrashRecoveryContext::Disable();
  if (!finished) {
    // Half-built IR cannot be destroyed.
    (void)outcome.release();
    return ::failure(path, "damaged file: MLIR's reader failed on it");
  }
  if (outcome->module)
    return std::move(outcome->module);
  if (outcome->error.empty())
    outcome->error = "not a module";
  StringRef error = outcome->error;
  return llvm::createStringError(llvm::errc::invalid_argument,
                                 error.starts_with(path)
                                     ? error.str()
                                     : path + ": " + error.str());
}
