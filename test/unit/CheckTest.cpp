//===- CheckTest.cpp - what the translation validator lets pass -----------===//

#include "passes/Check/Check.h"
#include "dialect/IR/MPOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"

#include <ctime>

using namespace mlir;
using namespace mlir::mp;

namespace {
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
} // namespace

/// A function of x : 4xf32 and h : 4xf16 with one result.
static std::string function(StringRef body, StringRef result = "tensor<4xf32>",
                            StringRef attributes = "") {
  return ("func.func @f(%x: tensor<4xf32>, %h: tensor<4xf16>) -> " + result +
          " " + attributes + " {\n" + body + "\n}")
      .str();
}

static std::string recorded(StringRef rule, int node,
                            StringRef contract = "precise") {
  return ("attributes {mp.rewrites = [{contract = \"" + contract +
          "\", node = " + Twine(node) + " : i64, op = \"mp.cast\", rule = \"" +
          rule + "\", status = \"applied\", why = \"\"}]}")
      .str();
}

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

TEST_F(Check, ReportsEachViolationOnce) {
  auto graph = [&](StringRef first, StringRef second) {
    std::string text =
        ("func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {\n"
         "  %0 = mp.aten \"aten." +
         first +
         ".default\"(%x) : (tensor<4xf32>) -> tensor<4xf32>\n"
         "  %1 = mp.aten \"aten." +
         second +
         ".default\"(%x) : (tensor<4xf32>) -> tensor<4xf32>\n"
         "  return %0, %1 : tensor<4xf32>, tensor<4xf32>\n}")
            .str();
    return text;
  };
  auto before = parseSourceString<ModuleOp>(graph("exp", "sin"), &context);
  auto after = parseSourceString<ModuleOp>(graph("cos", "tan"), &context);
  std::vector<std::string> texts;
  {
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &error) {
      EXPECT_EQ(error.getSeverity(), DiagnosticSeverity::Error);
      texts.push_back(error.str());
      for (Diagnostic &note : error.getNotes())
        texts.push_back("  " + note.str());
      return success();
    });
    EXPECT_TRUE(failed(checkRewrites(*before, *after)));
  }
  EXPECT_EQ(texts, (std::vector<std::string>{
                       "output 0 of @f differs: aten.exp.default in f32 "
                       "before",
                       "  aten.cos.default in f32 after",
                       "output 1 of @f differs: aten.sin.default in f32 "
                       "before",
                       "  aten.tan.default in f32 after"}));
}

//===----------------------------------------------------------------------===//
// Strict
//===----------------------------------------------------------------------===//

TEST_F(Check, WideningAndNarrowingBackCancels) {
  EXPECT_TRUE(accepts(function(R"(
  %0 = mp.cast %h origin(user) : tensor<4xf16> to tensor<4xf32>
  %1 = mp.cast %0 origin(user) : tensor<4xf32> to tensor<4xf16>
  return %1 : tensor<4xf16>)",
                               "tensor<4xf16>"),
                      function("return %h : tensor<4xf16>", "tensor<4xf16>")))
      << allErrors();
}

TEST_F(Check, NarrowingAndWideningStays) {
  EXPECT_FALSE(accepts(function(R"(
  %0 = mp.cast %x origin(autocast) : tensor<4xf32> to tensor<4xf16>
  %1 = mp.cast %0 origin(autocast) : tensor<4xf16> to tensor<4xf32>
  return %1 : tensor<4xf32>)"),
                       function("return %x : tensor<4xf32>")));
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_NE(errors[0].find("output 0 of @f differs"), std::string::npos)
      << allErrors();
}

TEST_F(Check, HalfTypesAreNotExchanged) {
  StringRef detour = R"(
  %0 = mp.cast %x origin(user) : tensor<4xf32> to tensor<4xf16>
  %1 = mp.cast %0 origin(user) : tensor<4xf16> to tensor<4xbf16>
  return %1 : tensor<4xbf16>)";
  StringRef direct = R"(
  %0 = mp.cast %x origin(user) : tensor<4xf32> to tensor<4xbf16>
  return %0 : tensor<4xbf16>)";
  EXPECT_FALSE(accepts(function(detour, "tensor<4xbf16>"),
                       function(direct, "tensor<4xbf16>")));
}

