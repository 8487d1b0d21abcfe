//===- GuardedParse.cpp - MLIR's parsers on untrusted input ---------------===//

#include "dialect/Import/GuardedParse.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/Errc.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/thread.h"

#include <csignal>
#include <cstdio>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

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
  return llvm::createStringError(llvm::errc::invalid_argument,
                                 path + ": " + what);
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
      outcome.error = placeOf(diagnostic.getLocation()) + diagnostic.str();
    return success();
  });
  auto sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  ParserConfig config(context, /*verifyAfterParse=*/true);
  outcome.module = parseSourceFile<ModuleOp>(sources, config);
}

/// Limits that no intact file needs, for a file of `size` bytes.
static void limitThisProcess(size_t size) {
  rlim_t megabytes = size >> 20;
  rlimit seconds{2 + 4 * megabytes, 2 + 4 * megabytes};
  rlimit bytes{(8192 + 64 * megabytes) << 20, (8192 + 64 * megabytes) << 20};
  rlimit none{0, 0};
  setrlimit(RLIMIT_CPU, &seconds);
  setrlimit(RLIMIT_AS, &bytes);
  setrlimit(RLIMIT_CORE, &none);
  // Faults are expected: no handler shall describe them.
  for (int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL})
    (void)std::signal(signal, SIG_DFL);
}

/// The child's part: writes the module as text after an 'M', or the error after
/// an 'E'.
[[noreturn]] static void parseAndTell(llvm::MemoryBufferRef buffer,
                                      MLIRContext *context, int file) {
  limitThisProcess(buffer.getBufferSize());
  if (!freopen("/dev/null", "w", stderr))
    _exit(1);
  Outcome outcome;
  parseInto(outcome,
            llvm::MemoryBuffer::getMemBuffer(buffer,
                                             /*RequiresNullTerminator=*/false),
            context);
  {
    llvm::raw_fd_ostream out(file, /*shouldClose=*/true);
    if (outcome.module)
      outcome.module->print(out << 'M', OpPrintingFlags().enableDebugInfo());
    else
      out << 'E' << outcome.error;
  }
  _exit(0); // what is half built stays so
}

/// Everything that can be read from `file`, which it closes.
static std::string readAll(int file) {
  std::string all;
  char chunk[1 << 16];
  for (ssize_t size; (size = read(file, chunk, sizeof(chunk))) > 0;)
    all.append(chunk, size);
  close(file);
  return all;
}

/// Turns bytecode into text in a child process: the reader may overwrite memory
/// before anybody notices, so nothing that it touched is used here.
static Expected<std::string> readBytecode(llvm::MemoryBufferRef buffer,
                                          MLIRContext *context) {
  StringRef path = buffer.getBufferIdentifier();
  int ends[2];
  pid_t child = pipe(ends) == 0 ? fork() : -1;
  if (child < 0)
    return ::failure(path, "cannot start a process to read it");
  if (child == 0) {
    close(ends[0]);
    parseAndTell(buffer, context, ends[1]);
  }
  close(ends[1]);
  std::string told = readAll(ends[0]);
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
      WEXITSTATUS(status) != 0 || told.empty())
    return ::failure(path, "damaged file: MLIR's reader failed on it");
  if (told.front() == 'E')
    return ::failure(path, told.size() == 1 ? "not a module" : told.substr(1));
  return told.substr(1);
}

Expected<OwningOpRef<ModuleOp>>
mlir::mp::parseGuarded(std::unique_ptr<llvm::MemoryBuffer> buffer,
                       MLIRContext *context) {
  std::string path = buffer->getBufferIdentifier().str();
  if (!isBytecode(buffer->getMemBufferRef())) {
    if (Error error = checkNesting(*buffer))
      return std::move(error);
  } else {
    Expected<std::string> text =
        readBytecode(buffer->getMemBufferRef(), context);
    if (!text)
      return text.takeError();
    buffer = llvm::MemoryBuffer::getMemBufferCopy(*text, path);
  }

  Outcome outcome;
  llvm::thread parser(std::optional<unsigned>(kStackSize),
                      [&] { parseInto(outcome, std::move(buffer), context); });
  parser.join();
  if (outcome.module)
    return std::move(outcome.module);
  if (outcome.error.empty())
    return ::failure(path, "not a module");
  // A diagnostic's place begins with the file's name already.
  if (StringRef(outcome.error).starts_with(path))
    return llvm::createStringError(llvm::errc::invalid_argument, outcome.error);
  return ::failure(path, outcome.error);
}
