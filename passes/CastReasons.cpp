//===- CastReasons.cpp - what a conversion is for -------------------------===//

#include "passes/CastReasons.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Casts/CastPatterns.h"

using namespace mlir;
using namespace mlir::mp;

StringRef mlir::mp::stringifyCastRole(CastRole role) {
  switch (role) {
  case CastRole::Weight:
    return "weight";
  case CastRole::Gradient:
    return "gradient";
  case CastRole::Activation:
    return "activation";
  case CastRole::Index:
    return "index";
  }
  llvm_unreachable("all roles are named");
}

/// Longer chains of views than this are not followed: a report must stay linear
/// in the graph, and says "activation" of what it does not know.
static constexpr unsigned kMaxViews = 32;

static Value throughViews(Value value) {
  for (unsigned views = 0; views != kMaxViews; ++views) {
    auto op = value.getDefiningOp<PrecisionOpInterface>();
    if (!op || !op.isView() || op->getNumOperands() == 0)
      break;
    value = op->getOperand(0);
  }
  return value;
}

bool mlir::mp::isParameter(Value value) {
  auto arg = dyn_cast<BlockArgument>(throughViews(value));
  auto func =
      arg ? dyn_cast<func::FuncOp>(arg.getOwner()->getParentOp()) : nullptr;
  if (!func)
    return false;
  auto role = func.getArgAttrOfType<StringAttr>(arg.getArgNumber(),
                                                MPDialect::kRoleAttrName);
  return role && role.getValue() == "parameter";
}

/// True if the value reaches graph outputs only, through views.
static bool onlyReachesOutputs(Value value) {
  SmallVector<Value> pending = {value};
  for (unsigned views = 0; !pending.empty(); ++views) {
    Value next = pending.pop_back_val();
    if (next.use_empty() || views == kMaxViews)
      return false;
    for (Operation *user : next.getUsers()) {
      if (isa<func::ReturnOp>(user))
        continue;
      auto view = dyn_cast<PrecisionOpInterface>(user);
      if (!view || !view.isView() || view->getNumResults() != 1)
        return false;
      pending.push_back(view->getResult(0));
    }
  }
  return true;
}

CastRole mlir::mp::roleOf(CastOp cast) {
  if (!isa<FloatType>(cast.getFrom()) || !isa<FloatType>(cast.getTo()))
    return CastRole::Index;
  if (isParameter(cast.getInput()))
    return CastRole::Weight;
  if (isBackward(cast) && isWidening(cast) &&
      onlyReachesOutputs(cast.getOutput()))
    return CastRole::Gradient;
  return CastRole::Activation;
}

/// The reader that comes first in the graph: the order of uses is not kept when
/// a module is printed and read.
static Operation *earliestUser(Value value) {
  Operation *first = *value.user_begin();
  for (Operation *user : value.getUsers())
    if (user->isBeforeInBlock(first))
      first = user;
  return first;
}

/// The first operator that reads `value` through views; null if there is none.
static Operation *firstReader(Value value) {
  for (unsigned depth = 0; depth != kMaxViews && !value.use_empty(); ++depth) {
    Operation *user = earliestUser(value);
    auto view = dyn_cast<PrecisionOpInterface>(user);
    if (!view || !view.isView() || view->getNumResults() == 0)
      return user;
    value = view->getResult(0);
  }
  return nullptr;
}

static std::string nameOf(Operation *op) {
  StringRef callee = frameworkCallee(op);
  return callee.empty() ? op->getName().getStringRef().str() : callee.str();
}

static bool isFusible(Operation *op) {
  auto precision = dyn_cast_if_present<PrecisionOpInterface>(op);
  return precision &&
         (isFusibleKind(precision.getOpKind()) || isa<CastOp, RoundOp>(op));
}

/// The view before `value` that leaves elements out; null if all are there.
static Operation *shrinkingView(Value value) {
  for (unsigned views = 0; views != kMaxViews; ++views) {
    auto op = value.getDefiningOp<PrecisionOpInterface>();
    if (!op || !op.isView() || op->getNumOperands() == 0)
      return nullptr;
    auto before = staticNumElements(op->getOperand(0).getType());
    auto after = staticNumElements(value.getType());
    if (before && after && *after < *before)
      return op;
    value = op->getOperand(0);
  }
  return nullptr;
}

/// Which kernel the conversion can be part of, or why it has one of its own.
static std::string placeOf(CastOp cast, Operation *reader) {
  Operation *producer = throughViews(cast.getInput()).getDefiningOp();
  Operation *part = shrinkingView(cast.getInput());
  // Other conversions are part of some kernel themselves: name a real one.
  bool joinsProducer = isFusible(producer) && !isa<CastOp>(producer);
  if (joinsProducer && !part)
    return "; fits into the kernel of " + nameOf(producer);
  if (isFusible(reader) && !isa<CastOp>(reader))
    return "; fits into the kernel of " + nameOf(reader);
  if (joinsProducer)
    return "; stands alone: " + nameOf(part) +
           " leaves out elements that the kernel of " + nameOf(producer) +
           " would convert for nobody";
  if (isFusible(producer) || isFusible(reader))
    return "";
  std::string source = producer ? "the result of " + nameOf(producer)
                                : std::string("an input of the graph");
  return "; stands alone: it converts " + source +
         ", and no generated kernel is next to it";
}

std::string mlir::mp::reasonToKeep(CastOp cast) {
  std::string why =
      (stringifyCastOrigin(cast.getOrigin()) + " asked for " + describe(cast))
          .str();
  Operation *reader = firstReader(cast.getOutput());
  if (!reader || isa<func::ReturnOp>(reader))
    why += "; it is a graph output, whose type stays";
  else
    why += "; read by " + nameOf(reader);
  if (isNarrowing(cast) && cast.getOrigin() == CastOrigin::mpopt)
    why += "; stored in a half type within the error budget of relaxed";
  else if (isNarrowing(cast) && cast.getOrigin() == CastOrigin::user)
    why += "; a rounding that the user wrote is never dropped";
  else if (isNarrowing(cast))
    why +=
        "; contracts strict and precise keep the half value that a reader sees";
  else
    why += "; exact, changes no value";
  return why + placeOf(cast, reader);
}
