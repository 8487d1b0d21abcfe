//===- Graph.h - a traced graph as columns ---------------------*- C++ -*-===//
//
// The border between a framework's graph and a module. A graph goes in as
// columns of integers over tables of texts, so that each distinct type,
// operator and attribute is parsed once; what passes did comes back as a
// difference.
//
// Values are numbered: the inputs first, then every result in node order. A
// node is known by its number, which its location carries through all passes.
//
//===----------------------------------------------------------------------===//

#ifndef MP_DIALECT_GRAPH_GRAPH_H
#define MP_DIALECT_GRAPH_GRAPH_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <string>
#include <vector>

namespace mlir::mp {

struct Graph {
  /// Bits of `flags`.
  enum Flag : uint8_t { Effects = 1, Backward = 2 };

  struct Source {
    std::string module; ///< path in the model, "layers.0.norm"; may be empty
    std::string file;   ///< source file of the traced line; may be empty
    int32_t line = 0;
  };

  std::string name = "graph";          ///< symbol of the function
  std::string attributes;              ///< dictionary text for the function
  std::vector<std::string> targets;    ///< "aten.mm.default" or "mp.cast"
  std::vector<std::string> types;      ///< "tensor<8x?xbf16>", "index"
  std::vector<std::string> attrs;      ///< dictionary texts, "" for none
  std::vector<Source> sources;         ///< places in the model
  std::vector<int32_t> inputTypes;     ///< per input
  std::vector<std::string> inputAttrs; ///< per input: dictionary text or ""

  std::vector<int32_t> target;     ///< per node
  std::vector<int32_t> attr;       ///< per node
  std::vector<uint8_t> flags;      ///< per node
  std::vector<int32_t> source;     ///< per node, -1 for unknown
  std::vector<int32_t> operandEnd; ///< per node: end of its slice of operands
  std::vector<int32_t> operands;   ///< value numbers
  std::vector<int32_t> resultEnd;  ///< per node: end of its slice
  std::vector<int32_t> resultTypes;
  std::vector<int32_t> outputs;         ///< value numbers
  std::vector<std::string> outputAttrs; ///< per output: dictionary text or ""

  int32_t numNodes() const { return target.size(); }
  int32_t numInputs() const { return inputTypes.size(); }
};

/// What happened to each node of the graph that a module was built from.
struct Edits {
  struct Added {
    int32_t before; ///< node that it must precede; numNodes() for the end
    int32_t like;   ///< node that it stems from, -1 for none
    Operation *op;  ///< valid until the module changes
    std::vector<int32_t> operands;
    int32_t firstResult; ///< value number of its first result
  };
  struct Rewired {
    int32_t node, position, value;
  };
  std::vector<int32_t> erased;
  std::vector<int32_t> retyped; ///< kept nodes with another result type
  std::vector<Rewired> rewired;
  std::vector<Added> added;
  std::vector<int32_t> outputs;

  bool empty() const {
    return erased.empty() && retyped.empty() && rewired.empty() &&
           added.empty();
  }
};

/// Builds `func.func @<name>`; null after an error diagnostic.
OwningOpRef<ModuleOp> buildModule(const Graph &graph, MLIRContext *context);

/// Compares `module` with the graph that it was built from. Fails with a
/// diagnostic when the function is missing.
FailureOr<Edits> readEdits(ModuleOp module, const Graph &graph);

/// The location of node `node` at `where`.
Location nodeLocation(int32_t node, Location where);

/// The node that `loc` stands for, or -1.
int32_t nodeOf(Location loc);

/// A location for an op that a pass made out of the op at `loc`: the same place
/// in the model, but not the same node.
Location derivedLocation(Location loc);

/// The node that `loc` stands for or was derived from, or -1.
int32_t stemOf(Location loc);

/// The module path ("layers.0.norm") in `loc`, or empty.
llvm::StringRef modulePathOf(Location loc);

/// True if `target` is one of the framework's spellings of a dtype conversion,
/// or mp.cast.
bool isConversionTarget(llvm::StringRef target);

/// True if `op` does what the framework's operator `target` does on the same
/// operands: mp.cast stands for each spelling of a conversion.
bool standsFor(Operation *op, llvm::StringRef target);

} // namespace mlir::mp

#endif // MP_DIALECT_GRAPH_GRAPH_H
