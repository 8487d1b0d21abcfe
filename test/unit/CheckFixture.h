//===- CheckFixture.h - before, after and what the check says ---*- C++ -*-===//

#ifndef TEST_UNIT_CHECKFIXTURE_H
#define TEST_UNIT_CHECKFIXTURE_H

#include "dialect/IR/MPOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "passes/Check/Check.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"

namespace mlir::mp {

struct Check : testing::Test {
  MLIRContext context{MLIRContext::Threading::DISABLED};
  std::vector<std::string> errors;

  void SetUp() override { context.loadDialect<MPDialect, func::FuncDialect>(); }

  /// Whether `after` is accepted; every error is kept.
  bool accepts(ModuleOp before, ModuleOp after) {
    errors.clear();
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &d) {
      errors.push_back(d.str());
      return success();
    });
    bool accepted = succeeded(checkRewrites(before, after));
    EXPECT_EQ(accepted, errors.empty());
    return accepted;
  }
  bool accepts(const std::string &before, const std::string &after) {
    auto a = parseSourceString<ModuleOp>(before, &context);
    auto b = parseSourceString<ModuleOp>(after, &context);
    EXPECT_TRUE(a && b);
    return a && b && accepts(*a, *b);
  }
  std::string allErrors() const { return llvm::join(errors, "\n"); }
};

/// A function of x : 4xf32 and h : 4xf16 with one result.
inline std::string function(StringRef body, StringRef result = "tensor<4xf32>",
                            StringRef attributes = "") {
  return ("func.func @f(%x: tensor<4xf32>, %h: tensor<4xf16>) -> " + result +
          " " + attributes + " {\n" + body + "\n}")
      .str();
}

inline std::string recorded(StringRef rule, int node,
                            StringRef contract = "precise") {
  return ("attributes {mp.rewrites = [{contract = \"" + contract +
          "\", node = " + Twine(node) + " : i64, op = \"mp.cast\", rule = \"" +
          rule + "\", status = \"applied\", why = \"\"}]}")
      .str();
}

} // namespace mlir::mp

#endif // TEST_UNIT_CHECKFIXTURE_H
