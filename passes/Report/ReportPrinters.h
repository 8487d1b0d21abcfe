//===- ReportPrinters.h - a cast report as text, JSON or HTML --*- C++ -*-===//
//
// JSON, schema 1. Bytes and counts are integers; `null` bytes are unknown for a
// dynamic shape. New fields may be added; a changed meaning raises `schema`.
//
//   {
//     "schema": 1,
//     "input": "model.pt2", "numerics": "precise", "target": "cpu",
//     "policy": "run.toml (sha256 0123456789ab)", "policy_notes": [TEXT, ...],
//     "operations": 120,               ops of the graph before
//     "total": CHANGE,
//     "phases":      {"forward": CHANGE, "backward": CHANGE},
//     "roles":       {"activation": CHANGE, "weight": .., "gradient": ..,
//     "index": ..}, "origins":     {"autocast": CHANGE, ...}, "conversions":
//     {"f32 -> bf16": CHANGE, ...}, "rules":       {"fold-same-type": 3, ...},
//     applied rewrites "unknown_operators": {"mylib.op.default": 2},  without a
//     table row "implicit": TALLY,     made by autocast inside of operators
//     "regions": [{"path": "layers.0",  "total": CHANGE,
//                  "applied": [{"rule", "contract", "node", "op", "why"}],
//                  "left":    [{"from", "to", "shape", "bytes", "origin",
//                  "role",
//                               "phase", "node", "source", "reason"}]}]
//   }
//   CHANGE = {"before": TALLY, "after": TALLY}
//   TALLY  = {"casts": 4, "bytes": 1024, "dynamic": 1}   dynamic: of the casts
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_REPORT_REPORTPRINTERS_H
#define MP_PASSES_REPORT_REPORTPRINTERS_H

#include "passes/Report/CastReport.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::mp {

inline constexpr int kReportSchema = 1;

/// For a terminal of 100 columns.
void printText(const CastReport &report, llvm::raw_ostream &os);
void printJSON(const CastReport &report, llvm::raw_ostream &os);
/// One page that needs no other file.
void printHTML(const CastReport &report, llvm::raw_ostream &os);

} // namespace mlir::mp

#endif // MP_PASSES_REPORT_REPORTPRINTERS_H
