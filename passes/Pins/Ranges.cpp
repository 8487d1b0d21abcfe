//===- Ranges.cpp - measured ranges of values -----------------------------===//

#include "passes/Pins/Ranges.h"
#include "dialect/Graph/Graph.h"
#include "dialect/IR/MPOps.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SHA256.h"

#include <cmath>

using namespace mlir;
using namespace mlir::mp;
namespace json = llvm::json;

static constexpr StringLiteral kSchema = "mpopt-ranges";
static constexpr int64_t kVersion = 1;
static constexpr StringLiteral kMeasuredAttrName = "mp.measured";

double Range::headroom(FloatType type) const {
  APFloat largest = APFloat::getLargest(type.getFloatSemantics());
  bool losesInfo = false;
  largest.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven,
                  &losesInfo);
  return std::log2(largest.convertToDouble() / absmax);
}

double Range::below(int64_t exponent) const {
  int64_t less = 0;
  for (auto [e, count] : exponents)
    if (e < exponent)
      less += count;
  return nonzero ? double(less) / double(nonzero) : 0;
}

//===----------------------------------------------------------------------===//
// Rows by key
//===----------------------------------------------------------------------===//

/// No part of a key holds a line break.
static std::string textOf(const RangeKey &key) {
  return (key.module + "\n" + key.callee + "\n" + Twine(key.ordinal) +
          (key.isBackward ? "\nb\n" : "\nf\n") + Twine(key.result))
      .str();
}

const Range *Ranges::find(const RangeKey &key) const {
  auto it = rows.find(textOf(key));
  return it == rows.end() ? nullptr : &it->second;
}

bool Ranges::insert(const RangeKey &key, Range range) {
  return rows.try_emplace(textOf(key), std::move(range)).second;
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

namespace {
/// A row of the file. The key's texts are those of the parsed document.
struct Row {
  std::string module, callee, phase;
  int64_t ordinal = 0, result = 0;
  Range range;

  RangeKey key() const {
    return {module, callee, unsigned(ordinal), phase == "backward",
            unsigned(result)};
  }
};
} // namespace

static bool isShare(double value) { return value >= 0 && value <= 1; }

/// What a row says that cannot be, or "".
static StringLiteral contradictionIn(const Row &row) {
  const Range &range = row.range;
  if (row.phase != "forward" && row.phase != "backward")
    return "'phase' is neither \"forward\" nor \"backward\"";
  if (row.ordinal < 0 || row.result < 0)
    return "'ordinal' or 'result' is negative";
  if (row.ordinal > UINT32_MAX || row.result > UINT32_MAX)
    return "'ordinal' or 'result' is too large";
  if (range.elements < 0 || range.nonzero < 0 || range.infs < 0 ||
      range.nans < 0)
    return "a count is negative";
  if (!(range.absmax >= 0) || !(range.rms >= 0))
    return "'absmax' or 'rms' is negative";
  if (!isShare(range.belowNormalF16) || !isShare(range.belowSubnormalF16) ||
      !isShare(range.belowNormalBF16) || !isShare(range.belowSubnormalBF16))
    return "a share in 'below' is not between 0 and 1";
  return "";
}

static bool readShares(const json::Value &value, Range &range,
                       json::Path path) {
  json::ObjectMapper map(value, path);
  return map && map.map("float16_normal", range.belowNormalF16) &&
         map.map("float16_subnormal", range.belowSubnormalF16) &&
         map.map("bfloat16_normal", range.belowNormalBF16) &&
         map.map("bfloat16_subnormal", range.belowSubnormalBF16);
}

/// The keys of the object are numbers.
static bool readExponents(const json::Object &row, Range &range,
                          json::Path path) {
  const json::Object *exponents = row.getObject("exponents");
  if (!exponents)
    return true;
  for (const auto &[key, value] : *exponents) {
    int64_t exponent = 0;
    std::optional<int64_t> count = value.getAsInteger();
    if (StringRef(key).getAsInteger(10, exponent) || !count || *count < 0) {
      path.field("exponents").report("expected counts by exponent");
      return false;
    }
    range.exponents[exponent] = *count;
  }
  return true;
}

static bool readRow(const json::Value &value, Row &row, json::Path path) {
  Range &range = row.range;
  json::ObjectMapper map(value, path);
  if (!map || !map.map("module", row.module) || !map.map("op", row.callee) ||
      !map.map("ordinal", row.ordinal) || !map.map("phase", row.phase) ||
      !map.mapOptional("result", row.result) ||
      !map.map("elements", range.elements) ||
      !map.map("nonzero", range.nonzero) || !map.map("absmax", range.absmax) ||
      !map.map("rms", range.rms) || !map.map("inf", range.infs) ||
      !map.map("nan", range.nans) ||
      !map.mapOptional("head_logits", range.headLogits))
    return false;
  const json::Value *below = value.getAsObject()->get("below");
  if (!below) {
    path.field("below").report("missing value");
    return false;
  }
  if (!readShares(*below, range, path.field("below")) ||
      !readExponents(*value.getAsObject(), range, path))
    return false;
  StringLiteral contradiction = contradictionIn(row);
  if (contradiction.empty())
    return true;
  path.report(contradiction);
  return false;
}

static bool readRows(const json::Object &file, Ranges &ranges,
                     json::Path path) {
  const json::Array *values = file.getArray("values");
  json::Path all = path.field("values");
  if (!values) {
    all.report("expected array");
    return false;
  }
  for (auto [i, value] : llvm::enumerate(*values)) {
    Row row;
    json::Path here = all.index(i);
    if (!readRow(value, row, here))
      return false;
    if (!ranges.insert(row.key(), std::move(row.range))) {
      here.report("a second row of the same key");
      return false;
    }
  }
  return true;
}

static llvm::Error badFile(StringRef name, const Twine &what) {
  return llvm::createStringError("ranges file '" + name + "': " + what);
}

/// Says so if `file` is none of ours, or of another release.
static llvm::Error checkSchema(const json::Object &file, StringRef name) {
  std::optional<StringRef> schema = file.getString("schema");
  if (schema != StringRef(kSchema))
    return badFile(name, "'schema' is not \"" + kSchema +
                             "\"; mpopt.calibrate writes such files");
  std::optional<int64_t> version = file.getInteger("version");
  if (!version)
    return badFile(name, "'version' is missing or no integer");
  if (*version != kVersion)
    return badFile(name, "version " + Twine(*version) +
                             ", but this release reads version " +
                             Twine(kVersion) + "; calibrate again");
  return llvm::Error::success();
}

llvm::Expected<Ranges> mlir::mp::parseRanges(StringRef text, StringRef name) {
  llvm::Expected<json::Value> value = json::parse(text);
  if (!value)
    return badFile(name, llvm::toString(value.takeError()));
  const json::Object *file = value->getAsObject();
  if (!file)
    return badFile(name, "the file does not hold an object");
  if (llvm::Error error = checkSchema(*file, name))
    return error;
  Ranges ranges;
  json::Path::Root root("file");
  if (!readRows(*file, ranges, root))
    return badFile(name, llvm::toString(root.getError()));
  if (const json::Object *scale = file->getObject("loss_scale"))
    ranges.scale = scale->getNumber("scale").value_or(1);
  if (!(ranges.scale > 0))
    return badFile(name, "'loss_scale' is not positive");
  std::string canonical = llvm::formatv("{0}", *value).str();
  auto digest = llvm::SHA256::hash(
      llvm::arrayRefFromStringRef<uint8_t>(StringRef(canonical)));
  ranges.contentDigest = llvm::toHex(digest, /*LowerCase=*/true);
  return ranges;
}

llvm::Expected<Ranges> mlir::mp::loadRanges(StringRef path) {
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!file)
    return badFile(path, file.getError().message());
  return parseRanges((*file)->getBuffer(), path);
}

