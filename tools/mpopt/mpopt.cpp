//===- mpopt.cpp - the command line program -------------------------------===//

#include "tools/mpopt/Commands.h"
#include "tools/mpopt/PythonCommands.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir::mp;
using llvm::StringRef;

static int runCommand(const Command &command, llvm::ArrayRef<StringRef> words) {
  llvm::Expected<Arguments> arguments = parseArguments(command.spec, words);
  if (!arguments)
    return reportError(arguments.takeError());
  if (arguments->wantsHelp) {
    llvm::outs() << usageOf(command.spec);
    return Ok;
  }
  return command.run(*arguments);
}

/// True if `word` can only be meant as a command.
static bool looksLikeCommand(StringRef word) {
  return llvm::all_of(word,
                      [](char c) { return llvm::isAlpha(c) || c == '-'; }) &&
         !word.starts_with("-") && !llvm::sys::fs::exists(word);
}

int main(int argc, char **argv) {
  llvm::SmallVector<StringRef> words(argv + 1, argv + argc);
  if (words.empty() || words[0] == "--help" || words[0] == "-h" ||
      words[0] == "help") {
    printHelp(llvm::outs());
    return words.empty() ? BadInput : Ok;
  }
  llvm::SmallVector<StringRef> names;
  for (const Command &command : commands()) {
    if (command.spec.name == words[0])
      return runCommand(command, llvm::ArrayRef(words).drop_front());
    names.push_back(command.spec.name);
  }
  for (const PythonCommand &command : pythonCommands()) {
    if (command.name == words[0])
      return runPython(argv);
    names.push_back(command.name);
  }
  if (looksLikeCommand(words[0]))
    return reportError("no command and no file '" + words[0] + "'" +
                       suggest(words[0], names) + " ('mpopt --help' has all)");
  return runDriver(argc, argv);
}
