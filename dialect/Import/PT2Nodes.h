//===- PT2Nodes.h - parts of the program importer --------------*- C++ -*-===//
//
// What importing one node needs: its arguments as operands and attributes, its
// effects, its place in the model.
//
//===----------------------------------------------------------------------===//

#ifndef MP_DIALECT_IMPORT_PT2NODES_H
#define MP_DIALECT_IMPORT_PT2NODES_H

#include "dialect/Import/PT2Schema.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::mp::pt2 {

using ValueMap = llvm::StringMap<Value>;

/// The arguments of a node in the encoding of mp.aten: values are operands,
/// everything else is in `args`, where "%k" stands for operand k.
class NodeArguments {
public:
  NodeArguments(const ValueMap &values, Builder &builder)
      : values(values), builder(builder) {}

  /// Adds the argument called `name`.
  llvm::Error add(llvm::StringRef name, const llvm::json::Value &argument);

  llvm::ArrayRef<Value> operands() const { return operandList; }
  DictionaryAttr args() const {
    return argAttrs.getDictionary(builder.getContext());
  }

private:
  llvm::Expected<Attribute> convert(Union argument);
  llvm::Expected<Attribute> convertScalar(Union argument);
  llvm::Expected<Attribute> convertList(Union argument);
  llvm::Expected<Attribute> convertEnum(Union argument);
  llvm::Expected<Attribute> convertDictionary(const llvm::json::Value &value);
  llvm::Expected<Attribute> addOperand(llvm::StringRef name);
  llvm::Expected<Attribute> addTensor(const llvm::json::Value &value);
  /// {"as_name": n} or {"as_int": 3} and their float and bool forms.
  llvm::Expected<Attribute> addSymbolic(const llvm::json::Value &value);

  const ValueMap &values;
  Builder &builder;
  SmallVector<Value> operandList;
  NamedAttrList argAttrs;
  bool onlyPlainTensors = true; ///< so far among the tensor arguments
};

/// The name of a value argument (as_tensor, as_sym_int, ...); empty for any
/// other argument.
llvm::StringRef valueName(Union argument);

/// The values that an output argument names, in order; "" for none.
llvm::Expected<SmallVector<llvm::StringRef>>
valueNames(const llvm::json::Value &argument);

/// "aten.add.Tensor" of "torch.ops.aten.add.Tensor".
llvm::StringRef calleeOf(llvm::StringRef target);

/// True if the operator changes an operand or writes to one it is given.
bool isInPlace(llvm::StringRef callee, const llvm::json::Array &inputs);

/// True if the op must keep its place: it draws random numbers, asserts, or
/// nothing is known of it.
bool hasEffects(llvm::StringRef callee);

/// Where a node stands in the model and in the source.
Location locationOf(const llvm::json::Object &node, MLIRContext *context);

/// Who asked for a conversion that decomposition made explicit: the region's
/// autocast, if the traced line calls an operator that is no conversion.
bool isAutocastConversion(llvm::StringRef callee,
                          const llvm::json::Object &node);

} // namespace mlir::mp::pt2

#endif // MP_DIALECT_IMPORT_PT2NODES_H
