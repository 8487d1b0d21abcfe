//===- PythonCommands.cpp - hand a command over to Python -----------------===//

#include "tools/mpopt/PythonCommands.h"
#include "tools/mpopt/Commands.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Errno.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

#include <cerrno>
#include <cstdlib>
#include <unistd.h>

using namespace mlir::mp;
using llvm::StringRef;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

llvm::ArrayRef<PythonCommand> mlir::mp::pythonCommands() {
  static const PythonCommand list[] = {
#define MP_PYTHON_COMMAND(NAME, SUMMARY) {NAME, SUMMARY},
#include "tools/mpopt/PythonCommands.def"
  };
  return list;
}

/// Where this program lies, links followed, and where it was called: a tool
/// that isolates packages links to the former, a development tree the latter.
static llvm::SmallVector<std::string> programFolders(const char *argv0) {
  static int anchor;
  llvm::SmallVector<std::string> folders;
  std::string real = fs::getMainExecutable(argv0, &anchor);
  folders.push_back(path::parent_path(real).str());
  if (llvm::ErrorOr<std::string> called = llvm::sys::findProgramByName(argv0))
    folders.push_back(path::parent_path(*called).str());
  return folders;
}

static std::string findPython(const char *argv0) {
  llvm::SmallVector<std::string> folders = programFolders(argv0);
  llvm::SmallVector<StringRef> beside(folders.begin(), folders.end());
  for (StringRef name : {"python3", "python"})
    if (auto found = llvm::sys::findProgramByName(name, beside))
      return *found;
  for (StringRef name : {"python3", "python"})
    if (auto found = llvm::sys::findProgramByName(name))
      return *found;
  return "";
}

int mlir::mp::runPython(char **argv) {
  std::string python = findPython(argv[0]);
  if (python.empty())
    return reportError(
        "'mpopt " + llvm::Twine(argv[1]) +
        "' needs Python with the package mpopt, and no python3 is on PATH");
  std::string option = "-m", module = "mpopt";
  llvm::SmallVector<char *> words{python.data(), option.data(), module.data()};
  for (char **word = argv + 1; *word; ++word)
    words.push_back(*word);
  words.push_back(nullptr);
  // A command that calls the program again shall call this one.
  static int anchor;
  std::string self = fs::getMainExecutable(argv[0], &anchor);
  if (!self.empty())
    ::setenv("MPOPT_TOOL", self.c_str(), /*overwrite=*/0);
  ::execv(python.c_str(), words.data());
  return reportError("cannot start " + llvm::Twine(python) + ": " +
                     llvm::sys::StrError(errno));
}
