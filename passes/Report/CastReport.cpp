//===- CastReport.cpp - what conversions a graph holds, and why -----------===//

#include "passes/Report/CastReport.h"
#include "dialect/Graph/Graph.h"
#include "dialect/IR/OpTable.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Policy/FunctionPolicy.h"
#include "passes/RewriteLog.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"

#include <cmath>

using namespace mlir;
using namespace mlir::mp;

//===----------------------------------------------------------------------===//
// Tallies and texts
//===----------------------------------------------------------------------===//

void Tally::add(std::optional<int64_t> castBytes) {
  ++casts;
  bytes += castBytes.value_or(0);
  dynamic += !castBytes;
}

Tally &Tally::operator+=(const Tally &other) {
  casts += other.casts;
  bytes += other.bytes;
  dynamic += other.dynamic;
  return *this;
}

bool Tally::operator==(const Tally &other) const {
  return casts == other.casts && bytes == other.bytes &&
         dynamic == other.dynamic;
}

bool Change::operator==(const Change &other) const {
  return before == other.before && after == other.after;
}

int64_t mlir::mp::elementBytes(Type type) {
  if (auto complex = dyn_cast<ComplexType>(type))
    return 2 * elementBytes(complex.getElementType());
  if (type.isIntOrFloat())
    return (type.getIntOrFloatBitWidth() + 7) / 8;
  return 8; // index
}

std::string mlir::mp::formatBytes(int64_t bytes) {
  static constexpr const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = bytes;
  unsigned unit = 0;
  for (; value >= 1024 && unit + 1 != std::size(units); ++unit)
    value /= 1024;
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::format(unit ? "%.1f " : "%.0f ", value) << units[unit];
  return text;
}

std::string mlir::mp::regionLabel(StringRef path) {
  return path.empty() ? "(model)" : path.str();
}

static std::string textOf(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

std::string mlir::mp::shapeText(RankedTensorType type) {
  if (type.getRank() == 0)
    return "scalar";
  return sizesText(type.getShape());
}

std::string mlir::mp::sourceText(Location loc) {
  auto place = loc->findInstanceOf<FileLineColLoc>();
  if (!place)
    return {};
  StringRef file = llvm::sys::path::filename(place.getFilename().getValue());
  return file.str() + ":" + std::to_string(place.getLine());
}

//===----------------------------------------------------------------------===//
// Collecting
//===----------------------------------------------------------------------===//

static CastEntry entryOf(CastOp cast) {
  CastEntry entry;
  auto type = llvm::cast<RankedTensorType>(cast.getOutput().getType());
  Location loc = cast->getLoc();
  entry.region = modulePathOf(loc).str();
  entry.from = textOf(cast.getFrom());
  entry.to = textOf(cast.getTo());
  entry.shape = shapeText(type);
  entry.origin = cast.getOrigin();
  entry.role = roleOf(cast);
  entry.isBackward = isBackward(cast);
  entry.node = stemOf(loc);
  entry.source = sourceText(loc);
  if (std::optional<int64_t> elements = staticNumElements(type))
    entry.bytes =
        *elements * (elementBytes(cast.getFrom()) + elementBytes(cast.getTo()));
  return entry;
}

/// Calls `visit` for each cast of ranked tensors.
template <typename Visit>
static void forEachCast(ModuleOp module, Visit visit) {
  module.walk([&](CastOp cast) {
    if (isa<RankedTensorType>(cast.getOutput().getType()))
      visit(cast);
  });
}

std::vector<CastEntry> mlir::mp::collectCasts(ModuleOp module) {
  std::vector<CastEntry> casts;
  forEachCast(module, [&](CastOp cast) { casts.push_back(entryOf(cast)); });
  return casts;
}

static RewriteEntry readRewrite(DictionaryAttr dict) {
  auto text = [&](StringRef key) {
    auto attr = dict.getAs<StringAttr>(key);
    return attr ? attr.getValue().str() : std::string();
  };
  RewriteEntry entry;
  entry.rule = text("rule");
  entry.contract = text("contract");
  entry.why = text("why");
  entry.region = text("module");
  entry.op = text("op");
  entry.isApplied = text("status") == "applied";
  if (auto node = dict.getAs<IntegerAttr>("node"))
    entry.node = node.getInt();
  return entry;
}

std::vector<RewriteEntry> mlir::mp::collectRewrites(ModuleOp module) {
  std::vector<RewriteEntry> rewrites;
  module.walk([&](func::FuncOp func) {
    auto record = func->getAttrOfType<ArrayAttr>(MPDialect::kRewritesAttrName);
    for (Attribute attr : record ? record.getValue() : ArrayRef<Attribute>())
      if (auto dict = dyn_cast<DictionaryAttr>(attr))
        rewrites.push_back(readRewrite(dict));
  });
  return rewrites;
}

/// Adds the conversions that `op`, in an autocast region, makes of its operands
/// to compute in the region's type.
static void countImplicit(AtenOp op, Tally &tally) {
  auto region = op->getAttrOfType<StringAttr>("mp.autocast");
  if (!region || region.getValue() == "off")
    return;
  auto elementText = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor ? textOf(tensor.getElementType()) : std::string();
  };
  if (llvm::none_of(op->getResultTypes(), [&](Type type) {
        return elementText(type) == region.getValue();
      }))
    return;
  for (Value operand : op->getOperands()) {
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    if (!type || !isa<FloatType>(type.getElementType()) ||
        elementText(type) == region.getValue())
      continue;
    std::optional<int64_t> bytes = staticNumElements(type);
    if (bytes) // every region's type has two bytes
      *bytes *= elementBytes(type.getElementType()) + 2;
    tally.add(bytes);
  }
}

