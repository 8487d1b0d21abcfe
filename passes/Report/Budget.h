//===- Budget.h - figures of a graph's precision, kept in a file *- C++ -*-===//
//
// The model behind `mpopt budget`: figures of graphs by region, a file that
// keeps them, and which of them are worse than those of the file. Regions that
// differ in numbers only are one: "layers.*.attn", whatever their figures, so
// that the names in the file stay when figures change.
//
// The file is TOML with one figure per line, sorted; figures that are 0 are
// left out:
//
//   schema = 1
//   mpopt = "0.1.0"
//
//   [graph."model.mlir"]
//   cast_bytes = 1024
//   casts = 4
//
//   [graph."model.mlir".region."layers.*.attn"]
//   cast_bytes = 1024
//   casts = 4
//   kinds."f32 -> bf16" = 4
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_REPORT_BUDGET_H
#define MP_PASSES_REPORT_BUDGET_H

#include "passes/Report/CastReport.h"
#include "passes/Report/SavedValues.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::mp {

inline constexpr int64_t kBudgetSchema = 1;

/// Figures by name, as in the file: "casts", "kinds.\"f32 -> bf16\"".
using Figures = std::map<std::string, int64_t>;

struct GraphFigures {
  std::map<std::string, std::string> settings; ///< "numerics", "target", ...
  Figures total;
  std::map<std::string, Figures> regions; ///< by regionPattern
};

struct Budget {
  std::map<std::string, std::string> versions; ///< "mpopt", "llvm", "torch"
  std::map<std::string, GraphFigures> graphs;
};

/// "layers.*.attn" of "layers.11.attn".
std::string regionPattern(StringRef path);

/// `key` in quotes, as TOML has it.
std::string quotedKey(StringRef key);

/// The figures of the graph after the passes; `report` is about it.
GraphFigures figuresOf(const CastReport &report, ModuleOp after);

void printBudget(const Budget &budget, llvm::raw_ostream &os);

/// Reads what printBudget wrote. Fails with "NAME:LINE: ..." on anything else,
/// and on a file of another schema.
llvm::Expected<Budget> parseBudget(StringRef text, StringRef name);

/// How a figure compares with the one of the file.
enum class FigureVerdict { Worse, Better, Neutral };

struct FigureChange {
  std::string graph, region, figure; ///< no region for the whole graph
  int64_t before = 0, after = 0;
  FigureVerdict verdict = FigureVerdict::Neutral;
  bool isNewRegion = false, isGoneRegion = false;
  bool isTotal = false;
};

/// The figures that differ. One that is worse by no more than the share
/// `tolerance` does not count as different.
std::vector<FigureChange> compareFigures(StringRef graph,
                                         const GraphFigures &before,
                                         const GraphFigures &after,
                                         double tolerance);

} // namespace mlir::mp

#endif // MP_PASSES_REPORT_BUDGET_H
