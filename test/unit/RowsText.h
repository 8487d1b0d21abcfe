//===- RowsText.h - texts of row kernels ------------------------*- C++ -*-===//

#ifndef TEST_UNIT_ROWSTEXT_H
#define TEST_UNIT_ROWSTEXT_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace mlir::mp::test {

/// The names of the files in test/Codegen/Rows.
llvm::ArrayRef<llvm::StringRef> rowFamilies();

/// One of them for another element type and width than it is written for; empty
/// if it cannot be read.
std::string rowsText(llvm::StringRef family, llvm::StringRef element,
                     int64_t columns);

/// Puts `to` wherever `from` stands.
void replaceAll(std::string &text, llvm::StringRef from, llvm::StringRef to);

} // namespace mlir::mp::test

#endif // TEST_UNIT_ROWSTEXT_H
