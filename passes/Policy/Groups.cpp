//===- Groups.cpp - which part of a model an operation is of --------------===//

#include "passes/Policy/Groups.h"
#include "dialect/Graph/Graph.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::mp;

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

namespace {
struct SegmentRow {
  Group group;
  llvm::GlobPattern glob;
};
} // namespace

static const std::vector<SegmentRow> &segmentRows() {
  static const auto *rows = [] {
    auto *list = new std::vector<SegmentRow>();
#define MP_GROUP_SEGMENT(ID, GLOB)                                             \
  list->push_back({Group::ID, llvm::cantFail(llvm::GlobPattern::create(GLOB))});
#include "passes/Policy/Groups.def"
    return list;
  }();
  return *rows;
}

static const std::vector<SegmentRow> &weakRows() {
  static const auto *rows = [] {
    auto *list = new std::vector<SegmentRow>();
#define MP_GROUP_WEAK(ID, GLOB)                                                \
  list->push_back({Group::ID, llvm::cantFail(llvm::GlobPattern::create(GLOB))});
#include "passes/Policy/Groups.def"
    return list;
  }();
  return *rows;
}

static const llvm::StringMap<Group> &operatorRows() {
  static const auto *rows = new llvm::StringMap<Group>{
#define MP_GROUP_OP(ID, NAME) {NAME, Group::ID},
#include "passes/Policy/Groups.def"
  };
  return *rows;
}

static std::optional<Group> groupOfKind(OpKind kind) {
  switch (kind) {
#define MP_GROUP_KIND(ID, KIND)                                                \
  case OpKind::KIND:                                                           \
    return Group::ID;
#include "passes/Policy/Groups.def"
  default:
    return std::nullopt;
  }
}

static bool choosesExperts(StringRef name) {
  static const auto *names = new llvm::StringSet<>{
#define MP_GROUP_ROUTES(NAME) NAME,
#include "passes/Policy/Groups.def"
  };
  return names->contains(name);
}

static bool addsBranch(StringRef name) {
  static const auto *names = new llvm::StringSet<>{
#define MP_GROUP_SUM(NAME) NAME,
#include "passes/Policy/Groups.def"
  };
  return names->contains(name);
}

static bool standsInBranch(StringRef name) {
  static const auto *names = new llvm::StringSet<>{
#define MP_GROUP_BRANCH(NAME) NAME,
#include "passes/Policy/Groups.def"
  };
  return names->contains(name);
}

/// The group of the innermost segment that fits one of `rows`.
static std::optional<Group> innermost(StringRef path,
                                      ArrayRef<SegmentRow> rows) {
  SmallVector<StringRef> segments;
  path.split(segments, '.');
  for (StringRef segment : llvm::reverse(segments))
    for (const SegmentRow &row : rows)
      if (row.glob.match(segment))
        return row.group;
  return std::nullopt;
}

std::optional<Group> mlir::mp::groupOfPath(StringRef path) {
  std::string lower = path.lower();
  if (std::optional<Group> group = innermost(lower, segmentRows()))
    return group;
  return innermost(lower, weakRows());
}

//===----------------------------------------------------------------------===//
// Questions about one operation
//===----------------------------------------------------------------------===//

static std::optional<OpKind> kindOf(Operation *op) {
  auto precision = dyn_cast_if_present<PrecisionOpInterface>(op);
  return precision ? std::optional(precision.getOpKind()) : std::nullopt;
}

static StringRef nameOf(Operation *op) {
  return stripOverload(frameworkCallee(op));
}

/// Conversions and views: the value goes on as it is.
static bool isTransparent(Operation *op) {
  std::optional<OpKind> kind = kindOf(op);
  return kind && (isa<CastOp, RoundOp>(op) || isViewKind(*kind) ||
                  *kind == OpKind::Movement);
}

static bool isLinear(Operation *op) {
  std::optional<OpKind> kind = kindOf(op);
  return kind && (isExternalKind(*kind) || *kind == OpKind::Norm);
}

static bool isActivation(Operation *op) {
  std::optional<OpKind> kind = kindOf(op);
  return kind == OpKind::Activation || kind == OpKind::Monotone;
}

/// True if one value goes on as it is, and nothing is put beside it.
static bool passesOneOn(Operation *op) {
  return isTransparent(op) &&
         llvm::count_if(op->getOperandTypes(), isFloatTensor) == 1;
}

/// The layer that made `value`, looking through operators that a branch may end
/// in; null if there is none within `steps`.
static Operation *layerBehind(Value value, unsigned &steps) {
  Operation *op = value.getDefiningOp();
  if (!op || steps == 0)
    return nullptr;
  --steps;
  if (isLinear(op))
    return op;
  if (!passesOneOn(op) && !standsInBranch(nameOf(op)))
    return nullptr;
  for (Value operand : op->getOperands())
    if (isFloatTensor(operand.getType()))
      if (Operation *layer = layerBehind(operand, steps))
        return layer;
  return nullptr;
}

/// A branch is short; the bound keeps all this linear.
static Operation *layerBehind(Value value) {
  unsigned steps = 16;
  return layerBehind(value, steps);
}

/// True if something else reads `value`, or what it is converted from.
static bool hasOtherReaders(Value value) {
  while (true) {
    if (!value.hasOneUse())
      return true;
    Operation *op = value.getDefiningOp();
    if (!op || !isTransparent(op) || op->getNumOperands() == 0)
      return false;
    value = op->getOperand(0);
  }
}

