//===- RowsText.cpp - texts of row kernels --------------------------------===//

#include "RowsText.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir::mp;
using llvm::StringRef;

llvm::ArrayRef<StringRef> test::rowFamilies() {
  static constexpr StringRef families[] = {"column-sum",
                                           "cross-entropy",
                                           "cross-entropy-backward",
                                           "layer-norm",
                                           "layer-norm-backward",
                                           "log-softmax",
                                           "log-softmax-backward",
                                           "pointwise",
                                           "rms-norm",
                                           "softmax",
                                           "softmax-backward"};
  return families;
}

void test::replaceAll(std::string &text, StringRef from, StringRef to) {
  for (size_t at = 0; (at = text.find(from.str(), at)) != std::string::npos;
       at += to.size())
    text.replace(at, from.size(), to.str());
}

std::string test::rowsText(StringRef family, StringRef element,
                           int64_t columns) {
  std::string path = (MPOPT_ROWS + llvm::Twine('/') + family + ".mlir").str();
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file)
    return "";
  std::string text = (*file)->getBuffer().str();
  replaceAll(text, "768", std::to_string(columns));
  if (element == "f32")
    for (StringRef cast : {"arith.extf", "arith.truncf"})
      replaceAll(text, cast, "arith.bitcast");
  replaceAll(text, "bf16", element);
  return text;
}
