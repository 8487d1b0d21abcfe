//===- MovementEvaluators.cpp - operators that copy elements --------------===//

#include "codegen/Reference/Evaluators.h"

using namespace mlir;
using namespace mlir::mp::reference;

/// Stores element `j` of `from` converted to the type of `to`, as the implicit
/// promotion of cat and where does.
static void convertInto(Tensor &to, int64_t i, const Tensor &from, int64_t j) {
  if (from.element == to.element)
    to.copy(i, from, j);
  else if (from.isFloat())
    to.set(i, from.floats[j]);
  else
    to.setInt(i, from.ints[j]);
}

/// The tensors of the list one after the other along `dim`.
static std::vector<Tensor> evaluateCat(Call &call) {
  if (!call.require(call.numOperands() > 0, "concatenates nothing"))
    return {};
  const Tensor &first = call.operand(0);
  int64_t dim = call.dim("dim", first.rank(), 0);
  if (!call.require(first.rank() > 0, "concatenates scalars"))
    return {};
  Shape shape = first.shape;
  shape[dim] = 0;
  for (unsigned k = 0; k != call.numOperands(); ++k) {
    Shape other = call.operand(k).shape;
    if (!call.require(other.size() == shape.size(), "ranks differ"))
      return {};
    shape[dim] += other[dim];
    other[dim] = shape[dim];
    call.require(other == shape, "sizes differ beside the dimension");
  }
  if (call.failed())
    return {};
  Tensor result(call.resultType(), shape);
  int64_t start = 0;
  for (unsigned k = 0; k != call.numOperands(); ++k) {
    const Tensor &part = call.operand(k);
    forEachIndex(part.shape, [&](ArrayRef<int64_t> index, int64_t i) {
      Shape target(index.begin(), index.end());
      target[dim] += start;
      int64_t offset = 0;
      for (auto [size, position] : llvm::zip(shape, target))
        offset = offset * size + position;
      convertInto(result, offset, part, i);
    });
    start += part.shape[dim];
  }
  return one(std::move(result));
}

/// `pad` names (before, after) pairs from the last dimension on; negative ones
/// crop.
static std::vector<Tensor> evaluatePad(Call &call) {
  const Tensor &input = call.operand(0);
  Shape pad = call.integers("pad");
  double value = call.number("value", 0);
  if (!call.require(pad.size() % 2 == 0 &&
                        int64_t(pad.size()) <= 2 * input.rank(),
                    "pads more dimensions than there are"))
    return {};
  Shape shape = input.shape, before(shape.size(), 0);
  for (size_t i = 0; i != pad.size() / 2; ++i) {
    size_t dim = shape.size() - 1 - i;
    before[dim] = pad[2 * i];
    shape[dim] += pad[2 * i] + pad[2 * i + 1];
    call.require(shape[dim] >= 0, "crops more than there is");
  }
  if (call.failed())
    return {};
  Tensor result(input.element, shape);
  forEachIndex(shape, [&](ArrayRef<int64_t> index, int64_t i) {
    Shape source(index.begin(), index.end());
    bool inside = true;
    for (size_t d = 0; d != source.size(); ++d) {
      source[d] -= before[d];
      inside &= source[d] >= 0 && source[d] < input.shape[d];
    }
    if (inside)
      result.copy(i, input, broadcastOffset(input.shape, source));
    else
      result.set(i, value);
  });
  return one(std::move(result));
}

/// where(condition, self, other); a scalar stands for one or both.
static std::vector<Tensor> evaluateWhere(Call &call) {
  const Tensor &condition = call.operand(0);
  auto scalar = [&](StringRef name) {
    Tensor value(call.resultType(), {});
    value.set(0, call.number(name));
    return value;
  };
  unsigned next = 1;
  Tensor self = call.has("self") ? scalar("self") : call.operand(next++);
  Tensor other = call.has("other") ? scalar("other") : call.operand(next++);
  if (!call.require(!condition.isFloat(), "the condition is a float") ||
      call.failed())
    return {};
  Shape shape = broadcastShapes(call, condition.shape,
                                broadcastShapes(call, self.shape, other.shape));
  if (call.failed())
    return {};
  Tensor result(call.resultType(), shape);
  forEachIndex(shape, [&](ArrayRef<int64_t> index, int64_t i) {
    const Tensor &from =
        condition.ints[broadcastOffset(condition.shape, index)] ? self : other;
    convertInto(result, i, from, broadcastOffset(from.shape, index));
  });
  return one(std::move(result));
}

