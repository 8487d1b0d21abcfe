//===- ViewEvaluators.cpp - operators that rename elements ----------------===//
//
// Values have no layout here, so a view is a copy in another order: each result
// element names the one source element that it is.
//
//===----------------------------------------------------------------------===//

#include "codegen/Reference/Evaluators.h"

using namespace mlir;
using namespace mlir::mp::reference;

/// The tensor of `shape` whose element at an index is `source(index)` of input.
static Tensor
gatherFrom(const Tensor &input, ArrayRef<int64_t> shape,
           llvm::function_ref<int64_t(ArrayRef<int64_t>)> source) {
  Tensor result(input.element, shape);
  forEachIndex(shape, [&](ArrayRef<int64_t> index, int64_t i) {
    result.copy(i, input, source(index));
  });
  return result;
}

/// The same elements in the same order.
static std::vector<Tensor> reshaped(Call &call, ArrayRef<int64_t> shape) {
  Tensor result = call.operand(0);
  if (!call.require(numElements(shape) == result.numElements(),
                    "the new shape has another number of elements"))
    return {};
  result.shape.assign(shape.begin(), shape.end());
  return one(std::move(result));
}

static std::vector<Tensor> evaluateAlias(Call &call) {
  return one(call.operand(0));
}

/// One size may be -1: whatever is left.
static std::vector<Tensor> evaluateView(Call &call) {
  Shape shape = call.integers(call.has("shape") ? "shape" : "size");
  int64_t known = 1, unknown = -1;
  for (auto [i, size] : llvm::enumerate(shape)) {
    if (size == -1)
      unknown = i;
    else
      known *= size;
  }
  if (unknown >= 0 && call.require(known != 0, "cannot infer a size"))
    shape[unknown] = call.operand(0).numElements() / known;
  return reshaped(call, shape);
}

static std::vector<Tensor> evaluateUnsqueeze(Call &call) {
  Shape shape = call.operand(0).shape;
  int64_t dim = call.dim("dim", call.operand(0).rank() + 1);
  if (call.failed())
    return {};
  shape.insert(shape.begin() + dim, 1);
  return reshaped(call, shape);
}

/// Drops dimensions of size 1: those named, else all.
static std::vector<Tensor> evaluateSqueeze(Call &call) {
  const Tensor &input = call.operand(0);
  Shape dims = call.dims("dim", input.rank());
  Shape shape;
  for (auto [i, size] : llvm::enumerate(input.shape))
    if (size != 1 || !llvm::is_contained(dims, int64_t(i)))
      shape.push_back(size);
  return reshaped(call, shape);
}

/// Result dimension d is input dimension order[d].
static std::vector<Tensor> permuted(Call &call, ArrayRef<int64_t> order) {
  const Tensor &input = call.operand(0);
  if (!call.require(int64_t(order.size()) == input.rank(),
                    "does not permute all dimensions"))
    return {};
  Shape shape;
  for (int64_t dim : order)
    shape.push_back(input.shape[dim]);
  return one(gatherFrom(input, shape, [&](ArrayRef<int64_t> index) {
    Shape source(order.size());
    for (auto [d, dim] : llvm::enumerate(order))
      source[dim] = index[d];
    return broadcastOffset(input.shape, source);
  }));
}

static std::vector<Tensor> evaluatePermute(Call &call) {
  int64_t rank = call.operand(0).rank();
  Shape order;
  for (int64_t dim : call.integers("dims"))
    order.push_back(call.wrapDim(dim, rank));
  Shape sorted = order;
  llvm::sort(sorted);
  for (auto [i, dim] : llvm::enumerate(sorted))
    call.require(dim == int64_t(i), "names a dimension twice");
  return call.failed() ? std::vector<Tensor>() : permuted(call, order);
}

static std::vector<Tensor> transposed(Call &call, int64_t a, int64_t b) {
  Shape order;
  for (int64_t i = 0, end = call.operand(0).rank(); i != end; ++i)
    order.push_back(i == a ? b : i == b ? a : i);
  return call.failed() ? std::vector<Tensor>() : permuted(call, order);
}

static std::vector<Tensor> evaluateTranspose(Call &call) {
  int64_t rank = call.operand(0).rank();
  return transposed(call, call.dim("dim0", rank), call.dim("dim1", rank));
}

static std::vector<Tensor> evaluateT(Call &call) {
  call.require(call.operand(0).rank() <= 2, "t needs a rank of at most 2");
  return transposed(call, 0, std::max<int64_t>(call.operand(0).rank() - 1, 0));
}

/// A size of -1 keeps the dimension.
static std::vector<Tensor> evaluateExpand(Call &call) {
  const Tensor &input = call.operand(0);
  Shape shape = call.integers("size");
  int64_t added = int64_t(shape.size()) - input.rank();
  if (!call.require(added >= 0, "expands to fewer dimensions"))
    return {};
  for (auto [i, size] : llvm::enumerate(input.shape)) {
    int64_t &target = shape[added + i];
    if (target == -1)
      target = size;
    call.require(size == 1 || size == target, "expands a size other than 1");
  }
  if (call.failed())
    return {};
  return one(gatherFrom(input, shape, [&](ArrayRef<int64_t> index) {
    return broadcastOffset(input.shape, index);
  }));
}

