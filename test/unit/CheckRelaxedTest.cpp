//===- CheckRelaxedTest.cpp - which roundings may be added ----------------===//

#include "test/unit/CheckFixture.h"

using namespace mlir;
using namespace mlir::mp;

namespace {
/// A graph whose value %0, node 0, is read by node 3; `after` rounds that read.
struct CheckRelaxed : Check {
  std::string head = "func.func @f(%x: tensor<4x4xf32>, %h: tensor<4x4xbf16>) "
                     "-> (tensor<4x4xf32>, tensor<4x4xf32>) ";
  std::string producer = "aten.tanh.default";
  std::string reader = "aten.mul.Tensor";
  std::string result = "tensor<4x4xf32>";
  std::string half = "bf16";             ///< the half type in the graph
  std::string read = "%0", other = "%1"; ///< what is rounded, what is read
  std::string product = R"(
  %2 = mp.matmul %h, %h : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<4x4xbf16>
  %3 = mp.cast %2 origin(autocast) : tensor<4x4xbf16> to tensor<4x4xf32>)";
  // What the record says.
  std::string rule = "round-store", contract = "relaxed", said = "bf16";
  int node = 4, operand = 0;
  std::string placement = "{epsilon = 1.0e1 : f64}";

  std::string producers() const {
    return "  %0 = mp.aten \"" + producer +
           "\"(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>\n"
           "  %1 = mp.aten \"aten.sin.default\"(%x) : (tensor<4x4xf32>) -> "
           "tensor<4x4xf32>\n" +
           product;
  }
  std::string readers(const std::string &first, const std::string &second) {
    return "\n  %4 = mp.aten \"" + reader + "\"(" + first + ", " + second +
           ") : (tensor<4x4xf32>, tensor<4x4xf32>) -> " + result +
           " loc(fused<4 : i64>[unknown])"
           "\n  %5 = mp.cast %4 origin(user) : " +
           result +
           " to tensor<4x4xf32>\n"
           "  return %5, %3 : tensor<4x4xf32>, tensor<4x4xf32>\n}";
  }
  std::string before() {
    return head + "{\n" + producers() + readers("%0", "%1");
  }
  std::string record() const {
    return "attributes {mp.placement = " + placement +
           ", mp.rewrites = [{contract = \"" + contract + "\", half = " + said +
           ", node = " + std::to_string(node) +
           " : i64, operand = " + std::to_string(operand) +
           " : i64, op = \"mp.aten\", rule = \"" + rule +
           "\", status = \"applied\", why = \"\"}]} ";
  }
  /// `rounded` replaces `operand` of the reader.
  std::string after() {
    std::string narrow = "tensor<4x4x" + half + ">";
    std::string rounding =
        "\n  %n = mp.cast " + read + " origin(mpopt) : tensor<4x4xf32> to " +
        narrow + "\n  %s = mp.materialize %n : " + narrow +
        "\n  %w = mp.cast %s origin(mpopt) : " + narrow + " to tensor<4x4xf32>";
    std::string first = read == "%1" ? "%0" : "%w";
    std::string second = read == "%1" ? "%w" : "%1";
    return head + record() + "{\n" + producers() + rounding +
           readers(first, second);
  }
  bool accepts() { return Check::accepts(before(), after()); }
  /// `why` is the first of the violations.
  void expectRefused(const std::string &why, size_t violations = 1) {
    EXPECT_FALSE(accepts());
    ASSERT_EQ(errors.size(), violations) << allErrors();
    EXPECT_NE(errors[0].find(why), std::string::npos) << allErrors();
  }
};
} // namespace

TEST_F(CheckRelaxed, RecordedRoundingOfARead) {
  EXPECT_TRUE(accepts()) << allErrors();
  SmallVector<AddedRoundings> added;
  auto a = parseSourceString<ModuleOp>(before(), &context);
  auto b = parseSourceString<ModuleOp>(after(), &context);
  ASSERT_TRUE(succeeded(checkRewrites(*a, *b, &added)));
  ASSERT_EQ(added.size(), 1u);
  EXPECT_EQ(added[0].function, "f");
  EXPECT_EQ(added[0].reads, 1);
  EXPECT_EQ(added[0].calls, 0);
  EXPECT_EQ(added[0].epsilon, 10);
  // A product of halves is rounded and is one of two results; what is read
  // rounded reaches the other one.
  EXPECT_EQ(added[0].noiseBefore, 0.5);
  EXPECT_EQ(added[0].noiseAdded, 0.5);
  EXPECT_DOUBLE_EQ(added[0].growth(), std::sqrt(2.0) - 1);
}

TEST_F(CheckRelaxed, RoundingWithoutARecord) {
  rule = "place-store";
  contract = "strict";
  expectRefused("aten.mul.Tensor in f32 reads aten.tanh.default in f32 rounded "
                "to bf16, which no record says");
}

TEST_F(CheckRelaxed, RoundingAtAnotherOperand) {
  read = "%1";
  expectRefused("aten.mul.Tensor in f32 reads aten.tanh.default in f32 without "
                "the rounding to bf16 that a record names");
}

// The record is wrong, and there is a rounding that none names.
TEST_F(CheckRelaxed, RoundingAtAnotherReader) {
  node = 0;
  expectRefused("illegal rounding of operand 0 to 'bf16': it is an argument",
                2);
}

TEST_F(CheckRelaxed, RoundingToAnotherHalf) {
  half = "f16";
  expectRefused("output 0 of @f differs");
}

