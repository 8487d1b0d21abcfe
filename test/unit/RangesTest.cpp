//===- RangesTest.cpp - the file of measured ranges -----------------------===//

#include "passes/Pins/Ranges.h"
#include "dialect/Graph/Graph.h"
#include "dialect/IR/MPOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::mp;

namespace {
/// One row, of which a test changes what it is about.
struct RowText {
  std::string module = "h.0", op = "aten.mm.default", phase = "forward";
  std::string ordinal = "0", absmax = "4.5", result = "0", more;

  std::string str() const {
    return R"({"module": ")" + module + R"(", "op": ")" + op +
           R"(", "phase": ")" + phase + R"(", "ordinal": )" + ordinal +
           R"(, "result": )" + result + R"(, "elements": 10, "nonzero": 8,)" +
           R"("absmax": )" + absmax + R"(, "rms": 1.5, "inf": 1, "nan": 2,)" +
           R"("below": {"float16_normal": 0.5, "float16_subnormal": 0.25,)" +
           R"("bfloat16_normal": 0.125, "bfloat16_subnormal": 0})" + more + "}";
  }
};
} // namespace

static std::string file(ArrayRef<RowText> rows,
                        StringRef head = R"("mpopt-ranges", "version": 1)") {
  std::string text = (R"({"schema": )" + head + R"(, "values": [)").str();
  for (const RowText &row : rows)
    text += (&row == rows.begin() ? "" : ",") + row.str();
  return text + "]}";
}

static Ranges parsed(ArrayRef<RowText> rows) {
  llvm::Expected<Ranges> ranges = parseRanges(file(rows), "r.json");
  if (ranges)
    return std::move(*ranges);
  ADD_FAILURE() << llvm::toString(ranges.takeError());
  return {};
}

static std::string errorOf(StringRef text) {
  llvm::Expected<Ranges> ranges = parseRanges(text, "r.json");
  return ranges ? "" : llvm::toString(ranges.takeError());
}

TEST(Ranges, FindsARowByItsWholeKey) {
  RowText row;
  row.ordinal = "3";
  row.result = "1";
  row.phase = "backward";
  row.more = R"(, "head_logits": [1.5, -2])";
  Ranges ranges = parsed(row);
  ASSERT_EQ(ranges.size(), 1u);
  const Range *range = ranges.find("h.0", "aten.mm.default", 3, true, 1);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->absmax, 4.5);
  EXPECT_EQ(range->rms, 1.5);
  EXPECT_EQ(range->elements, 10);
  EXPECT_EQ(range->nonzero, 8);
  EXPECT_EQ(range->infs, 1);
  EXPECT_EQ(range->nans, 2);
  EXPECT_EQ(range->belowNormalF16, 0.5);
  EXPECT_EQ(range->belowSubnormalF16, 0.25);
  EXPECT_EQ(range->belowNormalBF16, 0.125);
  EXPECT_EQ(range->belowSubnormalBF16, 0);
  EXPECT_EQ(range->headLogits, (std::vector<double>{1.5, -2}));

  EXPECT_FALSE(ranges.find("h.1", "aten.mm.default", 3, true, 1));
  EXPECT_FALSE(ranges.find("h.0", "aten.mm.dtype", 3, true, 1));
  EXPECT_FALSE(ranges.find("h.0", "aten.mm.default", 2, true, 1));
  EXPECT_FALSE(ranges.find("h.0", "aten.mm.default", 3, false, 1));
  EXPECT_FALSE(ranges.find("h.0", "aten.mm.default", 3, true, 0));
}

TEST(Ranges, HeadroomIsInPowersOfTwo) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  Range range;
  range.absmax = 65504.0 / 8;
  EXPECT_DOUBLE_EQ(range.headroom(Float16Type::get(&context)), 3);
  range.absmax = 65504.0 * 4;
  EXPECT_DOUBLE_EQ(range.headroom(Float16Type::get(&context)), -2);
  EXPECT_GT(range.headroom(BFloat16Type::get(&context)), 109);
  range.absmax = 0;
  EXPECT_EQ(range.headroom(Float16Type::get(&context)), INFINITY);
}

TEST(Ranges, SharesUnderALossScale) {
  RowText row;
  row.more = R"(, "exponents": {"-30": 2, "-3": 5, "4": 1})";
  Ranges ranges = parsed(row);
  EXPECT_EQ(ranges.lossScale(), 1);
  const Range *range = ranges.find("h.0", "aten.mm.default", 0);
  ASSERT_TRUE(range);
  EXPECT_EQ(range->below(-24), 0.25);
  EXPECT_EQ(range->below(-24 - 8), 0);
  EXPECT_EQ(range->below(-2), 0.875);
  StringRef head =
      R"("mpopt-ranges", "version": 1, "loss_scale": {"scale": 256.0})";
  llvm::Expected<Ranges> scaled = parseRanges(file(row, head), "r.json");
  ASSERT_TRUE(bool(scaled));
  EXPECT_EQ(scaled->lossScale(), 256);
  EXPECT_EQ(errorOf(file(row, R"("mpopt-ranges", "version": 1,)"
                              R"("loss_scale": {"scale": 0})")),
            "ranges file 'r.json': 'loss_scale' is not positive");
  row.more = R"(, "exponents": {"x": 2})";
  EXPECT_EQ(errorOf(file(row)),
            "ranges file 'r.json': expected counts by exponent at "
            "file.values[0].exponents");
}

