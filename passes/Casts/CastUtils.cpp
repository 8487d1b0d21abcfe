//===- CastUtils.cpp - shared by the cast patterns ------------------------===//

#include "passes/Casts/CastPatterns.h"

using namespace mlir;
using namespace mlir::mp;

static bool isBetweenFloats(CastOp cast) {
  return isa<FloatType>(cast.getFrom()) && isa<FloatType>(cast.getTo());
}

bool mlir::mp::isNarrowing(CastOp cast) {
  return isBetweenFloats(cast) && !cast.isExact();
}

bool mlir::mp::isWidening(CastOp cast) {
  return isBetweenFloats(cast) && cast.isExact() &&
         cast.getFrom() != cast.getTo();
}

static bool isValueOf(const llvm::APFloat &value, FloatType type) {
  llvm::APFloat converted = value;
  bool losesInfo = false;
  converted.convert(type.getFloatSemantics(),
                    llvm::APFloat::rmNearestTiesToEven, &losesInfo);
  return !losesInfo;
}

bool mlir::mp::hasExactFillers(Operation *op, Type elementType) {
  auto args = op->getAttrOfType<DictionaryAttr>("args");
  auto type = dyn_cast<FloatType>(elementType);
  if (!args || !type)
    return type != nullptr;
  bool exact = true;
  args.walk([&](FloatAttr filler) {
    exact &= isValueOf(filler.getValue(), type);
  });
  return exact;
}

bool mlir::mp::namesDtype(Operation *op) {
  auto args = op->getAttrOfType<DictionaryAttr>("args");
  if (!args)
    return false;
  return llvm::any_of(args, [](NamedAttribute attr) {
    return isa<TypeAttr>(attr.getValue());
  });
}

RankedTensorType mlir::mp::resultIn(Operation *op, Type elementType) {
  return withElementType(op->getResult(0), elementType);
}

std::string mlir::mp::describe(CastOp cast) {
  std::string text;
  llvm::raw_string_ostream(text) << cast.getFrom() << " to " << cast.getTo();
  return text;
}