static std::vector<Tensor> evaluateMaskedFill(Call &call) {
  const Tensor &input = call.operand(0), &mask = call.operand(1);
  const Tensor *tensor = call.tensor("value", 2);
  Tensor value(input.element, {});
  if (tensor && call.require(tensor->numElements() == 1, "fills by a tensor"))
    convertInto(value, 0, *tensor, 0);
  else if (!tensor)
    value.set(0, call.number("value"));
  Shape shape = broadcastShapes(call, input.shape, mask.shape);
  call.require(!mask.isFloat(), "the mask is a float");
  if (call.failed())
    return {};
  Tensor result(input.element, shape);
  forEachIndex(shape, [&](ArrayRef<int64_t> index, int64_t i) {
    bool masked = mask.ints[broadcastOffset(mask.shape, index)];
    result.copy(i, masked ? value : input,
                masked ? 0 : broadcastOffset(input.shape, index));
  });
  return one(std::move(result));
}

/// A position in a dimension of `size`, counted from the end when negative.
static int64_t checkedPosition(Call &call, int64_t position, int64_t size) {
  position += position < 0 ? size : 0;
  return call.require(position >= 0 && position < size,
                      "an index is outside of the dimension")
             ? position
             : 0;
}

static std::vector<Tensor> evaluateIndexSelect(Call &call) {
  const Tensor &input = call.operand(0), &index = call.operand(1);
  int64_t dim = call.dim("dim", input.rank());
  if (!call.require(input.rank() > 0 && index.rank() <= 1 && !index.isFloat(),
                    "needs a vector of integers") ||
      call.failed())
    return {};
  Shape shape = input.shape;
  shape[dim] = index.numElements();
  if (!call.require(input.numElements() || !numElements(shape), "is empty"))
    return {};
  Tensor result(input.element, shape);
  forEachIndex(shape, [&](ArrayRef<int64_t> position, int64_t i) {
    Shape source(position.begin(), position.end());
    source[dim] =
        checkedPosition(call, index.ints[position[dim]], input.shape[dim]);
    result.copy(i, input, broadcastOffset(input.shape, source));
  });
  return one(std::move(result));
}

static std::vector<Tensor> evaluateGather(Call &call) {
  const Tensor &input = call.operand(0), &index = call.operand(1);
  int64_t dim = call.dim("dim", input.rank());
  if (!call.require(input.rank() > 0 && index.rank() == input.rank() &&
                        !index.isFloat(),
                    "needs indices of the input's rank"))
    return {};
  for (int64_t d = 0; d != input.rank(); ++d)
    call.require(d == dim || index.shape[d] <= input.shape[d],
                 "indices reach beyond the input");
  if (call.failed())
    return {};
  Tensor result(input.element, index.shape);
  forEachIndex(index.shape, [&](ArrayRef<int64_t> position, int64_t i) {
    Shape source(position.begin(), position.end());
    source[dim] = checkedPosition(call, index.ints[i], input.shape[dim]);
    int64_t offset = 0; // no broadcasting: a size of 1 is no exception
    for (auto [size, p] : llvm::zip(input.shape, source))
      offset = offset * size + p;
    result.copy(i, input, offset);
  });
  return one(std::move(result));
}

/// Rows of `weight`, one for each index.
static std::vector<Tensor> evaluateEmbedding(Call &call) {
  const Tensor &weight = call.operand(0), &indices = call.operand(1);
  if (!call.require(weight.rank() == 2 && !indices.isFloat(),
                    "needs a matrix and integer indices"))
    return {};
  int64_t width = weight.shape[1];
  Shape shape = indices.shape;
  shape.push_back(width);
  Tensor result(weight.element, shape);
  for (int64_t row = 0, end = indices.numElements(); row != end; ++row) {
    int64_t position =
        checkedPosition(call, indices.ints[row], weight.shape[0]);
    if (call.failed())
      return {};
    for (int64_t i = 0; i != width; ++i)
      result.copy(row * width + i, weight, position * width + i);
  }
  return one(std::move(result));
}

/// full: every element is `fill_value`.
static std::vector<Tensor> evaluateFull(Call &call) {
  Tensor result(call.resultType(), call.integers("size"));
  double value = call.number("fill_value");
  for (int64_t i = 0, end = result.numElements(); i < end; ++i)
    result.set(i, value);
  return one(std::move(result));
}

void mlir::mp::reference::addMovementEvaluators(EvaluatorTable &table) {
  table["aten.cat"] = evaluateCat;
  table["aten.constant_pad_nd"] = evaluatePad;
  table["aten.where"] = evaluateWhere;
  table["aten.masked_fill"] = evaluateMaskedFill;
  table["aten.index_select"] = evaluateIndexSelect;
  table["aten.gather"] = evaluateGather;
  table["aten.embedding"] = evaluateEmbedding;
  table["aten.full"] = evaluateFull;
}
