//===- LibraryCalls.cpp - calls whose type is open ------------------------===//

#include "passes/Placement/LibraryCalls.h"
#include "passes/Placement/Fusion.h"

using namespace mlir;
using namespace mlir::mp;

static SmallVector<int64_t> sizesOf(Value value) {
  SmallVector<int64_t> sizes(
      cast<RankedTensorType>(value.getType()).getShape());
  for (int64_t &size : sizes)
    if (ShapedType::isDynamic(size))
      size = kDynamicSize;
  return sizes;
}

static CallShape shapeOf(MatmulOp op) {
  SmallVector<int64_t> lhs = sizesOf(op.getLhs()), rhs = sizesOf(op.getRhs());
  CallShape shape;
  shape.k = lhs.pop_back_val();
  shape.m = lhs.pop_back_val();
  shape.n = rhs.back();
  shape.batch = lhs.empty() ? 1 : lhs.front();
  return shape;
}

/// A convolution as one product: positions x taps by taps x channels. Backward
/// makes two of them, for the input and for the weight.
static std::optional<CallShape> convolutionShape(Operation *op) {
  bool isBackward = op->getNumResults() == 3;
  if (op->getNumOperands() < 2 + unsigned(isBackward))
    return std::nullopt;
  Value output = isBackward ? op->getOperand(0) : op->getResult(0);
  Value weight = op->getOperand(isBackward ? 2 : 1);
  SmallVector<int64_t> taps = sizesOf(weight), positions = sizesOf(output);
  if (taps.size() < 3 || positions.size() != taps.size())
    return std::nullopt;
  CallShape shape;
  shape.count = isBackward ? 2 : 1;
  shape.n = std::max<int64_t>(1, taps.front());
  shape.k = estimatedElements(weight.getType()) / shape.n;
  shape.m = estimatedElements(output.getType()) / shape.n;
  return shape;
}

/// Two products forward, five backward, per head.
static std::optional<CallShape> attentionShape(Operation *op) {
  bool isBackward = op->getNumOperands() > 4;
  unsigned query = isBackward ? 1 : 0;
  if (op->getNumOperands() < query + 3)
    return std::nullopt;
  SmallVector<int64_t> queries = sizesOf(op->getOperand(query)),
                       keys = sizesOf(op->getOperand(query + 1));
  if (queries.size() != 4 || keys.size() != 4)
    return std::nullopt;
  CallShape shape;
  shape.count = isBackward ? 5 : 2;
  shape.batch = queries[0] * queries[1];
  shape.m = queries[2];
  shape.n = keys[2];
  shape.k = queries[3];
  return shape;
}

bool mlir::mp::changesWithCall(Operation *call, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !tensor.getElementType().isF32())
    return false;
  // The logarithms of attention's sums have no dimension of features.
  auto precision = dyn_cast<PrecisionOpInterface>(call);
  return !precision || precision.getOpKind() != OpKind::Attention ||
         tensor.getRank() == 4;
}

std::optional<CallShape> mlir::mp::openCallShape(Operation *op) {
  auto precision = dyn_cast<PrecisionOpInterface>(op);
  if (!precision || !isExternalKind(precision.getOpKind()))
    return std::nullopt;
  bool isOpen = false;
  for (Type type : op->getOperandTypes()) {
    if (!isFloatTensor(type))
      continue;
    if (!cast<RankedTensorType>(type).getElementType().isF32())
      return std::nullopt;
    isOpen |= changesWithCall(op, type);
  }
  if (!isOpen)
    return std::nullopt;
  if (auto matmul = dyn_cast<MatmulOp>(op))
    return shapeOf(matmul);
  switch (precision.getOpKind()) {
  case OpKind::Convolution:
    return convolutionShape(op);
  case OpKind::Attention:
    return attentionShape(op);
  default:
    return std::nullopt; // a product that mp-raise leaves alone
  }
}

CallCost mlir::mp::costOf(const CallShape &shape, const CostModel &model,
                          Type half) {
  StringRef name = half.isF16() ? "f16" : "bf16";
  auto seconds = [&](StringRef type) {
    return double(shape.count) *
           model.matmulSeconds(type, shape.batch, shape.m, shape.n, shape.k);
  };
  HalfVerdict verdict =
      model.halfPays(name, "f32", shape.batch, shape.m, shape.n, shape.k);
  return {seconds("f32"), seconds(name), verdict.pays, verdict.text};
}
