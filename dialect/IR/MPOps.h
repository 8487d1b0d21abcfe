//===- MPOps.h - operations of the mp dialect ------------------*- C++ -*-===//

#ifndef MP_DIALECT_IR_MPOPS_H
#define MP_DIALECT_IR_MPOPS_H

#include "dialect/IR/MPDialect.h"
#include "dialect/IR/PrecisionInterfaces.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialect/IR/MPEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialect/IR/MPAttrs.h.inc"

namespace mlir::mp {

/// True if every value of element type `from` is a value of `to`, so that the
/// conversion changes none: f16 to f32, bf16 to f64, i8 to f32. Two half types
/// hold different values: f16 to bf16 is not exact, nor the reverse.
bool isExactConversion(Type from, Type to);

/// True for the 16-bit float types, f16 and bf16.
bool isHalf(Type type);

/// The tensor type of `value` with another element type.
RankedTensorType withElementType(Value value, Type elementType);

/// True for a ranked tensor of floats.
bool isFloatTensor(Type type);

/// The element type of a ranked tensor; null for anything else.
Type elementTypeOf(Value value);

/// Number of elements, or none when a dimension is dynamic.
std::optional<int64_t> staticNumElements(Type type);

/// "4x?x8"; empty without dimensions.
std::string sizesText(llvm::ArrayRef<int64_t> sizes);

/// True if the op belongs to the backward graph.
bool isBackward(Operation *op);

/// The framework operator that `op` stands for: the callee of mp.aten, the
/// operator that a raised op raises; empty for mp.cast and mp.round.
llvm::StringRef frameworkCallee(Operation *op);

/// The operands in that operator's order: addmm and baddbmm have the bias
/// first.
llvm::SmallVector<Value> frameworkOperands(Operation *op);

} // namespace mlir::mp

#define GET_OP_CLASSES
#include "dialect/IR/MPOps.h.inc"

#endif // MP_DIALECT_IR_MPOPS_H