TEST_F(Check, RoundIsNarrowingAndWidening) {
  EXPECT_TRUE(accepts(function(R"(
  %0 = mp.cast %x origin(user) : tensor<4xf32> to tensor<4xf16>
  %1 = mp.cast %0 origin(user) : tensor<4xf16> to tensor<4xf32>
  return %1 : tensor<4xf32>)"),
                      function(R"(
  %0 = mp.round %x to f16 origin(user) : tensor<4xf32>
  return %0 : tensor<4xf32>)")))
      << allErrors();
}

/// A rounding of `callee`(flip(x)), and `callee`(flip(rounding of x)).
static std::pair<std::string, std::string>
roundedBy(const std::string &callee) {
  std::string flip = "\"aten.flip.default\"";
  std::string before =
      "  %0 = mp.aten " + flip +
      "(%x) {args = {dims = [0]}} : (tensor<4xf32>) -> tensor<4xf32>\n"
      "  %1 = mp.aten \"" +
      callee +
      "\"(%0) : (tensor<4xf32>) -> tensor<4xf32>\n"
      "  %2 = mp.cast %1 origin(user) : tensor<4xf32> to tensor<4xf16>\n"
      "  return %2 : tensor<4xf16>";
  std::string after =
      "  %0 = mp.cast %x origin(user) : tensor<4xf32> to tensor<4xf16>\n"
      "  %1 = mp.aten " +
      flip +
      "(%0) {args = {dims = [0]}} : (tensor<4xf16>) -> tensor<4xf16>\n"
      "  %2 = mp.aten \"" +
      callee +
      "\"(%1) : (tensor<4xf16>) -> tensor<4xf16>\n"
      "  return %2 : tensor<4xf16>";
  return {function(before, "tensor<4xf16>"), function(after, "tensor<4xf16>")};
}

TEST_F(Check, RoundingCommutesWithMovementAndSign) {
  for (const char *callee :
       {"aten.clone.default", "aten.neg.default", "aten.abs.default"}) {
    auto [before, after] = roundedBy(callee);
    EXPECT_TRUE(accepts(before, after)) << callee << allErrors();
  }
}

// f16 rounds -1e-9 to -0, which relu keeps; relu of -1e-9 is +0.
TEST_F(Check, RoundingDoesNotCommuteWithRelu) {
  auto [before, after] = roundedBy("aten.relu.default");
  EXPECT_FALSE(accepts(before, after));
}

TEST_F(Check, ReluOfWidenedHalvesIsReluOfHalves) {
  EXPECT_TRUE(accepts(function(R"(
  %0 = mp.cast %h origin(user) : tensor<4xf16> to tensor<4xf32>
  %1 = mp.aten "aten.neg.default"(%0) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = mp.aten "aten.relu.default"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = mp.cast %2 origin(user) : tensor<4xf32> to tensor<4xf16>
  return %3 : tensor<4xf16>)",
                               "tensor<4xf16>"),
                      function(R"(
  %1 = mp.aten "aten.neg.default"(%h) : (tensor<4xf16>) -> tensor<4xf16>
  %2 = mp.aten "aten.relu.default"(%1) : (tensor<4xf16>) -> tensor<4xf16>
  return %2 : tensor<4xf16>)",
                               "tensor<4xf16>")))
      << allErrors();
}

// where converts integers to the type of its result: through f32 and then f16
// they round twice.
TEST_F(Check, IntegersAmongValuesStopAConversion) {
  std::string head = "func.func @f(%m: tensor<4xi1>, %x: tensor<4xf32>, "
                     "%i: tensor<4xi64>) -> tensor<4xf16> {";
  EXPECT_FALSE(accepts(head + R"(
  %0 = mp.aten "aten.where.self"(%m, %x, %i) : (tensor<4xi1>, tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>
  %1 = mp.cast %0 origin(user) : tensor<4xf32> to tensor<4xf16>
  return %1 : tensor<4xf16>
})",
                       head + R"(
  %0 = mp.cast %x origin(user) : tensor<4xf32> to tensor<4xf16>
  %1 = mp.aten "aten.where.self"(%m, %0, %i) : (tensor<4xi1>, tensor<4xf16>, tensor<4xi64>) -> tensor<4xf16>
  return %1 : tensor<4xf16>
})"));
}