//===----------------------------------------------------------------------===//
// The values of a function
//===----------------------------------------------------------------------===//

/// The operand whose values `op` converts or moves, or null.
static Value movedOperand(Operation *op) {
  if (isa<CastOp>(op))
    return op->getOperand(0);
  auto precision = dyn_cast<PrecisionOpInterface>(op);
  if (!precision || !precision.isDataMovement())
    return {};
  SmallVector<unsigned> operands = precision.getValueOperands();
  return operands.size() == 1 ? op->getOperand(operands[0]) : Value();
}

/// True if `op` was not in the traced graph: a pass made it.
static bool isDerived(Operation *op) {
  return nodeOf(op->getLoc()) < 0 && stemOf(op->getLoc()) >= 0;
}

/// True if the rows of `op` are counted.
static bool isCounted(Operation *op) {
  return !frameworkCallee(op).empty() && !isDerived(op);
}

/// The key that `op` says to have; none if it says none, or nonsense.
static std::optional<RangeKey> statedKey(Operation *op) {
  auto parts = op->getAttrOfType<ArrayAttr>(kMeasuredAttrName);
  if (!parts || parts.size() != 4 || isDerived(op))
    return std::nullopt;
  auto module = dyn_cast<StringAttr>(parts[0]);
  auto callee = dyn_cast<StringAttr>(parts[1]);
  auto ordinal = dyn_cast<IntegerAttr>(parts[2]);
  auto phase = dyn_cast<StringAttr>(parts[3]);
  if (!module || !callee || !ordinal || !phase)
    return std::nullopt;
  return RangeKey{module.getValue(), callee.getValue(),
                  unsigned(ordinal.getInt()), phase.getValue() == "backward"};
}

namespace {
/// Gives each operation of a function its key.
class Keys {
public:
  explicit Keys(func::FuncOp function)
      : areStated(llvm::any_of(function.getOps(), [](Operation &op) {
          return op.hasAttr(kMeasuredAttrName);
        })) {}

  /// To be asked once for each operation, in order.
  std::optional<RangeKey> next(Operation *op) {
    if (areStated)
      return statedKey(op);
    if (!isCounted(op))
      return std::nullopt;
    RangeKey key{modulePathOf(op->getLoc()), frameworkCallee(op), 0,
                 isBackward(op)};
    key.ordinal = counts[textOf(key)]++;
    return key;
  }

private:
  bool areStated;
  llvm::StringMap<unsigned> counts;
};
} // namespace

static StringRef argText(BlockArgument argument, StringRef name) {
  auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  auto attr =
      function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), name);
  return attr ? attr.getValue() : StringRef();
}

MeasuredValues::MeasuredValues(func::FuncOp function, const Ranges &ranges) {
  if (function.isExternal())
    return;
  for (BlockArgument argument : function.getArguments())
    if (const Range *range = ranges.find(argText(argument, "mp.name"),
                                         argText(argument, "mp.role"), 0))
      known[argument] = range;
  Keys keys(function);
  for (Operation &op : function.getBody().front()) {
    std::optional<RangeKey> key = keys.next(&op);
    if (!key)
      continue;
    for (OpResult result : op.getResults()) {
      key->result = result.getResultNumber();
      if (const Range *range = ranges.find(*key))
        known[result] = range;
    }
  }
}

const Range *MeasuredValues::find(Value value) const {
  while (value) {
    if (const Range *range = known.lookup(value))
      return range;
    Operation *op = value.getDefiningOp();
    value = op ? movedOperand(op) : Value();
  }
  return nullptr;
}
