//===- Load.cpp - cost models from JSON -----------------------------------===//

#include "dialect/IR/Suggest.h"
#include "passes/CostModel/CostModel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

#include <cmath>

using namespace mlir::mp;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;
namespace json = llvm::json;

/// The version of the file's form that this program reads and writes.
static constexpr int64_t kSchema = 1;

static const StringRef kTypes[] = {"f32", "tf32", "bf16", "f16", "fp8"};

namespace {
/// The first thing that is wrong with a file.
struct Fault {
  StringRef file;
  std::string text;

  void say(const Twine &what) {
    if (text.empty())
      text = (file + ": " + what).str();
  }
};

/// One object of the file and where it is, such as "types.bf16". A key that is
/// missing or wrong is noted as the fault and read as if it were fine.
class Table {
public:
  Table(const json::Object *object, std::string where, Fault &fault)
      : object(object ? *object : none()), where(std::move(where)),
        fault(fault) {}

  Table table(StringRef key) {
    const json::Value *value = find(key);
    const json::Object *child = value ? value->getAsObject() : nullptr;
    if (!child)
      bad(key, "an object");
    return Table(child, name(key), fault);
  }

  bool has(StringRef key) const { return object.get(key); }

  /// A positive, finite number.
  double number(StringRef key) {
    const json::Value *value = find(key);
    std::optional<double> number = value ? value->getAsNumber() : std::nullopt;
    if (number && *number > 0 && std::isfinite(*number))
      return *number;
    bad(key, "a positive number");
    return 1;
  }
  double number(StringRef key, double otherwise) {
    return has(key) ? number(key) : otherwise;
  }

  /// An integer from 1 to a million.
  int64_t count(StringRef key, int64_t otherwise) {
    if (!has(key))
      return otherwise;
    return checkedCount(find(key), key);
  }

  std::string text(StringRef key) {
    const json::Value *value = find(key);
    std::optional<StringRef> text = value ? value->getAsString() : std::nullopt;
    if (text && !text->empty())
      return text->str();
    bad(key, "a text");
    return "?";
  }

  const json::Array &list(StringRef key) {
    static const json::Array empty;
    const json::Value *value = find(key);
    const json::Array *array = value ? value->getAsArray() : nullptr;
    if (array)
      return *array;
    bad(key, "a list");
    return empty;
  }

  std::array<int64_t, 3> triple(StringRef key) {
    const json::Array &items = list(key);
    if (items.size() != 3)
      bad(key, "a list of three counts");
    std::array<int64_t, 3> result{1, 1, 1};
    for (size_t i = 0; i < 3 && i < items.size(); ++i)
      result[i] = checkedCount(&items[i], key);
    return result;
  }

  /// The keys in the order of their names, which is that of no hash table.
  llvm::SmallVector<StringRef> keys() const {
    llvm::SmallVector<StringRef> result;
    for (const auto &entry : object)
      result.push_back(entry.first);
    llvm::sort(result);
    return result;
  }

  /// Notes a key that is none of `known`.
  void onlyHas(llvm::ArrayRef<StringRef> known) {
    for (StringRef key : keys())
      if (!llvm::is_contained(known, key))
        fault.say("unknown key '" + name(key) + "'" + suggest(key, known));
  }

  void bad(StringRef key, const Twine &wanted) {
    fault.say("key '" + name(key) + "' must be " + wanted);
  }

private:
  static const json::Object &none() {
    static const json::Object empty;
    return empty;
  }

  std::string name(StringRef key) const {
    return where.empty() ? key.str() : where + "." + key.str();
  }

  const json::Value *find(StringRef key) {
    const json::Value *value = object.get(key);
    if (!value)
      fault.say("key '" + name(key) + "' is missing");
    return value;
  }

  int64_t checkedCount(const json::Value *value, StringRef key) {
    std::optional<int64_t> number =
        value ? value->getAsInteger() : std::nullopt;
    if (number && *number >= 1 && *number <= 1'000'000)
      return *number;
    bad(key, "a count from 1 to a million");
    return 1;
  }

  const json::Object &object;
  std::string where;
  Fault &fault;
};
} // namespace

/// Where one item of a list is: "classes[2]".
static Table itemOf(StringRef list, size_t index, const json::Value &value,
                    Fault &fault) {
  std::string where = (list + "[" + Twine(index) + "]").str();
  const json::Object *object = value.getAsObject();
  if (!object)
    fault.say("key '" + where + "' must be an object");
  return Table(object, where, fault);
}

static ShapeClass readClass(Table table) {
  table.onlyHas({"name", "least", "flops", "batch"});
  return {table.text("name"), table.number("least", ShapeClass::kNoLimit),
          table.number("flops", ShapeClass::kNoLimit), table.count("batch", 1)};
}

static void readClasses(Table &root, CostModel &model, Fault &fault) {
  for (auto [index, value] : llvm::enumerate(root.list("classes"))) {
    ShapeClass shape = readClass(itemOf("classes", index, value, fault));
    if (llvm::any_of(model.classes, [&](const ShapeClass &other) {
          return other.name == shape.name;
        }))
      fault.say("two classes are called '" + shape.name + "'");
    model.classes.push_back(std::move(shape));
  }
  auto isCatchAll = [](const ShapeClass &shape) {
    return shape.least == ShapeClass::kNoLimit &&
           shape.flops == ShapeClass::kNoLimit && shape.batch == 1;
  };
  if (model.classes.empty() || !isCatchAll(model.classes.back()))
    fault.say("the last of 'classes' must have no limits");
}

