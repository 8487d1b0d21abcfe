//===- Intrinsics.cpp - what NVPTX has instructions for -------------------===//

#include "codegen/CUDA/Intrinsics.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace mlir::mp;

/// Empty for an op that has none.
static StringRef intrinsicOf(Operation *op) {
  static const llvm::StringMap<StringRef> intrinsics = {
      {"math.absf", "llvm.fabs"},
      {"math.ceil", "llvm.ceil"},
      {"math.copysign", "llvm.copysign"},
      {"math.floor", "llvm.floor"},
      {"math.fma", "llvm.fma"},
      {"math.roundeven", "llvm.roundeven"},
      {"math.rsqrt", "llvm.nvvm.rsqrt.approx.f"},
      {"math.sqrt", "llvm.sqrt"},
  };
  return intrinsics.lookup(op->getName().getStringRef());
}

static Value call(ImplicitLocOpBuilder &b, StringRef intrinsic, Type type,
                  ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(b, type, b.getStringAttr(intrinsic),
                                       operands)
      .getResult(0);
}

/// NVPTX's own intrinsics take no vectors.
static Value callForEach(ImplicitLocOpBuilder &b, StringRef intrinsic,
                         VectorType type, Value operand) {
  Value result = arith::ConstantOp::create(b, b.getZeroAttr(type));
  for (int64_t i = 0, end = type.getNumElements(); i != end; ++i) {
    Value element = vector::ExtractOp::create(b, operand, i);
    element = call(b, intrinsic, type.getElementType(), element);
    result = vector::InsertOp::create(b, element, result, i);
  }
  return result;
}

/// In f32 at least. A second rounding of a root, to a half as wide, changes
/// nothing; the others are exact, but fma, which kernels have in f32 alone.
static void replace(Operation *op, StringRef intrinsic) {
  ImplicitLocOpBuilder b(op->getLoc(), op);
  Type type = op->getResult(0).getType(), wide = type;
  auto vector = dyn_cast<VectorType>(type);
  bool isNarrow = getElementTypeOrSelf(type).getIntOrFloatBitWidth() < 32;
  if (isNarrow)
    wide = vector ? Type(vector.clone(b.getF32Type())) : b.getF32Type();
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(isNarrow ? arith::ExtFOp::create(b, wide, operand)
                                : operand);
  Value result =
      vector && intrinsic.starts_with("llvm.nvvm.")
          ? callForEach(b, intrinsic, cast<VectorType>(wide), operands[0])
          : call(b, intrinsic, wide, operands);
  if (isNarrow)
    result = arith::TruncFOp::create(b, type, result);
  op->getResult(0).replaceAllUsesWith(result);
  op->erase();
}

void mp::cuda::useIntrinsics(Operation *root) {
  SmallVector<std::pair<Operation *, StringRef>> found;
  root->walk([&](Operation *op) {
    if (StringRef intrinsic = intrinsicOf(op); !intrinsic.empty())
      found.emplace_back(op, intrinsic);
  });
  for (auto [op, intrinsic] : found)
    replace(op, intrinsic);
}
