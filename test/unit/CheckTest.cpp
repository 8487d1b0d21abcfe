//===- CheckTest.cpp - what the translation validator lets pass -----------===//

#include "mlir/IR/Builders.h"
#include "test/unit/CheckFixture.h"

#include <ctime>

using namespace mlir;
using namespace mlir::mp;

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
