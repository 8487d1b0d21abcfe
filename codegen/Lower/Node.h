//===- Node.h - a region as arithmetic on scalars ---------------*- C++ -*-===//
//
// Between the operations of a region and the loops of a kernel: a graph whose
// nodes are one number for each element, row or column of the region's matrix.
// Views are gone; a norm is several nodes. Writers cut the graph into the
// linalg.generic ops of the backend contract.
//
//===----------------------------------------------------------------------===//

#ifndef MP_CODEGEN_LOWER_NODE_H
#define MP_CODEGEN_LOWER_NODE_H

#include "codegen/Lower/Scalars.h"
#include "passes/Outline/Places.h"

#include <deque>
#include <functional>

namespace mlir::mp::lower {

/// How two partial results of a reduction are joined.
enum class Combiner { Add, Maximum, Minimum };

struct Node {
  enum class Kind {
    Argument,       ///< an operand of the region
    Accumulator,    ///< the f32 sums of products
    Compute,        ///< arithmetic on other nodes
    RowReduction,   ///< over the columns of each row
    ColumnReduction ///< over the rows of each column
  };
  using Emit = std::function<Value(Scalars &, ValueRange)>;

  Kind kind;
  Place place;
  Type type;
  SmallVector<Node *, 4> inputs = {};
  Emit emit = {};         ///< of Compute
  Combiner combiner = {}; ///< of a reduction
  unsigned argument = 0;  ///< of Argument
  /// Only converts: done again wherever it is read.
  bool isConversion = false;
};

/// A sum of a factor of the product over the dimension that both share.
struct FactorSum {
  unsigned argument;
  bool isLhs;
  Type type; ///< that it is rounded to
};

/// A matrix of the product: an operand of the region, perhaps transposed.
struct Factor {
  unsigned argument = 0;
  bool isTransposed = false;
};

/// One result of the region: a node, or a sum of a factor.
struct GraphResult {
  Node *node = nullptr;
  std::optional<FactorSum> sum;
  RankedTensorType type;
};

struct NodeGraph {
  explicit NodeGraph(const Space &space) : space(space) {}

  Node *argument(unsigned number, Place place, Type type);
  Node *compute(Place place, Type type, ArrayRef<Node *> inputs,
                Node::Emit emit);
  /// The node in another type, rounded once; the node itself if it has it.
  Node *convert(Node *node, Type type);
  /// Of each row, in f32 or in an integer type.
  Node *reduceRows(Node *node, Combiner combiner, Type type);
  Node *sumColumns(Node *node);

  Space space;
  std::deque<Node> nodes; ///< operands stand before what reads them
  Node *accumulator = nullptr;
  Factor lhs, rhs;
  int64_t depth = 0; ///< terms of each sum of products
  SmallVector<GraphResult> results;
};

} // namespace mlir::mp::lower

#endif // MP_CODEGEN_LOWER_NODE_H
