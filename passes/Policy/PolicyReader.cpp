//===- PolicyReader.cpp - from TOML to a checked policy -------------------===//

#include "dialect/IR/Suggest.h"
#include "passes/Policy/Policy.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Errc.h"

#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

#include <cmath>

using namespace mlir::mp;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

namespace {
/// Where a value stands in the file.
using Position = toml::source_position;

/// Fills a policy from the document's root. Each function returns the first
/// thing that is wrong.
class Reader {
public:
  explicit Reader(Policy &policy) : policy(policy) {}
  Error read(const toml::table &root);

private:
  Error fail(Position at, const Twine &what) const;
  Error wrongType(const toml::node &node, const Twine &key,
                  StringRef wanted) const;
  Error checkKeys(const toml::table &table, const Twine &place,
                  llvm::ArrayRef<StringRef> known) const;
  Error readText(const toml::table &table, StringRef key,
                 std::string &value) const;
  Error readWord(const toml::table &table, StringRef key,
                 llvm::ArrayRef<StringRef> words, std::string &value) const;
  Error checkWord(const toml::node &node, const Twine &key, StringRef word,
                  llvm::ArrayRef<StringRef> words) const;
  /// Calls `readOne` for each table of the array of tables `key`.
  template <typename ReadOne>
  Error readTables(const toml::table &root, StringRef key, ReadOne readOne);

  Error readVersion(const toml::table &root);
  Error readEpsilon(const toml::table &table, std::optional<double> &value);
  Error readGroups(const toml::table &root);
  Error readRule(const toml::table &table);
  Error readSelectors(const toml::table &table, PolicyRule &rule);
  Error readName(const toml::table &table, PolicyRule &rule);
  Error readLine(const toml::table &table, PolicyRule &rule);
  Error readDtype(const toml::table &table, PolicyRule &rule);
  Error readAction(const toml::table &table, PolicyRule &rule);
  Error readOp(const toml::table &table);
  Error readBudget(const toml::table &table);
  Error readModule(const toml::table &table, std::optional<ModuleGlob> &module);
  Error checkOperatorName(Position at, StringRef name) const;

  Policy &policy;
  llvm::StringSet<> opNames;
};
} // namespace

static constexpr StringRef kRootKeys[] = {
    "version", "level", "epsilon", "groups", "rule", "op", "budget"};
static constexpr StringRef kSelectors[] = {"module", "op", "line", "dtype",
                                           "name"};
static constexpr StringRef kRuleKeys[] = {
    "module", "op", "line", "dtype", "name", "precision", "where", "why"};
static constexpr StringRef kLevels[] = {"strict", "precise", "relaxed"};
static constexpr StringRef kPrecisions[] = {"fp32", "half", "keep"};
static constexpr StringRef kPlaces[] = {"result", "operands", "both"};

/// Words for a type, and the type's name in the graph.
static constexpr std::pair<StringRef, StringRef> kDtypes[] = {
    {"fp32", "f32"},          {"float32", "f32"},
    {"f32", "f32"},           {"fp16", "f16"},
    {"float16", "f16"},       {"f16", "f16"},
    {"bf16", "bf16"},         {"bfloat16", "bf16"},
    {"fp64", "f64"},          {"float64", "f64"},
    {"f64", "f64"},           {"float8_e4m3fn", "f8E4M3FN"},
    {"float8_e5m2", "f8E5M2"}};

static StringRef describe(toml::node_type type) {
  switch (type) {
  case toml::node_type::none:
    return "nothing";
  case toml::node_type::table:
    return "a table";
  case toml::node_type::array:
    return "a list";
  case toml::node_type::string:
    return "a text";
  case toml::node_type::integer:
    return "a whole number";
  case toml::node_type::floating_point:
    return "a number";
  case toml::node_type::boolean:
    return "true or false";
  default:
    return "a date or time";
  }
}

static StringRef toRef(std::string_view view) {
  return StringRef(view.data(), view.size());
}

static std::string_view toView(StringRef ref) {
  return std::string_view(ref.data(), ref.size());
}

static Position positionOf(const toml::node &node) {
  return node.source().begin;
}

static Position keyPosition(const toml::table &table, StringRef key) {
  for (auto &&[name, node] : table)
    if (toRef(name.str()) == key)
      return name.source().begin;
  return table.source().begin;
}

