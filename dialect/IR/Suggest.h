//===- Suggest.h - the nearest known name ----------------------*- C++ -*-===//

#ifndef MP_DIALECT_IR_SUGGEST_H
#define MP_DIALECT_IR_SUGGEST_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace mlir::mp {

/// The one of `known` that is nearest to `word`; empty if none is near.
llvm::StringRef nearestName(llvm::StringRef word,
                            llvm::ArrayRef<llvm::StringRef> known);

/// "; did you mean 'explain'?" for the nearest of `known`, or "".
std::string suggest(llvm::StringRef word,
                    llvm::ArrayRef<llvm::StringRef> known);

} // namespace mlir::mp

#endif // MP_DIALECT_IR_SUGGEST_H