/// Every `step`-th position of [start, end), both clamped to the size.
static std::vector<Tensor> evaluateSlice(Call &call) {
  const Tensor &input = call.operand(0);
  int64_t dim = call.dim("dim", input.rank(), 0);
  int64_t step = call.integer("step", 1);
  if (!call.require(input.rank() > 0, "slices a scalar") ||
      !call.require(step > 0, "slices by a step that is not positive"))
    return {};
  int64_t size = input.shape[dim];
  auto clampTo = [&](int64_t position) {
    return std::clamp<int64_t>(position < 0 ? position + size : position, 0,
                               size);
  };
  int64_t start = clampTo(call.integer("start", 0));
  int64_t end = std::max(start, clampTo(call.integer("end", INT64_MAX)));
  Shape shape = input.shape;
  shape[dim] = (end - start + step - 1) / step;
  if (call.failed())
    return {};
  return one(gatherFrom(input, shape, [&](ArrayRef<int64_t> index) {
    Shape source(index.begin(), index.end());
    source[dim] = start + index[dim] * step;
    return broadcastOffset(input.shape, source);
  }));
}

static std::vector<Tensor> evaluateSelect(Call &call) {
  const Tensor &input = call.operand(0);
  int64_t dim = call.dim("dim", input.rank());
  if (!call.require(input.rank() > 0, "selects from a scalar"))
    return {};
  int64_t position = call.integer("index");
  position += position < 0 ? input.shape[dim] : 0;
  if (!call.require(position >= 0 && position < input.shape[dim],
                    "selects outside of the dimension") ||
      call.failed())
    return {};
  Shape shape = input.shape;
  shape.erase(shape.begin() + dim);
  return one(gatherFrom(input, shape, [&](ArrayRef<int64_t> index) {
    Shape source(index.begin(), index.end());
    source.insert(source.begin() + dim, position);
    return broadcastOffset(input.shape, source);
  }));
}

static std::vector<Tensor> evaluateFlip(Call &call) {
  const Tensor &input = call.operand(0);
  Shape dims;
  for (int64_t dim : call.integers("dims"))
    dims.push_back(call.wrapDim(dim, input.rank()));
  if (call.failed())
    return {};
  return one(gatherFrom(input, input.shape, [&](ArrayRef<int64_t> index) {
    Shape source(index.begin(), index.end());
    for (int64_t dim : dims)
      source[dim] = input.shape[dim] - 1 - index[dim];
    return broadcastOffset(input.shape, source);
  }));
}

/// The part of `input` from `start` along `dim`, in the shape `shape`, whose
/// element number is that of `size` places along `dim`.
static Tensor partOf(const Tensor &input, Type type, const Shape &shape,
                     int64_t dim, int64_t start, int64_t size) {
  Tensor part(type, shape);
  int64_t stride = 1;
  for (int64_t d = dim + 1; d < input.rank(); ++d)
    stride *= input.shape[d];
  for (int64_t i = 0, end = part.numElements(); i != end; ++i) {
    int64_t outer = i / (size * stride), inner = i % (size * stride);
    part.copy(i, input, (outer * input.shape[dim] + start) * stride + inner);
  }
  return part;
}

static std::vector<Tensor> evaluateUnbind(Call &call) {
  const Tensor &input = call.operand(0);
  int64_t dim = call.dim("dim", input.rank(), 0);
  call.require(!call.failed() && input.rank() > 0 &&
                   input.shape[dim] == call.op()->getNumResults(),
               "has another number of results than the dimension's size");
  if (call.failed())
    return {};
  Shape shape = input.shape;
  shape.erase(shape.begin() + dim);
  std::vector<Tensor> results;
  for (int64_t k = 0; k != input.shape[dim]; ++k)
    results.push_back(partOf(input, call.resultType(k), shape, dim, k, 1));
  return results;
}

static std::vector<Tensor> evaluateSplit(Call &call) {
  const Tensor &input = call.operand(0);
  int64_t dim = call.dim("dim", input.rank(), 0);
  int64_t size = call.integer("split_size");
  call.require(!call.failed() && input.rank() > 0 && size > 0 &&
                   (input.shape[dim] + size - 1) / size ==
                       call.op()->getNumResults(),
               "has another number of results than parts");
  if (call.failed())
    return {};
  std::vector<Tensor> results;
  for (int64_t start = 0; start < input.shape[dim]; start += size) {
    Shape shape = input.shape;
    shape[dim] = std::min(size, input.shape[dim] - start);
    results.push_back(partOf(input, call.resultType(results.size()), shape, dim,
                             start, shape[dim]));
  }
  return results;
}

void mlir::mp::reference::addViewEvaluators(EvaluatorTable &table) {
  for (StringRef name :
       {"aten.alias", "aten.clone", "aten.contiguous", "aten.detach",
        "aten.lift_fresh_copy", "mp.materialize"})
    table[name] = evaluateAlias;
  for (StringRef name :
       {"aten.view", "aten.reshape", "aten._unsafe_view", "aten.view_copy"})
    table[name] = evaluateView;
  table["aten.unsqueeze"] = evaluateUnsqueeze;
  table["aten.squeeze"] = evaluateSqueeze;
  table["aten.permute"] = evaluatePermute;
  table["aten.transpose"] = evaluateTranspose;
  table["aten.t"] = evaluateT;
  table["aten.expand"] = evaluateExpand;
  table["aten.slice"] = evaluateSlice;
  table["aten.select"] = evaluateSelect;
  table["aten.flip"] = evaluateFlip;
  table["aten.unbind"] = evaluateUnbind;
  table["aten.split.Tensor"] = evaluateSplit;
}