TEST_F(CheckRelaxed, RecordNamesWhatIsNotThere) {
  node = 3;
  expectRefused("record of round-store for node 3 names no operator of @f", 2);
  node = 4;
  operand = 2;
  expectRefused("names no operand of it", 2);
  operand = 0;
  said = "f32";
  expectRefused("names no half type", 2);
}

TEST_F(CheckRelaxed, RecordOfAnotherContract) {
  contract = "precise";
  expectRefused("record of round-store for node 4 claims the contract "
                "'precise'");
}

TEST_F(CheckRelaxed, PinnedValue) {
  producer = "aten.rsqrt.default";
  expectRefused("illegal rounding of operand 0 to 'bf16': it is pinned by");
}

TEST_F(CheckRelaxed, PinThatOnlyTheGraphAfterCarries) {
  std::string graph = after();
  std::string name = "\"aten.mul.Tensor\"(%w, %1) ";
  size_t place = graph.find(name);
  ASSERT_NE(place, std::string::npos);
  graph.insert(place + name.size(),
               "{mp.pin = [#mp.pin<fp32 operands, \"range\", \"measured\">]} ");
  EXPECT_FALSE(Check::accepts(before(), graph));
  EXPECT_NE(allErrors().find("it is pinned by range (measured)"),
            std::string::npos)
      << allErrors();
}

TEST_F(CheckRelaxed, ObservedRounding) {
  reader = "aten.eq.Tensor";
  result = "tensor<4x4xi1>";
  expectRefused("aten.eq.Tensor observes it");
}

TEST_F(CheckRelaxed, LibraryCallsReadTheirTypes) {
  reader = "aten.mm.default";
  expectRefused("aten.mm is no generated kernel");
}

TEST_F(CheckRelaxed, BudgetHolds) {
  placement = "{epsilon = 1.0e-1 : f64}";
  expectRefused("adds roundings whose noise is");
  placement = "{noise = 1.0e1 : f64}";
  expectRefused("mp.placement names no epsilon");
  placement = "{epsilon = 0.42 : f64}";
  EXPECT_TRUE(accepts()) << allErrors();
}

//===----------------------------------------------------------------------===//
// Calls in a half type
//===----------------------------------------------------------------------===//

namespace {
/// Node 0 is a product of f32, whose result node 1 reads.
struct CheckHalfCall : Check {
  std::string head = "func.func @f(%x: tensor<4x4xf32>) -> tensor<4x4xf32> ";
  std::string reader = "aten.tanh.default";
  std::string precision = "bf16", said = "bf16", more;

  std::string tail(const std::string &value) {
    return "  %r = mp.aten \"" + reader + "\"(" + value +
           ") : (tensor<4x4xf32>) -> tensor<4x4xf32> loc(fused<1 : "
           "i64>[unknown])\n"
           "  return %r : tensor<4x4xf32>\n}\n"
           "#product = loc(fused<0 : i64>[unknown])";
  }
  std::string before() {
    return head + R"({
  %0 = mp.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc(#product)
)" + tail("%0");
  }
  /// The product of halves, with a result of type `result`.
  std::string after(const std::string &result = "bf16") {
    std::string record =
        "attributes {mp.placement = {precision = " + precision +
        "}, mp.rewrites = [{contract = \"relaxed\", half = " + said +
        ", node = 0 : i64" + more +
        ", rule = \"half-call\", status = \"applied\"}]} ";
    return head + record + R"({
  %h = mp.cast %x origin(autocast) : tensor<4x4xf32> to tensor<4x4xbf16>
  %0 = mp.matmul %h, %h : (tensor<4x4xbf16>, tensor<4x4xbf16>) -> tensor<4x4x)" +
           result + R"(> loc(#product)
  %w = mp.cast %0 origin(autocast) : tensor<4x4x)" +
           result + "> to tensor<4x4xf32>\n" + tail("%w");
  }
  void expectRefused(const std::string &why) {
    EXPECT_FALSE(accepts(before(), after()));
    EXPECT_NE(allErrors().find(why), std::string::npos) << allErrors();
  }
};
} // namespace

TEST_F(CheckHalfCall, CallAsAsked) {
  EXPECT_TRUE(accepts(before(), after())) << allErrors();
  EXPECT_FALSE(accepts(before(), after("f32")));
  more = ", result = f32";
  EXPECT_TRUE(accepts(before(), after("f32"))) << allErrors();
  EXPECT_FALSE(accepts(before(), after()));
}

TEST_F(CheckHalfCall, OnlyInTheTypeThatWasAskedFor) {
  precision = "f16";
  expectRefused("illegal call in 'bf16': nobody asked for that precision");
  precision = said = "f16";
  expectRefused("output 0 of @f differs");
}

TEST_F(CheckHalfCall, PinnedResultIsNotRounded) {
  std::string pinned = before();
  std::string place = "mp.matmul %x, %x ";
  pinned.insert(pinned.find(place) + place.size(),
                "{mp.pin = [#mp.pin<fp32 result, \"policy\", \"mine\">]} ");
  EXPECT_FALSE(accepts(pinned, after()));
  EXPECT_NE(allErrors().find("a result is pinned by policy (mine)"),
            std::string::npos)
      << allErrors();
  more = ", result = f32";
  EXPECT_TRUE(accepts(pinned, after("f32"))) << allErrors();
}
