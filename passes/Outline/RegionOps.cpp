//===- RegionOps.cpp - what our own kernels can compute -------------------===//

#include "passes/Outline/RegionOps.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace mlir::mp;

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

static Attribute argOf(Operation *op, StringRef name) {
  auto args = op->getAttrOfType<DictionaryAttr>("args");
  Attribute attr = args ? args.get(name) : Attribute();
  return isa_and_present<UnitAttr>(attr) ? Attribute() : attr;
}

static std::optional<double> asNumber(Attribute attr) {
  if (auto number = dyn_cast_if_present<FloatAttr>(attr))
    return number.getValueAsDouble();
  if (auto truth = dyn_cast_if_present<BoolAttr>(attr))
    return double(truth.getValue());
  if (auto number = dyn_cast_if_present<IntegerAttr>(attr))
    return double(number.getInt());
  return std::nullopt;
}

std::optional<double> mlir::mp::numberOf(Operation *op, StringRef name) {
  return asNumber(argOf(op, name));
}

int64_t mlir::mp::integerOf(Operation *op, StringRef name, int64_t absent) {
  return int64_t(numberOf(op, name).value_or(double(absent)));
}

std::optional<SmallVector<int64_t>> mlir::mp::integersOf(Operation *op,
                                                         StringRef name) {
  Attribute attr = argOf(op, name);
  if (auto dense = dyn_cast_if_present<DenseI64ArrayAttr>(attr))
    return llvm::to_vector(dense.asArrayRef());
  SmallVector<int64_t> numbers;
  auto array = dyn_cast_if_present<ArrayAttr>(attr);
  ArrayRef<Attribute> elements =
      array ? array.getValue() : ArrayRef<Attribute>(attr);
  for (Attribute element : elements) {
    std::optional<double> number = asNumber(element);
    if (!number)
      return std::nullopt;
    numbers.push_back(int64_t(*number));
  }
  return numbers;
}

SmallVector<int64_t> mlir::mp::reducedDims(Operation *op) {
  int64_t rank = cast<RankedTensorType>(op->getOperand(0).getType()).getRank();
  SmallVector<int64_t> dims;
  if (std::optional<SmallVector<int64_t>> named = integersOf(op, "dim"))
    for (int64_t dim : *named)
      dims.push_back(dim < 0 ? dim + rank : dim);
  if (dims.empty())
    dims = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  llvm::sort(dims);
  return dims;
}

//===----------------------------------------------------------------------===//
// Roles
//===----------------------------------------------------------------------===//

StringRef mlir::mp::regionOpName(Operation *op) {
  if (isa<CastOp, RoundOp, MaterializeOp, MatmulOp>(op))
    return op->getName().getStringRef();
  return stripOverload(frameworkCallee(op));
}

static RegionRole tableRole(StringRef name) {
  static const llvm::StringMap<RegionRole> roles = {
#define MP_REGION_OP(NAME, ROLE) {NAME, RegionRole::ROLE},
#include "passes/Outline/RegionOps.def"
  };
  return roles.lookup(name);
}

/// Types that a kernel may have in memory (rule K1 of the backend contract).
static bool isKernelType(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.getEncoding())
    return false;
  Type element = tensor.getElementType();
  return element.isF16() || element.isBF16() || element.isF32() ||
         element.isSignlessInteger(1) || element.isSignlessInteger(8) ||
         element.isSignlessInteger(32) || element.isSignlessInteger(64);
}

/// Overloads whose arguments mean something else than the operator's others.
static bool isOtherOverload(StringRef callee) {
  return callee == "aten.view.dtype" || callee == "aten.div.Tensor_mode" ||
         callee == "aten.div.Scalar_mode" || callee == "aten.where.default" ||
         callee == "aten.scatter.src" || callee == "aten.scatter.reduce" ||
         callee == "aten.pow.Scalar" || callee == "aten.sum.default" ||
         callee == "aten.mean.default" || callee == "aten.var_mean.default";
}

/// A number that is known only at run time is no operand of a kernel, beside
/// the sizes of views.
static bool readsRunTimeNumbers(Operation *op) {
  return llvm::any_of(op->getOperandTypes(),
                      [](Type type) { return !isa<RankedTensorType>(type); });
}

/// What rules out single operators whose rows hold in general.
static bool hasKnownForm(Operation *op, RegionRole role) {
  StringRef name = regionOpName(op);
  // Limits that are tensors are other overloads.
  if (name.starts_with("aten.clamp"))
    return op->getNumOperands() == 1;
  if (name == "aten.pow")
    return numberOf(op, "exponent").has_value();
  if (name == "aten.scatter")
    return numberOf(op, "value").has_value();
  if (role == RegionRole::Transpose) {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    if (name != "aten.permute")
      return type.getRank() == 2;
    std::optional<SmallVector<int64_t>> dims = integersOf(op, "dims");
    // A batch of matrices keeps its first dimension.
    return dims && (*dims == SmallVector<int64_t>{1, 0} ||
                    *dims == SmallVector<int64_t>{0, 2, 1});
  }
  return true;
}

RegionRole mlir::mp::regionRoleOf(Operation *op) {
  RegionRole role = tableRole(regionOpName(op));
  if (role == RegionRole::None || op->getNumResults() == 0 ||
      !isMemoryEffectFree(op) || isOtherOverload(frameworkCallee(op)))
    return RegionRole::None;
  auto tensors = llvm::make_filter_range(op->getOperandTypes(),
                                         llvm::IsaPred<RankedTensorType>);
  if (!llvm::all_of(op->getResultTypes(), isKernelType) ||
      !llvm::all_of(tensors, isKernelType))
    return RegionRole::None;
  if (role != RegionRole::View && role != RegionRole::Constant &&
      readsRunTimeNumbers(op))
    return RegionRole::None;
  return hasKnownForm(op, role) ? role : RegionRole::None;
}
