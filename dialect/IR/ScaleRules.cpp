//===- ScaleRules.cpp - lookup of scale rules -----------------------------===//

#include "dialect/IR/ScaleRules.h"
#include "dialect/IR/MPOps.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace mlir::mp;

static std::optional<ScaleRule> lookupRow(StringRef callee) {
  static const llvm::StringMap<ScaleRule> rows = {
#define MP_SCALE_ROW(NAME, RULE) {NAME, ScaleRule::RULE},
#include "dialect/IR/ScaleRules.def"
  };
  auto it = rows.find(stripOverload(callee));
  return it == rows.end() ? std::nullopt : std::optional(it->second);
}

static ScaleRule ruleOfKind(OpKind kind) {
  switch (kind) {
  case OpKind::View:
  case OpKind::Reshape:
  case OpKind::Movement:
  case OpKind::Gather:
  case OpKind::Sign:
  case OpKind::Monotone:
  case OpKind::Reduction:
  case OpKind::Scatter:
  case OpKind::Compare:
  case OpKind::Index: // of topk, max and the like, which return values as well
    return ScaleRule::Same;
  case OpKind::Matmul:
    return ScaleRule::Product;
  case OpKind::Convolution:
    return ScaleRule::ProductPlusBias;
  case OpKind::Pointwise:
  case OpKind::Norm:
  case OpKind::Softmax:
  case OpKind::Activation:
  case OpKind::Loss:
  case OpKind::Attention:
  case OpKind::Rounding:
    return ScaleRule::None;
  default:
    return ScaleRule::Unknown;
  }
}

/// True if `op` makes zeros: zeros, zeros_like, full of 0.
static bool makesZeros(Operation *op, StringRef callee) {
  if (stripOverload(callee).starts_with("aten.zeros"))
    return true;
  auto args = op->getAttrOfType<DictionaryAttr>("args");
  if (!args)
    return false;
  Attribute value = args.get("fill_value");
  if (auto number = dyn_cast_if_present<FloatAttr>(value))
    return number.getValue().isZero();
  auto number = dyn_cast_if_present<IntegerAttr>(value);
  return number && number.getValue().isZero();
}

ScaleRule mlir::mp::scaleRuleOf(Operation *op) {
  if (isa<CastOp, RoundOp, MaterializeOp>(op))
    return ScaleRule::Same;
  auto precision = dyn_cast<PrecisionOpInterface>(op);
  StringRef callee = frameworkCallee(op);
  if (callee.empty() || !precision)
    return ScaleRule::Unknown;
  if (std::optional<ScaleRule> row = lookupRow(callee))
    return *row;
  OpKind kind = precision.getOpKind();
  if (kind == OpKind::Creation)
    return makesZeros(op, callee) ? ScaleRule::Zero : ScaleRule::None;
  // The framework names the gradient of an operator so, and hands it the
  // gradient of the result first.
  bool isKnown = kind != OpKind::Unknown && kind != OpKind::Effect;
  if (isKnown && stripOverload(callee).contains("_backward"))
    return ScaleRule::Carried;
  return ruleOfKind(kind);
}
