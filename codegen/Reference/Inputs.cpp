//===- Inputs.cpp - arguments for the reference interpreter ---------------===//

#include "codegen/Reference/Inputs.h"

#include <array>
#include <cmath>
#include <limits>
#include <random>

using namespace mlir;
using namespace mlir::mp::reference;

/// Numbers at which some pair of formats disagrees.
static const double kSpecial[] = {
    0.0,
    -0.0,
    std::numeric_limits<double>::infinity(),
    -std::numeric_limits<double>::infinity(),
    std::numeric_limits<double>::quiet_NaN(),
    0x1p-149,              // smallest f32, subnormal
    0x1p-133,              // smallest bf16, subnormal
    0x1p-126,              // smallest normal f32 and bf16
    0x1p-24,               // smallest f16, subnormal
    0x1p-25,               // half of it: a tie with zero
    -0x1p-26,              // rounds to -0 in f16
    1e-8,                  // zero in f16
    0x1p-14,               // smallest normal f16
    65504,                 // largest f16
    65519,                 // rounds to it
    -65520,                // rounds to infinity
    1e5,                   // infinite in f16, 99840 in bf16
    0x1.fffffep127,        // largest f32, infinite in bf16
    3.3895313892515355e38, // largest bf16
    0x1.01p0,              // 1 + 2^-8: a tie in bf16
    0x1.03p0,              // a tie to the other side
    0x1.002p0,             // 1 + 2^-11: a tie in f16
    0x1.01p0 + 0x1p-23,    // rounds twice through f16
    257,                   // no bf16
    2049,                  // no f16
    1.0 / 3,
};

/// From -1 to 1. Own arithmetic rather than a distribution, which differs by
/// library.
static double drawUnit(std::mt19937_64 &random) {
  return double(random() >> 11) * 0x1p-53 * 2 - 1;
}

/// One number in `oneIn` is special; 0 for none.
static double drawMixed(std::mt19937_64 &random, uint64_t oneIn) {
  uint64_t choice = random();
  if (oneIn && (choice >> 32) % oneIn == 0)
    return kSpecial[(choice >> 8) % std::size(kSpecial)];
  double unit = drawUnit(random);
  int exponent = choice % 4 == 1 ? int((choice >> 8) % 40) - 20 : 2;
  return std::ldexp(unit, exponent);
}

static Tensor randomTensor(Type type, std::mt19937_64 &random,
                           int64_t dynamicSize, Draw draw) {
  Shape shape;
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    for (int64_t size : tensor.getShape())
      shape.push_back(ShapedType::isDynamic(size) ? dynamicSize : size);
  Tensor value(getElementTypeOrSelf(type), shape);
  // Special numbers everywhere would soon make every result NaN.
  uint64_t oneIn = std::array<uint64_t, 3>{0, 4, 16}[random() % 3];
  for (int64_t i = 0, end = value.numElements(); i != end; ++i) {
    if (value.isFloat())
      value.set(i, draw == Draw::Ordinary ? 4 * drawUnit(random)
                                          : drawMixed(random, oneIn));
    else
      value.setInt(i, isa<RankedTensorType>(type) ? int64_t(random() % 4)
                                                  : dynamicSize);
  }
  return value;
}

llvm::Expected<Tensor>
mlir::mp::reference::fromAttribute(DenseElementsAttr attr) {
  if (!isSupportedElement(attr.getElementType()))
    return llvm::createStringError("constant has an unsupported element type");
  Tensor value(attr.getElementType(), attr.getType().getShape());
  int64_t i = 0;
  if (value.isFloat())
    for (const llvm::APFloat &element : attr.getValues<llvm::APFloat>()) {
      llvm::APFloat wide = element;
      bool losesInfo = false;
      wide.convert(llvm::APFloat::IEEEdouble(),
                   llvm::APFloat::rmNearestTiesToEven, &losesInfo);
      value.floats[i++] = wide.convertToDouble();
    }
  else
    for (const llvm::APInt &element : attr.getValues<llvm::APInt>())
      value.setInt(i++, value.element.isUnsignedInteger() ||
                                value.element.isInteger(1)
                            ? int64_t(element.getZExtValue())
                            : element.getSExtValue());
  return value;
}

llvm::Expected<std::vector<Tensor>>
mlir::mp::reference::makeInputs(func::FuncOp func, uint64_t seed,
                                int64_t dynamicSize, Draw draw) {
  std::mt19937_64 random(seed);
  std::vector<Tensor> inputs;
  for (auto [i, type] : llvm::enumerate(func.getArgumentTypes())) {
    if (auto given = func.getArgAttrOfType<DenseElementsAttr>(i, "mp.value")) {
      llvm::Expected<Tensor> value = fromAttribute(given);
      if (!value)
        return value.takeError();
      inputs.push_back(std::move(*value));
      continue;
    }
    if (!isSupportedElement(getElementTypeOrSelf(type)))
      return llvm::createStringError("argument " + Twine(i) +
                                     " has an unsupported type");
    inputs.push_back(randomTensor(type, random, dynamicSize, draw));
  }
  return inputs;
}