/// pad with `value`, before and after the rounding.
static std::pair<std::string, std::string> paddings(StringRef value) {
  std::string pad = ("{args = {pad = [1, 0], value = " + value + "}}").str();
  std::string before =
      "  %0 = mp.aten \"aten.constant_pad_nd.default\"(%x) " + pad +
      " : (tensor<4xf32>) -> tensor<5xf32>\n"
      "  %1 = mp.cast %0 origin(user) : tensor<5xf32> to tensor<5xf16>\n"
      "  return %1 : tensor<5xf16>";
  std::string after =
      "  %0 = mp.cast %x origin(user) : tensor<4xf32> to tensor<4xf16>\n"
      "  %1 = mp.aten \"aten.constant_pad_nd.default\"(%0) " +
      pad +
      " : (tensor<4xf16>) -> tensor<5xf16>\n"
      "  return %1 : tensor<5xf16>";
  return {function(before, "tensor<5xf16>"), function(after, "tensor<5xf16>")};
}

TEST_F(Check, FillerMustBeExact) {
  for (StringRef exact : {"0.0", "-1.5", "0xFFF0000000000000 : f64", "2048"}) {
    auto [before, after] = paddings(exact);
    EXPECT_TRUE(accepts(before, after)) << exact.str() << allErrors();
  }
  for (StringRef inexact : {"0.1", "-1.0e9", "70000", "2049"}) {
    auto [before, after] = paddings(inexact);
    EXPECT_FALSE(accepts(before, after)) << inexact.str();
  }
}

TEST_F(Check, RoundingDoesNotCommuteWithArithmetic) {
  for (StringRef callee : {"aten.exp.default", "aten.cumsum.default"}) {
    std::string before =
        ("  %0 = mp.aten \"" + callee +
         "\"(%x) : (tensor<4xf32>) -> tensor<4xf32>\n"
         "  %1 = mp.cast %0 origin(autocast) : tensor<4xf32> to tensor<4xf16>\n"
         "  return %1 : tensor<4xf16>")
            .str();
    std::string after =
        ("  %0 = mp.cast %x origin(autocast) : tensor<4xf32> to tensor<4xf16>\n"
         "  %1 = mp.aten \"" +
         callee +
         "\"(%0) : (tensor<4xf16>) -> tensor<4xf16>\n"
         "  return %1 : tensor<4xf16>")
            .str();
    EXPECT_FALSE(accepts(function(before, "tensor<4xf16>"),
                         function(after, "tensor<4xf16>")));
  }
}