TEST(Ranges, DigestIsOfTheContent) {
  std::string text = file(RowText());
  RowText other;
  other.absmax = "4.75";
  llvm::Expected<Ranges> spaced = parseRanges("\n " + text + "\n", "b");
  ASSERT_TRUE(bool(spaced));
  EXPECT_EQ(parsed(RowText()).digest(), spaced->digest());
  EXPECT_NE(parsed(RowText()).digest(), parsed(other).digest());
}

TEST(Ranges, ErrorsNameTheFileAndTheCause) {
  llvm::Expected<Ranges> missing = loadRanges("/no/such/ranges.json");
  ASSERT_FALSE(bool(missing));
  EXPECT_EQ(llvm::toString(missing.takeError()),
            "ranges file '/no/such/ranges.json': No such file or directory");
  EXPECT_TRUE(StringRef(errorOf("{")).starts_with("ranges file 'r.json': "));
  EXPECT_EQ(errorOf("[]"),
            "ranges file 'r.json': the file does not hold an object");
  EXPECT_EQ(errorOf(file({}, R"("other", "version": 1)")),
            "ranges file 'r.json': 'schema' is not \"mpopt-ranges\"; "
            "mpopt.calibrate writes such files");
  EXPECT_EQ(errorOf(file({}, R"("mpopt-ranges", "version": 7)")),
            "ranges file 'r.json': version 7, but this release reads version "
            "1; calibrate again");
  EXPECT_EQ(errorOf(file({}, R"("mpopt-ranges")")),
            "ranges file 'r.json': 'version' is missing or no integer");
  EXPECT_EQ(errorOf(R"({"schema": "mpopt-ranges", "version": 1})"),
            "ranges file 'r.json': expected array at file.values");
}

TEST(Ranges, ErrorsNameTheRow) {
  auto errorWith = [](std::string RowText::*field, StringRef value) {
    RowText good, bad;
    bad.module = "h.1";
    bad.*field = value.str();
    return errorOf(file({good, bad}));
  };
  EXPECT_EQ(errorWith(&RowText::absmax, "\"big\""),
            "ranges file 'r.json': expected number at file.values[1].absmax");
  EXPECT_EQ(errorWith(&RowText::absmax, "-1"),
            "ranges file 'r.json': 'absmax' or 'rms' is negative at "
            "file.values[1]");
  EXPECT_EQ(errorWith(&RowText::ordinal, "-1"),
            "ranges file 'r.json': 'ordinal' or 'result' is negative at "
            "file.values[1]");
  EXPECT_EQ(errorWith(&RowText::ordinal, "4294967296"),
            "ranges file 'r.json': 'ordinal' or 'result' is too large at "
            "file.values[1]");
  EXPECT_EQ(errorWith(&RowText::phase, "sideward"),
            "ranges file 'r.json': 'phase' is neither \"forward\" nor "
            "\"backward\" at file.values[1]");
  EXPECT_EQ(errorWith(&RowText::module, "h.0"),
            "ranges file 'r.json': a second row of the same key at "
            "file.values[1]");
  EXPECT_EQ(errorWith(&RowText::more, R"(, "head_logits": ["x"])"),
            "ranges file 'r.json': expected number at "
            "file.values[1].head_logits[0]");
}

TEST(Ranges, ErrorsNameWhatARowLacks) {
  EXPECT_EQ(errorOf(R"({"schema": "mpopt-ranges", "version": 1,)"
                    R"("values": [{"module": "h"}]})"),
            "ranges file 'r.json': missing value at file.values[0].op");
  std::string text = file(RowText());
  size_t at = text.find("\"below\"");
  text.replace(at, 7, "\"above\"");
  EXPECT_EQ(errorOf(text),
            "ranges file 'r.json': missing value at file.values[0].below");
}

//===----------------------------------------------------------------------===//
// Values of a function
//===----------------------------------------------------------------------===//