//===----------------------------------------------------------------------===//
// What every key needs
//===----------------------------------------------------------------------===//

Error Reader::fail(Position at, const Twine &what) const {
  return llvm::createStringError(llvm::errc::invalid_argument,
                                 policy.name + ":" + Twine(at.line) + ":" +
                                     Twine(at.column) + ": " + what);
}

Error Reader::wrongType(const toml::node &node, const Twine &key,
                        StringRef wanted) const {
  return fail(positionOf(node), "'" + key + "' must be " + wanted + ", not " +
                                    describe(node.type()));
}

Error Reader::checkKeys(const toml::table &table, const Twine &place,
                        llvm::ArrayRef<StringRef> known) const {
  for (auto &&[name, node] : table) {
    StringRef key = toRef(name.str());
    if (llvm::is_contained(known, key))
      continue;
    std::string hint = suggest(key, known);
    if (hint.empty())
      hint = "; known: " + llvm::join(known, ", ");
    return fail(name.source().begin,
                "unknown key '" + key + "' in " + place + hint);
  }
  return Error::success();
}

Error Reader::readText(const toml::table &table, StringRef key,
                       std::string &value) const {
  const toml::node *node = table.get(toView(key));
  if (!node)
    return Error::success();
  const auto *text = node->as_string();
  if (!text)
    return wrongType(*node, key, "a text");
  if (text->get().empty())
    return fail(positionOf(*node), "'" + key + "' is empty");
  value = text->get();
  return Error::success();
}

Error Reader::checkWord(const toml::node &node, const Twine &key,
                        StringRef word, llvm::ArrayRef<StringRef> words) const {
  if (llvm::is_contained(words, word))
    return Error::success();
  return fail(positionOf(node), "'" + key + "' must be one of " +
                                    llvm::join(words, ", ") + ", not '" + word +
                                    "'" + suggest(word, words));
}

Error Reader::readWord(const toml::table &table, StringRef key,
                       llvm::ArrayRef<StringRef> words,
                       std::string &value) const {
  if (Error error = readText(table, key, value))
    return error;
  if (value.empty())
    return Error::success();
  return checkWord(*table.get(toView(key)), key, value, words);
}

