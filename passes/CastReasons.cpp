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

static Value throughViews(Value value) {
  while (auto op = value.getDefiningOp<PrecisionOpInterface>()) {
    if (!op.isView() || op->getNumOperands() == 0)
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

/// True if the value reaches graph outputs only, through views and widenings.
static bool onlyReachesOutputs(Value value) {
  return !value.use_empty() &&
         llvm::all_of(value.getUsers(), [](Operation *user) {
           if (isa<func::ReturnOp>(user))
             return true;
           auto view = dyn_cast<PrecisionOpInterface>(user);
           return view && view.isView() && view->getNumResults() == 1 &&
                  onlyReachesOutputs(view->getResult(0));
         });
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

/// The first operator that reads `value` through views; null for an output.
static Operation *firstReader(Value value) {
  for (unsigned depth = 0; depth != 8 && !value.use_empty(); ++depth) {
    Operation *user = *value.user_begin();
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
  return precision && (isFusibleKind(precision.getOpKind()) ||
                       isa<CastOp, RoundOp>(op));
}

std::string mlir::mp::reasonToKeep(CastOp cast) {
  std::string why = (stringifyCastOrigin(cast.getOrigin()) + " asked for " +
                     describe(cast))
                        .str();
  Operation *reader = firstReader(cast.getOutput());
  if (!reader || isa<func::ReturnOp>(reader))
    why += "; it is a graph output, whose type stays";
  else
    why += "; read by " + nameOf(reader);
  if (isNarrowing(cast) && cast.getOrigin() == CastOrigin::user)
    why += "; a rounding that the user wrote is never dropped";
  else if (isNarrowing(cast))
    why += "; a reader sees the half value";
  else
    why += "; exact, changes no value";
  Operation *producer = throughViews(cast.getInput()).getDefiningOp();
  // Other conversions are part of some kernel themselves: name a real one.
  if (isFusible(producer) && !isa<CastOp>(producer))
    why += "; inside the kernel of " + nameOf(producer);
  else if (isFusible(reader) && !isa<CastOp>(reader))
    why += "; inside the kernel of " + nameOf(reader);
  return why;
}
