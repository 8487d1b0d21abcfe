//===- CheckRecordsTest.cpp - what records of precise rewrites allow ------===//

#include "test/unit/CheckFixture.h"

using namespace mlir;
using namespace mlir::mp;

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

//===----------------------------------------------------------------------===//
// Products that hand on their accumulators
//===----------------------------------------------------------------------===//

static std::string product(StringRef attributes, StringRef body) {
  return ("func.func @f(%a: tensor<2x2xbf16>) -> tensor<2x2xf32> " +
          attributes + " {\n" + body +
          "\n}\n#product = loc(fused<0 : i64>[unknown])")
      .str();
}

/// Node 0 is a product of halves, node 1 widens it, and `rest` reads %1.
static std::string roundedProduct(StringRef rest) {
  return product("", (R"(
  %0 = mp.matmul %a, %a : (tensor<2x2xbf16>, tensor<2x2xbf16>) -> tensor<2x2xbf16> loc(#product)
  %1 = mp.cast %0 origin(autocast) : tensor<2x2xbf16> to tensor<2x2xf32>)" +
                      rest)
                         .str());
}

/// The same with an f32 result.
static std::string wideProduct(StringRef rules, StringRef rest) {
  std::string records;
  for (StringRef rule : llvm::split(rules, ' '))
    records += (records.empty() ? "" : ", ") +
               ("{contract = \"precise\", node = 0 : i64, rule = \"" + rule +
                "\", status = \"applied\"}")
                   .str();
  return product("attributes {mp.rewrites = [" + records + "]}", (R"(
  %1 = mp.matmul %a, %a : (tensor<2x2xbf16>, tensor<2x2xbf16>) -> tensor<2x2xf32> loc(#product))" +
                                                                  rest)
                                                                     .str());
}

static const char *const kExp = R"(
  %2 = mp.aten "aten.exp.default"(%1) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return %2 : tensor<2x2xf32>)";

TEST_F(Check, ProductThatReadersWidenStoresItsAccumulator) {
  std::string both = "wide-result drop-autocast-rounding";
  EXPECT_TRUE(accepts(roundedProduct(kExp), wideProduct(both, kExp)))
      << allErrors();
  // The wide result alone changes no value, so that readers must round it.
  EXPECT_FALSE(accepts(roundedProduct(kExp), wideProduct("wide-result", kExp)));
  EXPECT_TRUE(accepts(roundedProduct(kExp), wideProduct("wide-result", R"(
  %n = mp.cast %1 origin(autocast) : tensor<2x2xf32> to tensor<2x2xbf16>
  %w = mp.cast %n origin(autocast) : tensor<2x2xbf16> to tensor<2x2xf32>
  %2 = mp.aten "aten.exp.default"(%w) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return %2 : tensor<2x2xf32>)")))
      << allErrors();
  EXPECT_FALSE(accepts(roundedProduct(kExp),
                       wideProduct("drop-autocast-rounding", kExp)));
}

TEST_F(Check, ProductIsWideForEveryReader) {
  auto readers = [](StringRef half, StringRef narrowing) {
    return ("\n" + narrowing + "  %2 = mp.matmul " + half + ", " + half +
            " : (tensor<2x2xbf16>, tensor<2x2xbf16>) -> tensor<2x2xbf16>\n"
            "  %3 = mp.cast %2 origin(user) : tensor<2x2xbf16> to "
            "tensor<2x2xf32>\n"
            "  %4 = mp.aten \"aten.add.Tensor\"(%1, %3) : (tensor<2x2xf32>, "
            "tensor<2x2xf32>) -> tensor<2x2xf32>\n"
            "  return %4 : tensor<2x2xf32>")
        .str();
  };
  EXPECT_FALSE(accepts(
      roundedProduct(readers("%0", "")),
      wideProduct("wide-result drop-autocast-rounding",
                  readers("%n", "  %n = mp.cast %1 origin(autocast) : "
                                "tensor<2x2xf32> to tensor<2x2xbf16>\n"))));
  EXPECT_NE(allErrors().find("aten.mm\" reads it as 'bf16'"), std::string::npos)
      << allErrors();
}

TEST_F(Check, OnlyProductsOfHalvesHaveWideResults) {
  std::string sum = product("", R"(
  %0 = mp.aten "aten.add.Tensor"(%a, %a) : (tensor<2x2xbf16>, tensor<2x2xbf16>) -> tensor<2x2xbf16> loc(#product)
  %1 = mp.cast %0 origin(autocast) : tensor<2x2xbf16> to tensor<2x2xf32>
  return %1 : tensor<2x2xf32>)");
  EXPECT_FALSE(accepts(sum, wideProduct("wide-result", kExp)));
  EXPECT_NE(allErrors().find("names no product of halves of @f"),
            std::string::npos)
      << allErrors();
}
