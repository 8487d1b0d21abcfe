//===- PlacementPrinters.h - parts of a report -----------------*- C++ -*-===//
//
// The parts of a cast report that are about a placement, in its three formats.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_REPORT_PLACEMENTPRINTERS_H
#define MP_PASSES_REPORT_PLACEMENTPRINTERS_H

#include "passes/Report/RegionGroups.h"
#include "passes/Report/ReportPrinters.h"
#include "llvm/Support/JSON.h"

namespace mlir::mp {

/// Prints `text` broken at spaces, each further line indented by `indent`;
/// `column` is where the first one starts.
void printWrapped(llvm::raw_ostream &os, StringRef text, size_t column,
                  size_t indent);

/// "0.05", or "no limit".
std::string epsilonText(std::optional<double> epsilon);

/// "12 %" of `whole`.
std::string shareText(int64_t part, int64_t whole);

void printPlacementText(const PlacementReport &placement,
                        llvm::raw_ostream &os);
void printStoredText(const RegionGroup &group, llvm::raw_ostream &os);

void writePlacement(llvm::json::OStream &json,
                    const PlacementReport &placement);
void writeStored(llvm::json::OStream &json, const StoredEntry &entry);

/// An SVG picture, coloured by the style sheet of the page.
void printFrontierPlot(const PlacementReport &placement, llvm::raw_ostream &os);

void printPlacementHTML(const PlacementReport &placement,
                        llvm::raw_ostream &os);
void printStoredHTML(const RegionGroup &group, llvm::raw_ostream &os);

} // namespace mlir::mp

#endif // MP_PASSES_REPORT_PLACEMENTPRINTERS_H
