//===- KernelWriter.h - writes the function of a kernel ---------*- C++ -*-===//
//
// What writers of matmul and of row kernels share: arguments as matrices, loops
// over some nodes, results in their own shapes.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_LOWER_KERNELWRITER_H
#define MP_CODEGEN_LOWER_KERNELWRITER_H

#include "codegen/Lower/Node.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::mp::lower {

/// The loops of one linalg.generic: which of them are rows and columns.
struct Loops {
  enum Kind { Matrix, Rows, Columns, RowReduction, ColumnReduction };
  Kind kind;
  /// A batch of matrices has a loop in front.
  bool isBatched = false;

  SmallVector<utils::IteratorType> iterators() const;
  /// How a value of that place is read, or written.
  AffineMap mapOf(Place place, MLIRContext *context) const;
  unsigned columnLoop() const;
};

class KernelWriter {
public:
  KernelWriter(RegionOp region, NodeGraph &graph);

  OwningOpRef<ModuleOp> takeModule() { return std::move(module); }

  /// The values of nodes, in one linalg.generic. Nodes that have a value
  /// already are its operands, `first` before all others.
  void write(ArrayRef<Node *> nodes, Loops loops, Node *first = nullptr);
  /// The value of a reduction, whose arithmetic stands in the same loops.
  void writeReduction(Node *node);
  void setValue(Node *node, Value value) { values[node] = value; }
  bool hasValue(Node *node) const { return values.contains(node); }
  Value valueOf(Node *node);

  /// An argument in the shape of a matrix, or of a batch of them.
  Value argument(unsigned number, ArrayRef<int64_t> shape);
  Value zeros(ArrayRef<int64_t> shape, Type type, double start = 0);
  Value empty(ArrayRef<int64_t> shape, Type type);
  linalg::GenericOp generic(ValueRange inputs, ValueRange outputs,
                            ArrayRef<AffineMap> maps,
                            ArrayRef<utils::IteratorType> iterators,
                            function_ref<void(OpBuilder &, ValueRange)> body);
  /// Returns values in the shapes of the region's results.
  void finish(ValueRange results);

  SmallVector<int64_t> shapeOf(Place place) const;
  OpBuilder &getBuilder() { return builder; }
  Location getLoc() const { return loc; }
  bool isBatched() const { return graph.space.batch != 1; }

private:
  struct Reads;
  void findReads(Node *node, Reads &reads);
  void addInputs(const Reads &reads, const Loops &loops,
                 SmallVectorImpl<Value> &inputs,
                 SmallVectorImpl<AffineMap> &maps);
  Value emit(Node *node, Scalars &scalars,
             llvm::DenseMap<Node *, Value> &emitted);
  Value rows();
  Value inShape(Value value, RankedTensorType type);

  NodeGraph &graph;
  OpBuilder builder;
  Location loc;
  OwningOpRef<ModuleOp> module;
  func::FuncOp func;
  llvm::DenseMap<Node *, Value> values;
  Value dynamicRows;
};

/// Write the kernel of a graph. False, and a reason, if the backend contract
/// has no place for a part of it.
bool writeMatmul(KernelWriter &writer, NodeGraph &graph, std::string &reason);
bool writeRows(KernelWriter &writer, NodeGraph &graph, std::string &reason);

} // namespace mlir::mp::lower

#endif // MP_CODEGEN_LOWER_KERNELWRITER_H