template <typename ReadOne>
Error Reader::readTables(const toml::table &root, StringRef key,
                         ReadOne readOne) {
  const toml::node *node = root.get(toView(key));
  if (!node)
    return Error::success();
  const toml::array *array = node->as_array();
  if (!array)
    return fail(positionOf(*node), "'" + key + "' must be a list of tables, " +
                                       "not " + describe(node->type()) +
                                       "; write [[" + key + "]]");
  for (const toml::node &entry : *array) {
    const toml::table *table = entry.as_table();
    if (!table)
      return wrongType(entry, key, "a list of tables");
    if (Error error = readOne(*table))
      return error;
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// The root
//===----------------------------------------------------------------------===//

Error Reader::readVersion(const toml::table &root) {
  const toml::node *node = root.get("version");
  if (!node)
    return fail({1, 1}, "no 'version'; write 'version = 1'");
  const auto *number = node->as_integer();
  if (!number)
    return wrongType(*node, "version", "a whole number");
  if (number->get() != 1)
    return fail(positionOf(*node), "'version' is " + Twine(number->get()) +
                                       ", but this mpopt reads version 1");
  return Error::success();
}

Error Reader::readEpsilon(const toml::table &table,
                          std::optional<double> &number) {
  const toml::node *node = table.get("epsilon");
  if (!node)
    return Error::success();
  if (!node->is_number())
    return wrongType(*node, "epsilon", "a number");
  double value = *node->value<double>();
  if (!std::isfinite(value) || value < 0)
    return fail(positionOf(*node),
                "'epsilon' must be a finite number of 0 or more");
  number = value;
  return Error::success();
}

Error Reader::readGroups(const toml::table &root) {
  const toml::node *node = root.get("groups");
  if (!node)
    return Error::success();
  const toml::table *table = node->as_table();
  if (!table)
    return wrongType(*node, "groups", "a table");
  if (Error error = checkKeys(*table, "[groups]", {"enable"}))
    return error;
  const toml::node *enable = table->get("enable");
  if (!enable)
    return fail(positionOf(*node), "[groups] has no 'enable'");
  const toml::array *names = enable->as_array();
  if (!names)
    return wrongType(*enable, "enable", "a list of groups");
  policy.enabled.emplace();
  policy.enabledPosition = keyPosition(*table, "enable").line;
  for (const toml::node &entry : *names) {
    const auto *name = entry.as_string();
    if (!name)
      return wrongType(entry, "enable", "a list of texts");
    if (Error error = checkWord(entry, "enable", name->get(), groupNames()))
      return error;
    auto index = llvm::find(groupNames(), name->get()) - groupNames().begin();
    policy.enabled->push_back(static_cast<Group>(index));
  }
  return Error::success();
}

Error Reader::read(const toml::table &root) {
  if (Error error = checkKeys(root, "the policy", kRootKeys))
    return error;
  if (Error error = readVersion(root))
    return error;
  std::string level;
  if (Error error = readWord(root, "level", kLevels, level))
    return error;
  if (!level.empty())
    policy.level = level;
  if (Error error = readEpsilon(root, policy.epsilon))
    return error;
  if (Error error = readGroups(root))
    return error;
  if (Error error = readTables(root, "rule", [&](const toml::table &table) {
        return readRule(table);
      }))
    return error;
  if (Error error = readTables(root, "budget", [&](const toml::table &table) {
        return readBudget(table);
      }))
    return error;
  return readTables(root, "op",
                    [&](const toml::table &table) { return readOp(table); });
}

Error Reader::readBudget(const toml::table &table) {
  if (Error error = checkKeys(table, "[[budget]]", {"module", "epsilon"}))
    return error;
  std::optional<ModuleGlob> module;
  std::optional<double> epsilon;
  if (Error error = readModule(table, module))
    return error;
  if (Error error = readEpsilon(table, epsilon))
    return error;
  if (!module || !epsilon)
    return fail(positionOf(table), "[[budget]] needs 'module' and 'epsilon'");
  policy.budgets.push_back({*module, *epsilon, positionOf(table).line});
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

Error Reader::checkOperatorName(Position at, StringRef name) const {
  if (!name.contains("::"))
    return Error::success();
  std::string dotted = name.str();
  dotted.replace(dotted.find("::"), 2, ".");
  return fail(at, "an operator is written with dots: '" + dotted + "', not '" +
                      name + "'");
}

Error Reader::readModule(const toml::table &table,
                         std::optional<ModuleGlob> &module) {
  std::string text;
  if (Error error = readText(table, "module", text))
    return error;
  if (text.empty())
    return Error::success();
  Expected<ModuleGlob> glob = ModuleGlob::create(text);
  if (!glob)
    return fail(positionOf(*table.get("module")),
                "'module' is no pattern: " + toString(glob.takeError()));
  module = std::move(*glob);
  return Error::success();
}

Error Reader::readSelectors(const toml::table &table, PolicyRule &rule) {
  if (Error error = readModule(table, rule.module))
    return error;
  std::string text;
  if (Error error = readText(table, "op", text))
    return error;
  if (text.empty())
    return Error::success();
  Position at = positionOf(*table.get("op"));
  if (Error error = checkOperatorName(at, text))
    return error;
  Expected<OperatorGlob> glob = OperatorGlob::create(text);
  if (!glob)
    return fail(at, "'op' is no pattern: " + toString(glob.takeError()));
  rule.op = std::move(*glob);
  return Error::success();
}

Error Reader::readName(const toml::table &table, PolicyRule &rule) {
  if (Error error = readText(table, "name", rule.nameText))
    return error;
  if (rule.nameText.empty())
    return Error::success();
  auto regex = std::make_shared<llvm::Regex>(rule.nameText);
  std::string problem;
  if (!regex->isValid(problem))
    return fail(positionOf(*table.get("name")),
                "'name' is no regular expression: " + problem);
  rule.name = std::move(regex);
  return Error::success();
}

/// "file.py:123" or "file.py:100-140".
Error Reader::readLine(const toml::table &table, PolicyRule &rule) {
  std::string text;
  if (Error error = readText(table, "line", text))
    return error;
  if (text.empty())
    return Error::success();
  auto [file, lines] = StringRef(text).rsplit(':');
  auto [first, last] = lines.split('-');
  bool isNumber = !first.getAsInteger(10, rule.firstLine);
  if (lines.contains('-'))
    isNumber = isNumber && !last.getAsInteger(10, rule.lastLine);
  else
    rule.lastLine = rule.firstLine;
  if (file.empty() || !isNumber || rule.firstLine == 0 ||
      rule.lastLine < rule.firstLine)
    return fail(positionOf(*table.get("line")),
                "'line' must be \"file.py:123\" or \"file.py:100-140\", not '" +
                    text + "'");
  rule.file = file.str();
  return Error::success();
}

Error Reader::readDtype(const toml::table &table, PolicyRule &rule) {
  llvm::SmallVector<StringRef> words;
  for (auto [word, type] : kDtypes)
    words.push_back(word);
  std::string word;
  if (Error error = readWord(table, "dtype", words, word))
    return error;
  for (auto [name, type] : kDtypes)
    if (name == word)
      rule.dtype = type.str();
  return Error::success();
}

Error Reader::readAction(const toml::table &table, PolicyRule &rule) {
  std::string precision, where = "both";
  if (Error error = readWord(table, "precision", kPrecisions, precision))
    return error;
  if (precision.empty())
    return fail(table.source().begin,
                "the rule has no 'precision'; write one of " +
                    llvm::join(llvm::ArrayRef(kPrecisions), ", "));
  if (Error error = readWord(table, "where", kPlaces, where))
    return error;
  rule.precision = *symbolizePinFormat(precision);
  rule.where = *symbolizePinWhere(where);
  return readText(table, "why", rule.why);
}

Error Reader::readRule(const toml::table &table) {
  PolicyRule rule;
  rule.position = table.source().begin.line;
  if (Error error = checkKeys(table, "[[rule]]", kRuleKeys))
    return error;
  if (llvm::none_of(kSelectors,
                    [&](StringRef key) { return table.contains(toView(key)); }))
    return fail(table.source().begin,
                "the rule selects nothing; give one of " +
                    llvm::join(llvm::ArrayRef(kSelectors), ", ") +
                    " (module = \"**\" is everything)");
  if (Error error = readSelectors(table, rule))
    return error;
  if (Error error = readName(table, rule))
    return error;
  if (Error error = readLine(table, rule))
    return error;
  if (Error error = readDtype(table, rule))
    return error;
  if (Error error = readAction(table, rule))
    return error;
  policy.rules.push_back(std::move(rule));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Operators of the user
//===----------------------------------------------------------------------===//

Error Reader::readOp(const toml::table &table) {
  if (Error error = checkKeys(table, "[[op]]", {"name", "kind"}))
    return error;
  std::string name, kind;
  if (Error error = readText(table, "name", name))
    return error;
  if (name.empty())
    return fail(table.source().begin, "the operator has no 'name'");
  Position at = positionOf(*table.get("name"));
  if (Error error = checkOperatorName(at, name))
    return error;
  if (!StringRef(name).contains('.'))
    return fail(at, "'name' must be \"library.operator\", not '" + name + "'");
  if (lookupOpRow(name))
    return fail(at, "'" + name + "' has a kind already, '" +
                        stringifyOpKind(lookupOpRow(name)->kind) +
                        "', which other rules rest on");
  if (!opNames.insert(name).second)
    return fail(at, "'" + name + "' has a row already");
  llvm::SmallVector<StringRef> kinds;
  for (OpKind each : allOpKinds())
    if (each != OpKind::Unknown)
      kinds.push_back(stringifyOpKind(each));
  if (Error error = readWord(table, "kind", kinds, kind))
    return error;
  if (kind.empty())
    return fail(table.source().begin, "the operator '" + name +
                                          "' has no 'kind'; write one of " +
                                          llvm::join(kinds, ", "));
  policy.ops.push_back({name, *symbolizeOpKind(kind)});
  return Error::success();
}

Expected<Policy> mlir::mp::parsePolicy(StringRef text, StringRef name) {
  Policy policy;
  policy.name = name.str();
  policy.text = text.str();
  toml::parse_result result = toml::parse(toView(policy.text), policy.name);
  if (!result) {
    Position at = result.error().source().begin;
    return llvm::createStringError(llvm::errc::invalid_argument,
                                   name + ":" + Twine(at.line) + ":" +
                                       Twine(at.column) + ": " +
                                       toRef(result.error().description()));
  }
  if (Error error = Reader(policy).read(result.table()))
    return error;
  return policy;
}