TEST_F(Check, RaisedOperatorsAreTheFrameworks) {
  EXPECT_TRUE(accepts(function(R"(
  %0 = mp.aten "aten.gelu.default"(%x) {args = {approximate = "tanh"}} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>)"),
                      function(R"(
  %0 = mp.gelu(%x) {args = {approximate = "tanh"}} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>)")))
      << allErrors();
  EXPECT_FALSE(accepts(function(R"(
  %0 = mp.aten "aten.gelu.default"(%x) {args = {approximate = "tanh"}} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>)"),
                       function(R"(
  %0 = mp.gelu(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>)")));
}

TEST_F(Check, ImplicitPromotionIsAWidening) {
  EXPECT_TRUE(accepts(function(R"(
  %0 = mp.aten "aten.add.Tensor"(%x, %h) : (tensor<4xf32>, tensor<4xf16>) -> tensor<4xf32>
  return %0 : tensor<4xf32>)"),
                      function(R"(
  %0 = mp.cast %h origin(promotion) : tensor<4xf16> to tensor<4xf32>
  %1 = mp.aten "aten.add.Tensor"(%x, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>)")))
      << allErrors();
}

TEST_F(Check, EffectsKeepTheirOrder) {
  StringRef draw = R"(
  %0 = mp.aten effects "aten.bernoulli.default"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = mp.aten effects "aten.bernoulli.p"(%x) {args = {p = 0.5}} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>)";
  StringRef swapped = R"(
  %1 = mp.aten effects "aten.bernoulli.p"(%x) {args = {p = 0.5}} : (tensor<4xf32>) -> tensor<4xf32>
  %0 = mp.aten effects "aten.bernoulli.default"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>)";
  StringRef missing = R"(
  %0 = mp.aten effects "aten.bernoulli.default"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>)";
  EXPECT_TRUE(accepts(function(draw), function(draw)));
  EXPECT_FALSE(accepts(function(draw), function(swapped)));
  EXPECT_FALSE(accepts(function(draw), function(missing)));
}

// Two draws are two values, also where nobody marked the operator.
TEST_F(Check, RandomNumbersAreNotShared) {
  EXPECT_FALSE(accepts(function(R"(
  %0 = mp.aten "aten.rand_like.default"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = mp.aten "aten.rand_like.default"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = mp.aten "aten.add.Tensor"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>)"),
                       function(R"(
  %0 = mp.aten "aten.rand_like.default"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %2 = mp.aten "aten.add.Tensor"(%0, %0) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>)")));
}

TEST_F(Check, SignatureMustNotChange) {
  EXPECT_FALSE(accepts(function("return %x : tensor<4xf32>"),
                       function("return %h : tensor<4xf16>", "tensor<4xf16>")));
  EXPECT_FALSE(accepts("func.func @f(%x: tensor<4xf32> {mp.role = \"input\"}) "
                       "{ return }",
                       "func.func @f(%x: tensor<4xf32>) { return }"));
  EXPECT_FALSE(
      accepts("func.func @f() { return }", "func.func @g() { return }"));
}

//===----------------------------------------------------------------------===//
// Precise
//===----------------------------------------------------------------------===//

/// Node 0 narrows x for `origin`, node 1 widens it, `rest` reads %1.
static std::string roundTrip(StringRef origin, StringRef rest) {
  return function(("  %0 = mp.cast %x origin(" + origin +
                   ") : tensor<4xf32> to tensor<4xbf16>\n"
                   "  %1 = mp.cast %0 origin(autocast) : tensor<4xbf16> to "
                   "tensor<4xf32>\n" +
                   rest)
                      .str());
}

static const char *const kReturnWide = "return %1 : tensor<4xf32>";
static const char *const kReturnInput = "return %x : tensor<4xf32>";

TEST_F(Check, RecordedDropOfAutocastRounding) {
  for (StringRef origin : {"autocast", "promotion", "decomposition"})
    EXPECT_TRUE(accepts(roundTrip(origin, kReturnWide),
                        function(kReturnInput, "tensor<4xf32>",
                                 recorded("drop-autocast-rounding", 0))))
        << allErrors();
}

TEST_F(Check, UsersRoundingIsNeverDropped) {
  for (StringRef origin : {"user", "mpopt"}) {
    EXPECT_FALSE(accepts(roundTrip(origin, kReturnWide),
                         function(kReturnInput, "tensor<4xf32>",
                                  recorded("drop-autocast-rounding", 0))));
    ASSERT_EQ(errors.size(), 1u) << allErrors();
    EXPECT_NE(errors[0].find("its origin is " + origin.str()),
              std::string::npos)
        << allErrors();
  }
}

TEST_F(Check, RecordMustNameThatRounding) {
  for (int node : {1, 7})
    EXPECT_FALSE(accepts(roundTrip("autocast", kReturnWide),
                         function(kReturnInput, "tensor<4xf32>",
                                  recorded("drop-autocast-rounding", node))));
}

TEST_F(Check, RecordMustNameItsContract) {
  EXPECT_FALSE(
      accepts(roundTrip("autocast", kReturnWide),
              function(kReturnInput, "tensor<4xf32>",
                       recorded("drop-autocast-rounding", 0, "strict"))));
  EXPECT_FALSE(accepts(function(kReturnInput),
                       function(kReturnInput, "tensor<4xf32>",
                                recorded("invent-a-rule", 0, "precise"))));
}

TEST_F(Check, ObservedRoundingIsNotDropped) {
  struct Observer {
    const char *before, *after;
  } observers[] = {
      {R"(
  %2 = mp.aten "aten.eq.Tensor"(%1, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %3 = mp.cast %2 origin(user) : tensor<4xi1> to tensor<4xf32>
  return %3 : tensor<4xf32>)",
       R"(
  %2 = mp.aten "aten.eq.Tensor"(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %3 = mp.cast %2 origin(user) : tensor<4xi1> to tensor<4xf32>
  return %3 : tensor<4xf32>)"},
      {R"(
  %2 = mp.aten "aten.neg.default"(%1) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = mp.aten "aten.floor.default"(%2) : (tensor<4xf32>) -> tensor<4xf32>
  return %3 : tensor<4xf32>)",
       R"(
  %2 = mp.aten "aten.neg.default"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = mp.aten "aten.floor.default"(%2) : (tensor<4xf32>) -> tensor<4xf32>
  return %3 : tensor<4xf32>)"},
      {R"(
  %2 = mp.cast %1 origin(user) : tensor<4xf32> to tensor<4xi32>
  %3 = mp.cast %2 origin(user) : tensor<4xi32> to tensor<4xf32>
  return %3 : tensor<4xf32>)",
       R"(
  %2 = mp.cast %x origin(user) : tensor<4xf32> to tensor<4xi32>
  %3 = mp.cast %2 origin(user) : tensor<4xi32> to tensor<4xf32>
  return %3 : tensor<4xf32>)"},
  };
  for (const Observer &o : observers) {
    EXPECT_FALSE(accepts(roundTrip("autocast", o.before),
                         function(o.after, "tensor<4xf32>",
                                  recorded("drop-autocast-rounding", 0))));
    EXPECT_NE(allErrors().find("observes it"), std::string::npos)
        << allErrors();
  }
}

// The rounding again to the same format makes both equal.
TEST_F(Check, RoundingAgainHidesTheDrop) {
  StringRef before = R"(
  %2 = mp.cast %1 origin(user) : tensor<4xf32> to tensor<4xbf16>
  %3 = mp.aten "aten.floor.default"(%2) : (tensor<4xbf16>) -> tensor<4xbf16>
  %4 = mp.cast %3 origin(user) : tensor<4xbf16> to tensor<4xf32>
  return %4 : tensor<4xf32>)";
  StringRef after = R"(
  %2 = mp.cast %x origin(user) : tensor<4xf32> to tensor<4xbf16>
  %3 = mp.aten "aten.floor.default"(%2) : (tensor<4xbf16>) -> tensor<4xbf16>
  %4 = mp.cast %3 origin(user) : tensor<4xbf16> to tensor<4xf32>
  return %4 : tensor<4xf32>)";
  EXPECT_TRUE(accepts(
      roundTrip("autocast", before),
      function(after, "tensor<4xf32>", recorded("drop-autocast-rounding", 0))))
      << allErrors();
}

TEST_F(Check, DropNeedsEveryReader) {
  // One reader stays with the half value.
  EXPECT_FALSE(accepts(roundTrip("autocast", R"(
  %2 = mp.aten "aten.exp.default"(%0) : (tensor<4xbf16>) -> tensor<4xbf16>
  %3 = mp.cast %2 origin(user) : tensor<4xbf16> to tensor<4xf32>
  %4 = mp.aten "aten.add.Tensor"(%1, %3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %4 : tensor<4xf32>)"),
                       function(R"(
  %0 = mp.cast %x origin(autocast) : tensor<4xf32> to tensor<4xbf16>
  %2 = mp.aten "aten.exp.default"(%0) : (tensor<4xbf16>) -> tensor<4xbf16>
  %3 = mp.cast %2 origin(user) : tensor<4xbf16> to tensor<4xf32>
  %4 = mp.aten "aten.add.Tensor"(%x, %3) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %4 : tensor<4xf32>)",
                                "tensor<4xf32>",
                                recorded("drop-autocast-rounding", 0))));
  EXPECT_NE(allErrors().find("aten.exp.default\" reads it"), std::string::npos)
      << allErrors();
}

TEST_F(Check, BackwardMustSeeTheSameRounding) {
  StringRef before = R"(
  %2 = mp.cast %x origin(autocast) {mp.backward} : tensor<4xf32> to tensor<4xbf16>
  %3 = mp.cast %2 origin(autocast) {mp.backward} : tensor<4xbf16> to tensor<4xf32>
  %4 = mp.aten "aten.mul.Tensor"(%1, %3) {mp.backward} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %4 : tensor<4xf32>)";
  StringRef after = R"(
  %2 = mp.cast %x origin(autocast) {mp.backward} : tensor<4xf32> to tensor<4xbf16>
  %3 = mp.cast %2 origin(autocast) {mp.backward} : tensor<4xbf16> to tensor<4xf32>
  %4 = mp.aten "aten.mul.Tensor"(%x, %3) {mp.backward} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %4 : tensor<4xf32>)";
  EXPECT_FALSE(accepts(
      roundTrip("autocast", before),
      function(after, "tensor<4xf32>", recorded("drop-autocast-rounding", 0))));
  EXPECT_NE(allErrors().find("rounds the same value and stays"),
            std::string::npos)
      << allErrors();
}

TEST_F(Check, MatmulOfHalvesNeedsItsRecord) {
  StringRef head = "func.func @f(%a: tensor<2x2xbf16>) -> tensor<2x2xf32> ";
  std::string before = (head + R"({
  %0 = mp.cast %a origin(autocast) : tensor<2x2xbf16> to tensor<2x2xf32>
  %1 = mp.matmul %0, %0 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %1 : tensor<2x2xf32>
})")
                           .str();
  auto after = [&](StringRef attributes) {
    return (head + attributes + R"( {
  %1 = mp.matmul %a, %a : (tensor<2x2xbf16>, tensor<2x2xbf16>) -> tensor<2x2xf32> loc(#node)
  return %1 : tensor<2x2xf32>
}
#node = loc(fused<1 : i64>[unknown]))")
        .str();
  };
  EXPECT_TRUE(accepts(before, after(recorded("matmul-half-operands", 1))))
      << allErrors();
  EXPECT_FALSE(accepts(before, after(recorded("matmul-half-operands", 0))));
  EXPECT_FALSE(accepts(before, after("")));
}

//===----------------------------------------------------------------------===//
// Size
//===----------------------------------------------------------------------===//

/// neg, then cast to the next type, `size` operations in all.
static OwningOpRef<ModuleOp> longChain(MLIRContext *context, int64_t size,
                                       ArrayRef<Type> elements) {
  OpBuilder builder(context);
  Location loc = builder.getUnknownLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  builder.setInsertionPointToEnd(module->getBody());
  Type wide = RankedTensorType::get({4}, builder.getF32Type());
  auto func = func::FuncOp::create(builder, loc, "f",
                                   builder.getFunctionType({wide}, {}));
  builder.setInsertionPointToEnd(func.addEntryBlock());
  Value value = func.getArgument(0);
  for (int64_t i = 0; i != size / 2; ++i) {
    value = AtenOp::create(builder, loc, TypeRange(value.getType()),
                           "aten.neg.default", value, nullptr, false)
                ->getResult(0);
    value = CastOp::create(builder, loc, value, elements[i % elements.size()],
                           CastOrigin::user);
  }
  func::ReturnOp::create(builder, loc, value);
  func.setType(builder.getFunctionType({wide}, {value.getType()}));
  return module;
}

TEST_F(Check, HundredThousandOperations) {
  Builder b(&context);
  auto module = longChain(&context, 100000, {b.getBF16Type(), b.getF32Type()});
  // Processor time: other work on the machine must not count.
  std::clock_t start = std::clock();
  EXPECT_TRUE(accepts(*module, *module)) << allErrors();
  double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
  RecordProperty("seconds", std::to_string(seconds));
  // Near linear: 2 s would be an order of magnitude more than it takes.
  // Printed, not judged: a quadratic check would take minutes.
  EXPECT_LT(seconds, 60);
}

// Each cast rounds anew, so that the normal form grows with the square: the
// check gives up with a reason and does not run for hours.
TEST_F(Check, EndlessRoundingsAreRefused) {
  Builder b(&context);
  auto module = longChain(&context, 4000, {b.getBF16Type(), b.getF16Type()});
  EXPECT_FALSE(accepts(*module, *module));
  EXPECT_NE(allErrors().find("too many roundings"), std::string::npos)
      << allErrors();
}

/// x is rounded twice in forward; backward widens the second and goes back.
static std::string roundedTwice(StringRef first, StringRef last,
                                StringRef attributes = "") {
  return ("func.func @f(%x: tensor<4xf32>) -> (tensor<4xf32>, "
          "tensor<4xbf16>) " +
          attributes + R"( {
  %0 = mp.cast %x origin(autocast) : tensor<4xf32> to tensor<4xf32>
  %1 = mp.cast %0 origin(autocast) : tensor<4xf32> to tensor<4xbf16>
  %2 = mp.cast %1 origin(promotion) : tensor<4xbf16> to tensor<4xf32>
  %3 = mp.cast %x origin(autocast) : tensor<4xf32> to tensor<4xbf16>
  %4 = mp.cast %3 origin(promotion) {mp.backward} : tensor<4xbf16> to tensor<4xf32>
  %5 = mp.cast %4 origin(autocast) {mp.backward} : tensor<4xf32> to tensor<4xbf16>
  %6 = mp.cast %x origin(autocast) {mp.backward} : tensor<4xf32> to tensor<4xbf16>
  return )" +
          first + ", " + last + " : tensor<4xf32>, tensor<4xbf16>\n}")
      .str();
}

// A conversion that goes back to a rounded value rounds only if that rounding
// is gone.
TEST_F(Check, GoingBackIsNoRoundingOfItsOwn) {
  std::string before = roundedTwice("%2", "%5");
  EXPECT_TRUE(accepts(
      before, roundedTwice("%x", "%3", recorded("drop-autocast-rounding", 1))))
      << allErrors();
  EXPECT_FALSE(accepts(
      before, roundedTwice("%2", "%6", recorded("drop-autocast-rounding", 3))));
  EXPECT_NE(allErrors().find("node 5 rounds the same value and stays"),
            std::string::npos)
      << allErrors();
}
