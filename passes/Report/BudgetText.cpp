//===- BudgetText.cpp - the file of a budget ------------------------------===//
//
// Reads the part of TOML that printBudget writes: tables whose names are keys
// with dots, and keys with a text or an integer. Comments may stand anywhere.
//
//===----------------------------------------------------------------------===//

#include "passes/Report/Budget.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Errc.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::mp;
using llvm::Error;
using llvm::Expected;

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

std::string mlir::mp::quotedKey(StringRef key) {
  std::string text = "\"";
  for (char letter : llvm::json::fixUTF8(key)) {
    if (letter == '"' || letter == '\\')
      text += '\\';
    if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f)
      text += "\\u00" + llvm::toHex(StringRef(&letter, 1));
    else
      text += letter;
  }
  return text + "\"";
}

static void printFigures(const Figures &figures, llvm::raw_ostream &os) {
  for (const auto &[name, value] : figures)
    if (value)
      os << name << " = " << value << '\n';
}

static void printTexts(const std::map<std::string, std::string> &texts,
                       llvm::raw_ostream &os) {
  for (const auto &[name, text] : texts)
    os << name << " = " << quotedKey(text) << '\n';
}

void mlir::mp::printBudget(const Budget &budget, llvm::raw_ostream &os) {
  os << "# Precision budget: 'mpopt budget check' fails when a figure gets "
        "worse,\n# 'mpopt budget write' renews this file.\n"
     << "schema = " << kBudgetSchema << '\n';
  printTexts(budget.versions, os);
  for (const auto &[name, graph] : budget.graphs) {
    std::string table = "graph." + quotedKey(name);
    os << "\n[" << table << "]\n";
    printTexts(graph.settings, os);
    printFigures(graph.total, os);
    for (const auto &[region, figures] : graph.regions) {
      if (figures.empty())
        continue;
      os << "\n[" << table << ".region." << quotedKey(region) << "]\n";
      printFigures(figures, os);
    }
  }
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {
class Reader {
public:
  Reader(StringRef text, StringRef name) : rest(text), name(name) {}
  Expected<Budget> read();

private:
  Error readLine(StringRef line);
  Error openTable(StringRef line);
  Error setText(StringRef key, StringRef line);
  Error setNumber(StringRef key, StringRef line);
  Error checkSchema(int64_t schema);
  Expected<std::vector<std::string>> readKey(StringRef &line, char end);
  bool readString(StringRef &line, std::string &text);
  Error failure(const Twine &what) {
    return llvm::createStringError(llvm::errc::invalid_argument,
                                   name + ":" + Twine(number) + ": " + what);
  }

  StringRef rest, name;
  int64_t number = 0;
  Budget budget;
  bool hasSchema = false;
  GraphFigures *graph = nullptr; ///< of the open table
  Figures *figures = nullptr;    ///< of the open table
  bool isRegion = false;
};
} // namespace

/// A text in quotes at the front of `line`, which is moved behind it.
bool Reader::readString(StringRef &line, std::string &text) {
  if (!line.consume_front("\""))
    return false;
  while (!line.empty()) {
    char letter = line.front();
    line = line.drop_front();
    if (letter == '"')
      return true;
    if (letter != '\\') {
      text += letter;
      continue;
    }
    if (line.consume_front("u00") && line.size() >= 2) {
      unsigned code = 0;
      if (line.take_front(2).getAsInteger(16, code))
        return false;
      text += char(code);
      line = line.drop_front(2);
    } else if (!line.empty()) {
      text += line.front();
      line = line.drop_front();
    }
  }
  return false;
}

static bool isBare(char letter) {
  return llvm::isAlnum(letter) || letter == '_' || letter == '-';
}

/// A key with dots at the front of `line`, up to `end`, which is taken off too.
Expected<std::vector<std::string>> Reader::readKey(StringRef &line, char end) {
  std::vector<std::string> parts;
  StringRef whole = line;
  do {
    line = line.ltrim();
    std::string part;
    if (line.starts_with("\"")) {
      if (!readString(line, part))
        return failure("text without an end: " + whole);
    } else {
      StringRef bare = line.take_while(isBare);
      line = line.drop_front(bare.size());
      part = bare.str();
      if (bare.empty())
        return failure("no line of a budget: " + whole);
    }
    parts.push_back(std::move(part));
    line = line.ltrim();
  } while (line.consume_front("."));
  if (!line.consume_front(StringRef(&end, 1)))
    return failure("no line of a budget: " + whole);
  line = line.trim();
  return parts;
}

/// True if nothing but a comment is left.
static bool isEnd(StringRef line) {
  line = line.ltrim();
  return line.empty() || line.starts_with("#");
}

Error Reader::openTable(StringRef line) {
  StringRef whole = line;
  line = line.drop_front();
  Expected<std::vector<std::string>> key = readKey(line, ']');
  if (!key)
    return key.takeError();
  bool isGraph = key->size() == 2 && (*key)[0] == "graph";
  isRegion = key->size() == 4 && (*key)[0] == "graph" && (*key)[2] == "region";
  if ((!isGraph && !isRegion) || !isEnd(line))
    return failure("no table of a budget: " + whole);
  auto [it, isNew] = budget.graphs.try_emplace((*key)[1]);
  graph = &it->second;
  if (isGraph) {
    figures = &graph->total;
    return isNew ? Error::success() : failure("table is there twice: " + whole);
  }
  auto [region, isNewRegion] = graph->regions.try_emplace((*key)[3]);
  figures = &region->second;
  return isNewRegion ? Error::success()
                     : failure("table is there twice: " + whole);
}

Error Reader::setText(StringRef key, StringRef line) {
  std::string text;
  if (!readString(line, text) || !isEnd(line))
    return failure("text without an end at key '" + key + "'");
  if (isRegion)
    return failure("a region has integers only, not the text of '" + key + "'");
  auto &texts = graph ? graph->settings : budget.versions;
  if (!texts.try_emplace(key.str(), text).second)
    return failure("key '" + key + "' is there twice");
  return Error::success();
}

Error Reader::checkSchema(int64_t schema) {
  hasSchema = true;
  if (schema == kBudgetSchema)
    return Error::success();
  return failure("schema " + Twine(schema) + ", but this mpopt reads schema " +
                 Twine(kBudgetSchema) +
                 "; renew the file with 'mpopt budget write'");
}

Error Reader::setNumber(StringRef key, StringRef line) {
  int64_t value = 0;
  if (line.consumeInteger(10, value) || !isEnd(line))
    return failure("key '" + key + "' needs an integer or a text in quotes");
  if (key == "schema" && !figures)
    return checkSchema(value);
  if (!figures)
    return failure("figure '" + key + "' before the first table");
  if (!figures->try_emplace(key.str(), value).second)
    return failure("key '" + key + "' is there twice");
  return Error::success();
}

Error Reader::readLine(StringRef line) {
  if (isEnd(line))
    return Error::success();
  if (line.starts_with("["))
    return openTable(line);
  Expected<std::vector<std::string>> key = readKey(line, '=');
  if (!key)
    return key.takeError();
  if (key->size() > 2)
    return failure("key '" + llvm::join(*key, ".") + "' has too many parts");
  std::string name = key->front();
  if (key->size() == 2)
    name += "." + quotedKey(key->back());
  return line.starts_with("\"") ? setText(name, line) : setNumber(name, line);
}

Expected<Budget> Reader::read() {
  while (!rest.empty()) {
    StringRef line;
    std::tie(line, rest) = rest.split('\n');
    ++number;
    if (Error error = readLine(line.trim()))
      return std::move(error);
  }
  if (!hasSchema)
    return failure("no budget of mpopt: it has no key 'schema'");
  return std::move(budget);
}

Expected<Budget> mlir::mp::parseBudget(StringRef text, StringRef name) {
  return Reader(text, name).read();
}
