//===- Values.cpp - arguments of an emulated kernel -----------------------===//

#include "test/emulator/Tool/Values.h"
#include "runtime/Numerics.h"

#include <cmath>
#include <cstring>
#include <random>

using namespace mlir;
using namespace mlir::mp;
using reference::Tensor;

func::FuncOp emulator::functionOf(const mlir::mp::Kernel &kernel) {
  return std::visit([](const auto &kind) { return kind.func; }, kernel);
}

static bool isSupported(Type element) {
  return element.isF16() || element.isBF16() || element.isF32() ||
         element.isF64() || isa<IntegerType>(element);
}

Tensor emulator::makeResult(Type type, int64_t size) {
  auto tensor = cast<RankedTensorType>(type);
  reference::Shape shape(tensor.getShape());
  for (int64_t &extent : shape)
    extent = ShapedType::isDynamic(extent) ? size : extent;
  return {tensor.getElementType(), shape};
}

/// How many numbers an integer may be: columns of a row kernel.
static int64_t integersOf(const mlir::mp::Kernel &kernel, Type element) {
  if (element.isInteger(1))
    return 2;
  const auto *rows = std::get_if<RowKernel>(&kernel);
  return rows ? std::max<int64_t>(rows->columns, 1) : 4;
}

/// A float; own arithmetic rather than a distribution, which differs by
/// library.
static double draw(std::mt19937_64 &random, bool isOfRow, emulator::Data data) {
  double unit = double(random() >> 11) * 0x1p-53;
  if (data == emulator::Data::Integer)
    return isOfRow ? 1 + std::floor(3 * unit) : std::floor(7 * unit) - 3;
  return isOfRow ? 1 + 2 * unit : 4 * unit - 2;
}

llvm::Expected<std::vector<Tensor>>
emulator::makeArguments(const mlir::mp::Kernel &kernel, uint64_t seed,
                        int64_t size, Data data) {
  std::mt19937_64 random(seed);
  std::vector<Tensor> tensors;
  for (auto [i, type] :
       llvm::enumerate(functionOf(kernel).getArgumentTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !isSupported(tensor.getElementType()))
      return llvm::createStringError("argument " + Twine(i) +
                                     " has a type that is not emulated");
    Tensor value = makeResult(type, size);
    bool isOfRow = tensor.getRank() == 1 && tensor.isDynamicDim(0);
    int64_t integers = integersOf(kernel, value.element);
    for (int64_t at = 0, end = value.numElements(); at != end; ++at)
      if (value.isFloat())
        value.set(at, draw(random, isOfRow, data));
      else
        value.setInt(at, int64_t(random() % uint64_t(integers)));
    tensors.push_back(std::move(value));
  }
  return tensors;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

size_t emulator::bytesOf(Type element) {
  return llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
}

/// The bits of element `i`, in the low bits.
static uint64_t bitsOf(const Tensor &tensor, int64_t i) {
  if (!tensor.isFloat())
    return uint64_t(tensor.ints[i]) & (tensor.element.isInteger(1) ? 1 : ~0ULL);
  double value = tensor.floats[i];
  if (tensor.element.isF16())
    return mpopt::f64ToF16(value);
  if (tensor.element.isBF16())
    return mpopt::f64ToBF16(value);
  if (tensor.element.isF32())
    return llvm::bit_cast<uint32_t>(float(value));
  return llvm::bit_cast<uint64_t>(value);
}

static double floatOf(Type element, uint64_t bits) {
  if (element.isF16())
    return mpopt::f16ToF64(uint16_t(bits));
  if (element.isBF16())
    return mpopt::bf16ToF64(uint16_t(bits));
  if (element.isF32())
    return llvm::bit_cast<float>(uint32_t(bits));
  return llvm::bit_cast<double>(bits);
}

std::vector<char> emulator::pack(const Tensor &tensor) {
  size_t bytes = bytesOf(tensor.element);
  std::vector<char> memory(tensor.numElements() * bytes);
  for (int64_t i = 0, end = tensor.numElements(); i != end; ++i) {
    uint64_t bits = bitsOf(tensor, i);
    std::memcpy(memory.data() + i * bytes, &bits, bytes);
  }
  return memory;
}

void emulator::unpack(llvm::ArrayRef<char> memory, Tensor &tensor) {
  size_t bytes = bytesOf(tensor.element);
  for (int64_t i = 0, end = tensor.numElements(); i != end; ++i) {
    uint64_t bits = 0;
    std::memcpy(&bits, memory.data() + i * bytes, bytes);
    if (tensor.isFloat())
      tensor.floats[i] = floatOf(tensor.element, bits);
    else
      tensor.setInt(
          i, llvm::SignExtend64(bits, tensor.element.getIntOrFloatBitWidth()));
  }
}
