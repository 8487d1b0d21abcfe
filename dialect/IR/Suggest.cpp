//===- Suggest.cpp - the nearest known name -------------------------------===//

#include "dialect/IR/Suggest.h"
#include "llvm/ADT/Twine.h"

using llvm::StringRef;

std::string mlir::mp::suggest(StringRef word, llvm::ArrayRef<StringRef> known) {
  // A third of the letters may be wrong; beyond that a guess only confuses.
  unsigned best = word.size() / 3 + 1;
  StringRef nearest;
  for (StringRef candidate : known) {
    unsigned distance = word.edit_distance(candidate);
    if (distance <= best && (nearest.empty() || distance < best)) {
      best = distance;
      nearest = candidate;
    }
  }
  return nearest.empty() ? "" : ("; did you mean '" + nearest + "'?").str();
}
