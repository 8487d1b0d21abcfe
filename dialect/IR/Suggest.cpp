//===- Suggest.cpp - the nearest known name -------------------------------===//

#include "dialect/IR/Suggest.h"

using llvm::StringRef;

StringRef mlir::mp::nearestName(StringRef word,
                                llvm::ArrayRef<StringRef> known) {
  // A third of the letters may be wrong; beyond that a guess only confuses.
  unsigned best = word.size() / 3 + 1;
  StringRef nearest;
  for (StringRef candidate : known) {
    unsigned distance = word.edit_distance(candidate, true, best);
    if (distance <= best && (nearest.empty() || distance < best)) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

std::string mlir::mp::suggest(StringRef word, llvm::ArrayRef<StringRef> known) {
  StringRef nearest = nearestName(word, known);
  return nearest.empty() ? "" : ("; did you mean '" + nearest + "'?").str();
}
