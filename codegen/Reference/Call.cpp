//===- Call.cpp - one operation with its argument values ------------------===//

#include "codegen/Reference/Call.h"
#include "dialect/IR/Arguments.h"
#include "dialect/IR/MPOps.h"

using namespace mlir;
using namespace mlir::mp::reference;

Call::Call(Operation *op, ArrayRef<const Tensor *> operands)
    : operation(op), operands(operands.begin(), operands.end()),
      args(op->getAttrOfType<DictionaryAttr>("args")) {}

const Tensor &Call::operand(unsigned i) {
  static const Tensor empty;
  if (i < operands.size())
    return *operands[i];
  fail("has no operand " + Twine(i));
  return empty;
}

Type Call::resultType(unsigned i) const {
  Type type = operation->getResult(i).getType();
  if (auto tensor = dyn_cast<TensorType>(type))
    return tensor.getElementType();
  return type;
}

void Call::fail(const Twine &text) {
  if (message.empty())
    message = text.str();
}

bool Call::require(bool condition, const Twine &text) {
  if (!condition)
    fail(text);
  return condition;
}

llvm::Error Call::takeError() { return llvm::createStringError(message); }

/// None is a unit attribute and counts as absent.
Attribute Call::argument(StringRef name) const {
  Attribute attr = args ? args.get(name) : Attribute();
  return isa_and_present<UnitAttr>(attr) ? Attribute() : attr;
}

bool Call::has(StringRef name) const { return bool(argument(name)); }

int64_t Call::toInteger(Attribute attr, StringRef name) {
  if (auto boolean = dyn_cast_if_present<BoolAttr>(attr))
    return boolean.getValue();
  if (auto value = dyn_cast_if_present<IntegerAttr>(attr))
    return value.getInt();
  if (std::optional<unsigned> k = mp::operandNumber(attr)) {
    const Tensor &value = operand(*k);
    if (require(!value.ints.empty(), "argument '" + name + "' is no integer"))
      return value.ints[0];
    return 0;
  }
  fail("needs an integer argument '" + name + "'");
  return 0;
}

int64_t Call::integer(StringRef name) {
  return toInteger(argument(name), name);
}

int64_t Call::integer(StringRef name, int64_t absent) {
  return has(name) ? integer(name) : absent;
}

double Call::number(StringRef name) {
  Attribute attr = argument(name);
  if (auto value = dyn_cast_if_present<FloatAttr>(attr))
    return value.getValueAsDouble();
  if (std::optional<unsigned> k = mp::operandNumber(attr)) {
    const Tensor &value = operand(*k);
    if (require(value.numElements() == 1 && value.element,
                "argument '" + name + "' is no number"))
      return value.number(0);
    return 0;
  }
  return double(toInteger(attr, name));
}

double Call::number(StringRef name, double absent) {
  return has(name) ? number(name) : absent;
}

bool Call::boolean(StringRef name, bool absent) {
  return has(name) ? integer(name) != 0 : absent;
}

StringRef Call::text(StringRef name, StringRef absent) {
  auto attr = dyn_cast_if_present<StringAttr>(argument(name));
  return attr ? attr.getValue() : absent;
}

Shape Call::integers(StringRef name) {
  Attribute attr = argument(name);
  Shape values;
  if (auto dense = dyn_cast_if_present<DenseI64ArrayAttr>(attr)) {
    values.append(dense.asArrayRef().begin(), dense.asArrayRef().end());
    return values;
  }
  if (auto array = dyn_cast_if_present<ArrayAttr>(attr)) {
    for (Attribute element : array)
      values.push_back(toInteger(element, name));
    return values;
  }
  values.push_back(toInteger(attr, name));
  return values;
}

const Tensor *Call::tensor(StringRef name, unsigned position) {
  if (args && args.contains(name)) {
    if (std::optional<unsigned> k = mp::operandNumber(argument(name)))
      return &operand(*k);
    return nullptr;
  }
  return position < operands.size() ? operands[position] : nullptr;
}

int64_t Call::wrapDim(int64_t dim, int64_t rank) {
  // PyTorch lets a scalar have the dimensions 0 and -1.
  int64_t end = std::max<int64_t>(rank, 1);
  int64_t wrapped = dim < 0 ? dim + end : dim;
  if (require(wrapped >= 0 && wrapped < end,
              "dimension " + Twine(dim) + " is outside of rank " + Twine(rank)))
    return wrapped;
  return 0;
}

int64_t Call::dim(StringRef name, int64_t rank) {
  return wrapDim(integer(name), rank);
}

int64_t Call::dim(StringRef name, int64_t rank, int64_t absent) {
  return wrapDim(integer(name, absent), rank);
}

Shape Call::dims(StringRef name, int64_t rank) {
  Shape dims;
  if (has(name))
    for (int64_t dim : integers(name))
      dims.push_back(wrapDim(dim, rank));
  if (dims.empty())
    for (int64_t dim = 0; dim != rank; ++dim)
      dims.push_back(dim);
  llvm::sort(dims);
  dims.erase(llvm::unique(dims), dims.end());
  return dims;
}