/// Adds the arguments that are half copies of parameters.
static void countHalfWeights(func::FuncOp func, Tally &tally) {
  for (auto [i, type] : llvm::enumerate(func.getArgumentTypes())) {
    auto role = func.getArgAttrOfType<StringAttr>(i, MPDialect::kRoleAttrName);
    if (!role || role.getValue() != "half_weight")
      continue;
    std::optional<int64_t> count = staticNumElements(type);
    tally.add(
        count ? std::optional(*count * elementBytes(getElementTypeOrSelf(type)))
              : std::nullopt);
  }
}

static void describeGraph(ModuleOp before, CastReport &report) {
  before.walk([&](AtenOp op) {
    if (op.getOpKind() == OpKind::Unknown)
      ++report.unknownOps[op.getCallee().str()];
    countImplicit(op, report.implicit);
  });
  before.walk([&](func::FuncOp func) {
    countHalfWeights(func, report.halfWeights);
    for (Operation &op : func.getBody().getOps())
      report.operations += !op.hasTrait<OpTrait::IsTerminator>();
    if (auto target =
            func->getAttrOfType<StringAttr>(MPDialect::kTargetAttrName))
      report.target = target.getValue().str();
  });
}

//===----------------------------------------------------------------------===//
// The report
//===----------------------------------------------------------------------===//

namespace {
/// Sorts casts and rewrites into the parts of a report.
class ReportBuilder {
public:
  explicit ReportBuilder(CastReport &report) : report(report) {
    for (auto [i, region] : llvm::enumerate(report.regions))
      indices[region.path] = i;
  }

  void add(const CastEntry &cast, Tally Change::*side) {
    for (Change *change :
         {&report.total, &report.roles[cast.role],
          &(cast.isBackward ? report.backward : report.forward),
          &report.origins[stringifyCastOrigin(cast.origin).str()],
          &report.conversions[cast.conversion()], &region(cast.region).total})
      (change->*side).add(cast.bytes);
  }

  void add(const RewriteEntry &rewrite) {
    ++report.rules[rewrite.rule];
    region(rewrite.region).applied.push_back(rewrite);
  }

  void add(PinEntry pin) {
    ++report.pins[pin.rule];
    region(pin.region).pins.push_back(std::move(pin));
  }

  RegionReport &region(const std::string &path) {
    auto [it, isNew] = indices.try_emplace(path, report.regions.size());
    if (isNew) {
      report.regions.emplace_back();
      report.regions.back().path = path;
    }
    return report.regions[it->second];
  }

private:
  CastReport &report;
  std::map<std::string, size_t> indices;
};
} // namespace

/// Variances add up; the error is their root.
static std::optional<ErrorGrowth> errorGrowthOf(func::FuncOp func) {
  auto entry =
      func->getAttrOfType<DictionaryAttr>(MPDialect::kPlacementAttrName);
  auto number = [&](StringRef name) -> std::optional<double> {
    auto value = entry ? entry.getAs<FloatAttr>(name) : FloatAttr();
    return value ? std::optional(value.getValueAsDouble()) : std::nullopt;
  };
  std::optional<double> added = number("noise"),
                        traced = number("noise_traced"),
                        epsilon = number("epsilon");
  if (!added || !traced || !epsilon)
    return std::nullopt;
  double growth = *added == 0 ? 0 : std::sqrt(1 + *added / *traced) - 1;
  return ErrorGrowth{growth, *epsilon};
}

CastReport mlir::mp::makeReport(ModuleOp before, ModuleOp after) {
  CastReport report;
  ReportBuilder builder(report);
  for (CastRole role : kCastRoles)
    report.roles[role] = {};
  describeGraph(before, report);
  for (const CastEntry &cast : collectCasts(before))
    builder.add(cast, &Change::before);

  after.walk([&](func::FuncOp func) {
    if (!report.errorGrowth)
      report.errorGrowth = errorGrowthOf(func);
    if (report.policy.empty())
      report.policy = policyLabel(func);
  });
  std::map<int64_t, std::string> reasons;
  for (const RewriteEntry &rewrite : collectRewrites(after)) {
    if (rewrite.isApplied)
      builder.add(rewrite);
    else if (rewrite.op == CastOp::getOperationName())
      reasons.try_emplace(rewrite.node, rewrite.why);
    else if (rewrite.rule == ruleName(Rule::UnmatchedPolicyRule))
      report.policyNotes.push_back(rewrite.why);
  }
  forEachCast(after, [&](CastOp cast) {
    CastEntry entry = entryOf(cast);
    builder.add(entry, &Change::after);
    auto reason = reasons.find(entry.node);
    entry.reason = reason == reasons.end() || entry.node < 0
                       ? reasonToKeep(cast)
                       : reason->second;
    builder.region(entry.region).left.push_back(std::move(entry));
  });
  for (PinEntry &pin : collectPins(after))
    builder.add(std::move(pin));
  return report;
}

void mlir::mp::addPlacement(CastReport &report, PlacementReport placement) {
  ReportBuilder builder(report);
  for (StoredEntry &entry : placement.stored)
    builder.region(entry.region).stored.push_back(std::move(entry));
  placement.stored.clear();
  report.placements.push_back(std::move(placement));
}
