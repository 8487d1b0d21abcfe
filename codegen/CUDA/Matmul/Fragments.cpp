//===- Fragments.cpp - operands of mma.sync from shared memory ------------===//

#include "codegen/CUDA/Matmul/Fragments.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;

FragmentLoader::FragmentLoader(Frame &frame, const SharedTile &tile)
    : frame(frame), b(frame.b), tile(tile) {
  int64_t extent = tile.isLhs ? frame.schedule.warpM : frame.schedule.warpN;
  parts = extent / 16;
  usesMatrices = tile.alongK || tile.elementBytes == 2;
  warpStart = b.mul(tile.isLhs ? frame.warpRow : frame.warpColumn, extent);
  if (tile.alongK)
    placeAlongK();
  else if (usesMatrices)
    placeAcross();
  else
    placeElements();
}

/// Which of the four matrices a lane addresses, along m or n.
static Value outerHalf(Frame &frame, bool isLhs) {
  Value matrix = frame.b.div(frame.lane, 8);
  return isLhs ? frame.b.rem(matrix, 2) : frame.b.div(matrix, 2);
}

/// The same along k.
static Value depthHalf(Frame &frame, bool isLhs) {
  return outerHalf(frame, !isLhs);
}

/// Rows along m or n: all parts have the same swizzle.
void FragmentLoader::placeAlongK() {
  Value inMatrix = b.rem(frame.lane, 8);
  Value row =
      b.add(b.add(warpStart, inMatrix), b.mul(outerHalf(frame, tile.isLhs), 8));
  Value half = depthHalf(frame, tile.isLhs);
  Value start = b.add(b.mul(row, tile.rowBytes()), tile.base);
  int64_t steps = tile.depth / mmaDepth(tile.elementBytes);
  for (int64_t step = 0; step < steps; ++step) {
    Value chunk = b.add(half, 2 * step);
    offsets.push_back(b.add(start, tile.chunkOffset(b, inMatrix, chunk)));
  }
}

/// Rows along k: all steps have the same swizzle.
void FragmentLoader::placeAcross() {
  Value inMatrix = b.rem(frame.lane, 8);
  Value row = b.add(inMatrix, b.mul(depthHalf(frame, tile.isLhs), 8));
  Value start = b.add(b.mul(row, tile.rowBytes()), tile.base);
  Value first = b.add(b.div(warpStart, tile.chunkElements()),
                      outerHalf(frame, tile.isLhs));
  for (int64_t part = 0; part < parts; ++part) {
    Value chunk = b.add(first, 2 * part);
    offsets.push_back(b.add(start, tile.chunkOffset(b, inMatrix, chunk)));
  }
}

/// Elements of 32 bits in rows along k.
void FragmentLoader::placeElements() {
  Value row = b.rem(frame.lane, 4), column = b.div(frame.lane, 4);
  Value start = b.add(b.mul(row, tile.rowBytes()), tile.base);
  Value first = b.add(b.div(warpStart, 4), b.div(column, 4));
  Value inChunk = b.mul(b.rem(column, 4), 4);
  for (int64_t half = 0; half < 2 * parts; ++half) {
    Value chunk = tile.chunkOffset(b, row, b.add(first, 2 * half));
    SmallVector<Value> &into = half % 2 ? secondOffsets : offsets;
    into.push_back(b.add(b.add(start, chunk), inChunk));
  }
}

Value FragmentLoader::addressOf(Value stage, int64_t step, int64_t part) const {
  Value start = b.offset(frame.shared, stage);
  if (tile.alongK)
    return b.offset(b.offset(start, offsets[step]),
                    part * 16 * tile.rowBytes());
  return b.offset(b.offset(start, offsets[part]),
                  step * mmaDepth(tile.elementBytes) * tile.rowBytes());
}

/// A register as mma.sync wants it.
Value FragmentLoader::convert(Value word) {
  if (tile.elementBytes == 4) {
    Value number = LLVM::BitcastOp::create(b, b.getF32Type(), word);
    return NVVM::ConvertFloatToTF32Op::create(
        b, b.getI32Type(), number, NVVM::FPRoundingMode::RNA,
        NVVM::SaturationMode::NONE, /*relu=*/false);
  }
  if (!frame.kernel.lhs.element.isF16())
    return word;
  return LLVM::BitcastOp::create(b, VectorType::get(2, b.getF16Type()), word);
}