static MatmulRates readType(Table table, StringRef type,
                            const CostModel &model) {
  table.onlyHas({"launch", "multiple", "misaligned", "tile", "rates"});
  MatmulRates rates;
  rates.type = type.str();
  rates.launch = table.number("launch", model.launch);
  rates.multiple = table.count("multiple", 1);
  rates.misaligned = table.number("misaligned", 1);
  if (rates.misaligned > 1)
    table.bad("misaligned", "at most 1");
  if (table.has("tile"))
    rates.tile = table.triple("tile");
  Table row = table.table("rates");
  llvm::SmallVector<StringRef> names;
  for (const ShapeClass &shape : model.classes)
    names.push_back(shape.name);
  row.onlyHas(names);
  for (StringRef name : names)
    rates.rates.push_back(row.number(name));
  return rates;
}

static void readTypes(Table &root, CostModel &model) {
  Table types = root.table("types");
  types.onlyHas(kTypes);
  // Every comparison is with it.
  if (!types.has("f32"))
    types.bad("f32", "there");
  for (StringRef type : kTypes)
    if (types.has(type))
      model.types.push_back(readType(types.table(type), type, model));
}

static void readCasts(Table casts, CostModel &model, Fault &fault) {
  for (StringRef key : casts.keys()) {
    auto [from, to] = key.split('-');
    if (!llvm::is_contained(kTypes, from) || !llvm::is_contained(kTypes, to))
      fault.say("key 'casts." + key +
                "' must name two types, such as 'f32-bf16'");
    model.casts[key] = casts.number(key);
  }
}

static void readCaches(Table &root, CostModel &model, Fault &fault) {
  for (auto [index, value] : llvm::enumerate(root.list("caches"))) {
    Table table = itemOf("caches", index, value, fault);
    table.onlyHas({"bytes", "bandwidth"});
    Cache cache{table.number("bytes"), table.number("bandwidth")};
    if (cache.bandwidth < model.bandwidth)
      table.bad("bandwidth", "at least that of memory");
    if (!model.caches.empty() &&
        (cache.bytes <= model.caches.back().bytes ||
         cache.bandwidth > model.caches.back().bandwidth))
      fault.say("'caches' must get larger and slower");
    model.caches.push_back(cache);
  }
}

static void readModel(Table root, CostModel &model, Fault &fault) {
  root.onlyHas({"schema", "name", "device", "source", "bandwidth", "launch",
                "caches", "casts", "classes", "types"});
  model.name = root.text("name");
  model.device = root.text("device");
  if (model.device != "cpu" && model.device != "cuda")
    root.bad("device", "'cpu' or 'cuda'");
  Table source = root.table("source");
  for (StringRef key : source.keys())
    source.text(key);
  model.bandwidth = root.number("bandwidth");
  model.launch = root.number("launch");
  if (root.has("caches"))
    readCaches(root, model, fault);
  readClasses(root, model, fault);
  readTypes(root, model);
  if (root.has("casts"))
    readCasts(root.table("casts"), model, fault);
}

Expected<CostModel> mlir::mp::parseCostModel(StringRef text, StringRef file) {
  Expected<json::Value> value = json::parse(text);
  if (!value)
    return llvm::createStringError(
        file + ": no JSON: " + llvm::toString(value.takeError()));
  const json::Object *root = value->getAsObject();
  std::optional<int64_t> schema = root ? root->getInteger("schema") : 0;
  if (!schema || *schema == 0)
    return llvm::createStringError(
        file + ": is no cost model: it has no number under the key 'schema'");
  if (*schema != kSchema)
    return llvm::createStringError(
        file + ": key 'schema' is " + Twine(*schema) + ", this program reads " +
        Twine(kSchema) + "; write the file again with 'mpopt calibrate'");
  CostModel model;
  Fault fault{file, ""};
  readModel(Table(root, "", fault), model, fault);
  if (!fault.text.empty())
    return llvm::createStringError(fault.text);
  return model;
}

/// True if `word` is meant as a file rather than as a name.
static bool looksLikePath(StringRef word) {
  return word.contains('/') || word.ends_with(".json");
}

Expected<CostModel> mlir::mp::loadCostModel(StringRef nameOrPath) {
  if (std::optional<StringRef> text = builtinCostModelText(nameOrPath))
    return parseCostModel(*text, nameOrPath);
  auto buffer = llvm::MemoryBuffer::getFile(nameOrPath, /*IsText=*/true);
  if (buffer)
    return parseCostModel((*buffer)->getBuffer(), nameOrPath);
  if (looksLikePath(nameOrPath))
    return llvm::createStringError(
        nameOrPath + ": cannot read: " + buffer.getError().message());
  std::string hint = suggest(nameOrPath, builtinCostModels());
  if (hint.empty())
    hint = "; built in: " + llvm::join(builtinCostModels(), ", ");
  return llvm::createStringError("no cost model '" + nameOrPath +
                                 "' is built in, and no file has that name" +
                                 hint);
}