static constexpr StringLiteral kFunction = R"(
  func.func @joint(%x: tensor<4x4xf32> {mp.name = "x", mp.role = "input"})
      -> (tensor<4x4xf16>, tensor<4x4xf32>, tensor<4x4xf32>) {
    %0 = mp.cast %x origin(autocast) : tensor<4x4xf32> to tensor<4x4xf16> loc(#at)
    %1 = mp.aten "aten.mm.default"(%0, %0) : (tensor<4x4xf16>, tensor<4x4xf16>) -> tensor<4x4xf16> loc(#at)
    %2 = mp.aten "aten.t.default"(%1) : (tensor<4x4xf16>) -> tensor<4x4xf16> loc(#at)
    %3 = mp.aten "aten.mm.default"(%2, %0) : (tensor<4x4xf16>, tensor<4x4xf16>) -> tensor<4x4xf16> loc(#at)
    %4 = mp.cast %2 origin(autocast) : tensor<4x4xf16> to tensor<4x4xf32> loc(#at)
    %5 = mp.aten "aten.exp.default"(%4) {mp.backward} : (tensor<4x4xf32>) -> tensor<4x4xf32> loc(#at)
    return %3, %4, %5 : tensor<4x4xf16>, tensor<4x4xf32>, tensor<4x4xf32>
  }
  #at = loc("h.0"("model.py":7:0))
)";

namespace {
struct MeasuredValuesTest : testing::Test {
  MLIRContext context{MLIRContext::Threading::DISABLED};
  OwningOpRef<ModuleOp> module;
  func::FuncOp function;

  void SetUp() override {
    context.loadDialect<MPDialect, func::FuncDialect>();
    module = parseSourceString<ModuleOp>(kFunction, &context);
    ASSERT_TRUE(module);
    function = *module->getOps<func::FuncOp>().begin();
  }
  /// "absmax" of each returned value, -1 for none.
  std::vector<double> returned(const MeasuredValues &values) {
    std::vector<double> found;
    for (Value value :
         function.getBody().front().getTerminator()->getOperands()) {
      const Range *range = values.find(value);
      found.push_back(range ? range->absmax : -1);
    }
    return found;
  }
  /// Rows of both products, the exponential and the input.
  static Ranges ranges() {
    RowText first, second, exponential, input;
    second.ordinal = "1";
    second.absmax = "5.5";
    exponential.op = "aten.exp.default";
    exponential.phase = "backward";
    exponential.absmax = "6.5";
    input.module = "x";
    input.op = "input";
    input.absmax = "7.5";
    return parsed({first, second, exponential, input});
  }
};
} // namespace

TEST_F(MeasuredValuesTest, CountsInGraphOrderAndLooksThroughCasts) {
  Ranges rows = ranges();
  MeasuredValues values(function, rows);
  EXPECT_EQ(values.size(), 4u);
  EXPECT_EQ(returned(values), (std::vector<double>{5.5, 4.5, 6.5}));
  EXPECT_EQ(values.find(function.getArgument(0))->absmax, 7.5);
}

TEST_F(MeasuredValuesTest, ForwardIsNotBackward) {
  RowText exponential;
  exponential.op = "aten.exp.default";
  Ranges rows = parsed(exponential);
  EXPECT_EQ(returned(MeasuredValues(function, rows)),
            (std::vector<double>{-1, -1, -1}));
}

TEST_F(MeasuredValuesTest, RaisedOperationsKeepTheirKeys) {
  PassManager passes(&context);
  passes.addNestedPass<func::FuncOp>(createNormalize());
  passes.addNestedPass<func::FuncOp>(createRaise());
  ASSERT_TRUE(succeeded(passes.run(*module)));
  ASSERT_FALSE(function.getOps<MatmulOp>().empty());
  Ranges rows = ranges();
  EXPECT_EQ(returned(MeasuredValues(function, rows)),
            (std::vector<double>{5.5, 4.5, 6.5}));
}

TEST_F(MeasuredValuesTest, AStatedKeyGoesBeforeCounting) {
  Builder builder(&context);
  auto state = [&](Operation *op, StringRef module, int64_t ordinal) {
    op->setAttr("mp.measured",
                builder.getArrayAttr({builder.getStringAttr(module),
                                      builder.getStringAttr("aten.mm.default"),
                                      builder.getI64IntegerAttr(ordinal),
                                      builder.getStringAttr("forward")}));
  };
  Operation *returning = function.getBody().front().getTerminator();
  Operation *last = returning->getOperand(0).getDefiningOp();
  state(last, "h.0", 0);
  Ranges rows = ranges();
  EXPECT_EQ(returned(MeasuredValues(function, rows)),
            (std::vector<double>{4.5, -1, -1}));
  state(last, "elsewhere", 0);
  EXPECT_EQ(returned(MeasuredValues(function, rows)),
            (std::vector<double>{-1, -1, -1}));
  last->setAttr("mp.measured", builder.getStringAttr("nonsense"));
  EXPECT_EQ(returned(MeasuredValues(function, rows)),
            (std::vector<double>{-1, -1, -1}));
}