SmallVector<Value, 4> FragmentLoader::loadMatrices(Value address) {
  auto type = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(4, b.getI32Type()));
  auto layout = tile.alongK ? NVVM::MMALayout::row : NVVM::MMALayout::col;
  auto shape = NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8);
  Value matrices = NVVM::LdMatrixOp::create(b, type, address, 4u, layout, shape,
                                            NVVM::LdStMatrixEltType::B16);
  SmallVector<Value, 4> registers;
  for (int64_t i = 0; i < 4; ++i)
    registers.push_back(LLVM::ExtractValueOp::create(b, matrices, i));
  return registers;
}

/// In the order of ldmatrix, as `split` expects it.
SmallVector<Value, 4> FragmentLoader::loadElements(Value address,
                                                   int64_t part) {
  Value second = b.offset(address, b.sub(secondOffsets[part], offsets[part]));
  auto at = [&](Value start, int64_t half) -> Value {
    Value from = b.offset(start, half * 4 * tile.rowBytes());
    return b.load(b.getI32Type(), from, 4);
  };
  if (tile.isLhs)
    return {at(address, 0), at(second, 0), at(address, 1), at(second, 1)};
  return {at(address, 0), at(address, 1), at(second, 0), at(second, 1)};
}

void FragmentLoader::split(ArrayRef<Value> registers,
                           SmallVectorImpl<Fragment> &fragments) {
  if (tile.isLhs) {
    fragments.emplace_back(registers);
    return;
  }
  fragments.emplace_back(registers.take_front(2));
  fragments.emplace_back(registers.drop_front(2));
}

SmallVector<Fragment> FragmentLoader::load(Value stage, int64_t step) {
  SmallVector<Fragment> fragments;
  for (int64_t part = 0; part < parts; ++part) {
    Value address = addressOf(stage, step, part);
    auto registers =
        usesMatrices ? loadMatrices(address) : loadElements(address, part);
    for (Value &word : registers)
      word = convert(word);
    split(registers, fragments);
  }
  return fragments;
}

Fragment cuda::makeOnes(Frame &frame, bool isLhs) {
  KernelBuilder &b = frame.b;
  Type element = frame.kernel.lhs.element;
  Value one;
  if (element.isF16())
    one = arith::ConstantOp::create(
        b, DenseElementsAttr::get(VectorType::get(2, element),
                                  b.getFloatAttr(element, 1.0)));
  else // Two bf16, or the bits of an f32.
    one = b.i32(element.isBF16() ? 0x3F803F80 : 0x3F800000);
  return Fragment(isLhs ? 4 : 2, one);
}

static NVVM::MMATypes mmaType(Type element) {
  if (element.isF16())
    return NVVM::MMATypes::f16;
  return element.isBF16() ? NVVM::MMATypes::bf16 : NVVM::MMATypes::tf32;
}

SmallVector<Value, 4> cuda::multiply(Frame &frame, const Fragment &lhs,
                                     const Fragment &rhs,
                                     ValueRange accumulator) {
  KernelBuilder &b = frame.b;
  Type element = frame.kernel.lhs.element;
  auto result = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(4, b.getF32Type()));
  NVVM::MMATypes type = mmaType(element);
  std::array<NVVM::MMATypes, 2> types{type, type};
  std::array<NVVM::MMALayout, 2> layouts{NVVM::MMALayout::row,
                                         NVVM::MMALayout::col};
  int64_t shape[] = {16, 8, mmaDepth(bytesOf(element))};
  Value product =
      NVVM::MmaOp::create(b, result, lhs, rhs, accumulator, shape, std::nullopt,
                          std::nullopt, types, layouts);
  SmallVector<Value, 4> sums;
  for (int64_t i = 0; i < 4; ++i)
    sums.push_back(LLVM::ExtractValueOp::create(b, product, i));
  return sums;
}
