//===- Arguments.cpp - command lines of the subcommands -------------------===//

#include "tools/mpopt/Arguments.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Errc.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::mp;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

static Error usageError(const llvm::Twine &what) {
  return llvm::createStringError(llvm::errc::invalid_argument, what);
}

StringRef Arguments::get(StringRef option, StringRef otherwise) const {
  auto it = options.find(option);
  return it == options.end() ? otherwise : StringRef(it->second);
}

std::string mlir::mp::usageOf(const CommandSpec &command) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "usage: mpopt " << command.name;
  for (StringRef input : command.inputs)
    os << ' ' << input;
  os << " [options]\n\n" << command.summary << "\n\noptions:\n";
  for (const OptionSpec &option : command.options) {
    std::string name = (option.name + " " + option.value).str();
    os << llvm::formatv("  {0,-28} {1}\n", name, option.help);
  }
  os << "\nexit codes: 0 ok, 1 difference or violation, 2 bad usage or input\n";
  return text;
}

/// Checks and stores one option's value.
static Error setOption(const OptionSpec &option, StringRef value,
                       Arguments &arguments) {
  if (!option.choices.empty() && !llvm::is_contained(option.choices, value))
    return usageError("option '" + option.name + "' takes " +
                      llvm::join(option.choices, ", ") + ", not '" + value +
                      "'" + suggest(value, option.choices));
  arguments.options[option.name] = value.str();
  return Error::success();
}

static const OptionSpec *findOption(const CommandSpec &command,
                                    StringRef name) {
  for (const OptionSpec &option : command.options)
    if (option.name == name)
      return &option;
  return nullptr;
}

static bool hasRightCount(const CommandSpec &command, size_t count) {
  // Inputs in brackets, the last ones, may be left out.
  size_t needed = llvm::count_if(
      command.inputs, [](StringRef input) { return !input.starts_with("["); });
  bool takesMore =
      !command.inputs.empty() && command.inputs.back().ends_with("...");
  return count >= needed && (takesMore || count <= command.inputs.size());
}

Expected<Arguments> mlir::mp::parseArguments(const CommandSpec &command,
                                             llvm::ArrayRef<StringRef> words) {
  Arguments arguments;
  std::vector<StringRef> names{"--help"};
  for (const OptionSpec &option : command.options)
    names.push_back(option.name);

  for (size_t i = 0; i != words.size(); ++i) {
    if (!words[i].starts_with("-") || words[i] == "-") {
      arguments.inputs.push_back(words[i].str());
      continue;
    }
    auto [name, value] = words[i].split('=');
    bool hasValue = name.size() != words[i].size();
    if (name == "--help" || name == "-h") {
      arguments.wantsHelp = true;
      return arguments;
    }
    const OptionSpec *option = findOption(command, name);
    if (!option)
      return usageError("'mpopt " + command.name + "' has no option '" + name +
                        "'" + suggest(name, names));
    if (!hasValue && ++i == words.size())
      return usageError("option '" + name +
                        "' needs a value: " + option->value);
    if (Error error =
            setOption(*option, hasValue ? value : words[i], arguments))
      return error;
  }
  if (!hasRightCount(command, arguments.inputs.size()))
    return usageError("'mpopt " + command.name + "' needs " +
                      llvm::join(command.inputs, " and ") + ", got " +
                      llvm::Twine(arguments.inputs.size()) + " inputs");
  return arguments;
}