//===----------------------------------------------------------------------===//
// Labelling
//===----------------------------------------------------------------------===//

GroupMap::Label GroupMap::labelOf(Operation *op) const {
  auto it = groups.find(op);
  return it == groups.end() ? Label() : it->second;
}

Group GroupMap::of(Operation *op) const {
  return labelOf(op).value_or(Group::Other);
}

bool GroupMap::take(Operation *op, Group group, Label over) {
  Label label = labelOf(op);
  if (label && label != over)
    return false;
  groups[op] = group;
  return true;
}

void GroupMap::labelByTable(Operation *op) {
  std::optional<OpKind> kind = kindOf(op);
  if (!kind)
    return;
  Label label = groupOfKind(*kind);
  if (!label) {
    auto row = operatorRows().find(nameOf(op));
    if (row != operatorRows().end())
      label = row->second;
  }
  if (!label) {
    StringRef path = modulePathOf(op->getLoc());
    auto [it, isNew] = ofPath.try_emplace(path.data());
    if (isNew)
      it->second = groupOfPath(path);
    label = it->second;
  }
  if (label)
    groups[op] = *label;
}

/// x + f(x): both of the result's shape, one made by a layer. In a module of
/// another group there must also be a sign that x goes on beside the branch;
/// feed-forward modules compute polynomials of that form.
void GroupMap::labelResidual(Operation *op) {
  if (op->getNumResults() != 1 || op->getNumOperands() != 2 ||
      !addsBranch(nameOf(op)) || !isFloatTensor(op->getResult(0).getType()))
    return;
  auto shape = cast<RankedTensorType>(op->getResult(0).getType()).getShape();
  if (shape.empty())
    return;
  for (Value operand : op->getOperands())
    if (!isFloatTensor(operand.getType()) ||
        cast<RankedTensorType>(operand.getType()).getShape() != shape)
      return;
  Label label = labelOf(op);
  if (label && label != Group::Attention)
    return;
  if (label && llvm::none_of(op->getOperands(), hasOtherReaders))
    return;
  if (llvm::any_of(op->getOperands(),
                   [](Value operand) { return layerBehind(operand); }))
    groups[op] = Group::Residual;
}

void GroupMap::spreadBack(Value value, Group group, Label over) {
  SmallVector<Value> worklist{value};
  while (!worklist.empty()) {
    Operation *op = worklist.pop_back_val().getDefiningOp();
    if (!op || !kindOf(op) || !take(op, group, over) || isLinear(op))
      continue;
    for (Value operand : op->getOperands())
      if (isFloatTensor(operand.getType()))
        worklist.push_back(operand);
  }
}

/// To the next layer; what is multiplied on the way (a gate) belongs to it too.
void GroupMap::spreadForward(Value value, Group group) {
  SmallVector<Value> worklist{value};
  while (!worklist.empty())
    for (Operation *reader : worklist.pop_back_val().getUsers()) {
      bool ends = isLinear(reader);
      bool passes = isTransparent(reader) || standsInBranch(nameOf(reader));
      if ((!ends && !passes) || !take(reader, group) || ends)
        continue;
      for (Value operand : reader->getOperands())
        if (isFloatTensor(operand.getType()))
          spreadBack(operand, group);
      llvm::append_range(worklist, reader->getResults());
    }
}

/// An attention claims the projections in front of and behind it, an activation
/// between two products its feed-forward layer.
void GroupMap::labelAround(Operation *op) {
  if (kindOf(op) == OpKind::Attention) {
    for (Value operand : op->getOperands())
      if (isFloatTensor(operand.getType()))
        spreadBack(operand, Group::Attention);
    for (Value result : op->getResults())
      spreadForward(result, Group::Attention);
  }
  if (!isActivation(op) || labelOf(op) || op->getNumResults() != 1)
    return;
  Operation *layer = layerBehind(op->getOperand(0));
  if (!layer || kindOf(layer) != OpKind::Matmul)
    return;
  spreadBack(op->getResult(0), Group::FFN);
  spreadForward(op->getResult(0), Group::FFN);
}

/// The scores that experts are chosen by, up to the product that made them.
void GroupMap::labelRouting(Operation *op) {
  if (!choosesExperts(nameOf(op)))
    return;
  take(op, Group::Router, Group::FFN);
  for (Value operand : op->getOperands())
    if (isFloatTensor(operand.getType()))
      spreadBack(operand, Group::Router, Group::FFN);
}

/// The softmax in front of a loss, and its backward.
void GroupMap::labelLosses(Operation *op) {
  if (kindOf(op) != OpKind::Softmax || labelOf(op))
    return;
  auto isLoss = [&](Operation *other) {
    return other && labelOf(other) == Group::Loss;
  };
  if (llvm::any_of(op->getUsers(), isLoss) ||
      llvm::any_of(op->getOperands(),
                   [&](Value value) { return isLoss(value.getDefiningOp()); }))
    groups[op] = Group::Loss;
}

GroupMap::GroupMap(func::FuncOp func) {
  auto forEach = [&](void (GroupMap::*label)(Operation *)) {
    for (Block &block : func.getBody())
      for (Operation &op : block)
        (this->*label)(&op);
  };
  forEach(&GroupMap::labelByTable);
  forEach(&GroupMap::labelResidual);
  forEach(&GroupMap::labelLosses);
  forEach(&GroupMap::labelRouting);
  forEach(&GroupMap::labelAround);
}
