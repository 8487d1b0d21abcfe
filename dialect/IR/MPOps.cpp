//===- MPOps.cpp - builders, assembly and interface methods ---------------===//

#include "dialect/IR/MPOps.h"
#include "dialect/IR/UserOps.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::mp;

/// `(autocast)` for #mp.origin<autocast>.
static ParseResult parseOrigin(OpAsmParser &parser, CastOriginAttr &origin) {
  StringRef word;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLParen() || parser.parseKeyword(&word) ||
      parser.parseRParen())
    return failure();
  std::optional<CastOrigin> value = symbolizeCastOrigin(word);
  if (!value)
    return parser.emitError(loc, "unknown origin '")
           << word << "', expected user, autocast, promotion, decomposition "
           << "or mpopt";
  origin = CastOriginAttr::get(parser.getContext(), *value);
  return success();
}

static void printOrigin(OpAsmPrinter &printer, Operation *,
                        CastOriginAttr origin) {
  printer << '(' << stringifyCastOrigin(origin.getValue()) << ')';
}

#define GET_OP_CLASSES
#include "dialect/IR/MPOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Type helpers
//===----------------------------------------------------------------------===//

bool mlir::mp::isExactConversion(Type from, Type to) {
  if (from == to)
    return true;
  auto toFloat = dyn_cast<FloatType>(to);
  if (!toFloat)
    return false;
  if (auto fromFloat = dyn_cast<FloatType>(from))
    return llvm::APFloat::isRepresentableBy(fromFloat.getFloatSemantics(),
                                            toFloat.getFloatSemantics());
  // An integer of n bits fits a significand of at least n bits.
  if (auto fromInt = dyn_cast<IntegerType>(from))
    return fromInt.getWidth() <= toFloat.getFPMantissaWidth();
  return false;
}

bool mlir::mp::isHalf(Type type) { return type.isF16() || type.isBF16(); }

bool mlir::mp::isFloatTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa<FloatType>(tensor.getElementType());
}

Type mlir::mp::elementTypeOf(Value value) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  return tensor ? tensor.getElementType() : Type();
}

std::string mlir::mp::sizesText(ArrayRef<int64_t> sizes) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleave(
      sizes, stream,
      [&](int64_t size) {
        if (ShapedType::isDynamic(size))
          stream << '?';
        else
          stream << size;
      },
      "x");
  return text;
}

RankedTensorType mlir::mp::withElementType(Value value, Type elementType) {
  return cast<RankedTensorType>(value.getType()).clone(elementType);
}

std::optional<int64_t> mlir::mp::staticNumElements(Type type) {
  auto ranked = dyn_cast<RankedTensorType>(type);
  if (!ranked || !ranked.hasStaticShape())
    return std::nullopt;
  return ranked.getNumElements();
}

bool mlir::mp::isBackward(Operation *op) {
  return op->hasAttr(MPDialect::kBackwardAttrName);
}

llvm::StringRef mlir::mp::frameworkCallee(Operation *op) {
  if (auto aten = dyn_cast<AtenOp>(op))
    return aten.getCallee();
#define MP_RAISED_OP(CLASS, CALLEE, RESULTS)                                   \
  if (isa<CLASS>(op))                                                          \
    return CALLEE;
#include "dialect/IR/RaisedOps.def"
  if (auto matmul = dyn_cast<MatmulOp>(op)) {
    bool batched = matmul.getLhs().getType().getRank() == 3;
    bool wide = matmul.getLhs().getType().getElementType() !=
                matmul.getOutput().getType().getElementType();
    if (matmul.getBias())
      return batched ? (wide ? "aten.baddbmm.dtype" : "aten.baddbmm.default")
                     : (wide ? "aten.addmm.dtype" : "aten.addmm.default");
    return batched ? (wide ? "aten.bmm.dtype" : "aten.bmm.default")
                   : (wide ? "aten.mm.dtype" : "aten.mm.default");
  }
  return {};
}

SmallVector<Value> mlir::mp::frameworkOperands(Operation *op) {
  SmallVector<Value> operands(op->getOperands());
  if (auto matmul = dyn_cast<MatmulOp>(op); matmul && matmul.getBias())
    std::rotate(operands.begin(), operands.end() - 1, operands.end());
  return operands;
}

//===----------------------------------------------------------------------===//
// CastOp and RoundOp
//===----------------------------------------------------------------------===//

void CastOp::build(OpBuilder &builder, OperationState &state, Value input,
                   Type elementType, CastOrigin origin) {
  build(builder, state, withElementType(input, elementType), input,
        CastOriginAttr::get(builder.getContext(), origin));
}

/// A conversion to a type that is no float, or of another kind, is a reader
/// that can tell a rounded value from an unrounded one.
bool CastOp::observesRounding(unsigned) {
  return isa<FloatType>(getFrom()) && !isa<FloatType>(getTo());
}

bool RoundOp::observesRounding(unsigned) { return false; }

//===----------------------------------------------------------------------===//
// AtenOp
//===----------------------------------------------------------------------===//

OpKind AtenOp::getOpKind() {
  if (const OpRow *row = lookupOpRow(getCallee()))
    return row->kind;
  return userOpKind(*this);
}

void AtenOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  if (!getEffects())
    return;
  effects.emplace_back(MemoryEffects::Read::get());
  effects.emplace_back(MemoryEffects::Write::get());
}
