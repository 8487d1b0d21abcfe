//===- ReportPrinters.h - a cast report as text, JSON or HTML --*- C++ -*-===//
//
// JSON, schema 1. Bytes and counts are integers; `null` bytes are unknown for a
// dynamic shape. New fields may be added; a changed meaning raises `schema`.
//
// clang-format off
//   {
//     "schema": 1,
//     "input": "model.pt2", "numerics": "precise", "target": "cpu",
//     "policy": "run.toml (sha256 0123456789ab)", "policy_notes": [TEXT, ...],
//     "operations": 120,           ops of the graph before
//     "total": CHANGE,
//     "phases":      {"forward": CHANGE, "backward": CHANGE},
//     "roles":       {"activation": CHANGE, "weight": .., "gradient": .., "index": ..},
//     "origins":     {"autocast": CHANGE, ...},
//     "conversions": {"f32 -> bf16": CHANGE, ...},
//     "rules":       {"fold-same-type": 3, ...},      applied rewrites
//     "pins":        {"softmax": 2, ...},             of the graph after
//     "unknown_operators": {"mylib.op.default": 2},   without a table row
//     "implicit": TALLY,           made by autocast inside of operators
//     "half_weights": TALLY,       parameters that come in as half copies
//     "notes": [TEXT, ...],        only where there are any
//     "placements": [PLACEMENT],   only where storage types are chosen
//     "regions": [{"path": "layers.0", "total": CHANGE,
//                  "applied": [{"rule", "contract", "node", "op", "why"}],
//                  "left":    [{"from", "to", "shape", "bytes", "origin", "role",
//                               "phase", "node", "source", "reason"}],
//                  "pins":    [{"format", "where", "rule", "reason", "op", "bytes",
//                               "phase", "node", "source"}],
//                  "stored":  [STORED]}]     only with placements; largest first
//   }
//   CHANGE = {"before": TALLY, "after": TALLY}
//   TALLY  = {"casts": 4, "bytes": 1024, "dynamic": 1}   dynamic: of the casts
//
// An error is the factor by which the estimated error of the results grows, null
// if nothing is known of it. Bytes of a placement are modelled ones, of the
// values that it is about: moved by kernels and kept for backward.
//
//   PLACEMENT = {"function": "joint", "half": "bf16", "epsilon": 0.05,
//     "values": 412, "reads": 1203,
//     "cut_bytes": 4096,           value of the cut: bytes, and error at its price
//     "bytes": 4000, "saved_bytes": 512,    saved for backward, part of bytes
//     "error": 1.046, "error_allowed": 1.05,
//     "bytes_per_percent": 64,     what one more percent of error would save
//     "frontier":     [{"epsilon": 0.05,    null: no limit
//                       "bytes", "saved_bytes", "error", "chosen": true}],
//     "without_rule": [{"rule", "pins", "bytes", "saved_bytes", "error",
//                       "within": true}],     the epsilon
//     "without_pin":  [{"rule", "pins", "bytes", "saved_bytes", "error",
//                       "within", "region", "op", "source", "reason"}]}
//                                  bytes: how many less; pins: how many are alike
//   STORED = {"op", "shape", "types": "f32 and bf16", "bytes", "phase",
//     "saved": true,               for backward
//     "why": "pinned",             rounded, traced, call, pinned, reader, result,
//                                  observed, numerics, noise or copies
//     "rule": "softmax",           of the pin
//     "saves": 1024,               what half saves, or would save
//     "error": 1.002,              what that adds, or would add
//     "node", "source", "reason"}
// clang-format on
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
