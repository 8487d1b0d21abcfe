//===- PlacementGraphTest.cpp - the whole pass against all placements -----===//
//
// Random small training graphs go through mp-assign-precision; a recount that
// shares no code with the placement problem then tries every placement.
//
//===----------------------------------------------------------------------===//

#include "dialect/IR/Pins.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/CostModel/CostModel.h"
#include "passes/Passes.h"
#include "passes/Placement/StoredValues.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "gtest/gtest.h"

#include <random>

using namespace mlir;
using namespace mlir::mp;

namespace {
/// The text of a graph of pointwise operations, sums and half products, whose
/// second half is backward. All values have 64 x 64 or 64 elements.
class RandomText {
public:
  explicit RandomText(unsigned seed) : random(seed) {
    int steps = pick(3, 9);
    for (int i = 0; i < steps; ++i)
      addStep(i > steps / 2);
  }

  std::string text() const {
    const std::string &last = values.back();
    return "func.func @f(%x: tensor<64x64xf32>, %w: tensor<64x64xbf16>) -> "
           "tensor<64x64xf32> {\n" +
           body + "  return " + last + " : tensor<64x64xf32>\n}\n";
  }

private:
  int pick(int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  }
  std::string any() { return values[pick(0, values.size() - 1)]; }
  std::string fresh() { return "%v" + std::to_string(count++); }

  void add(const std::string &name, const std::string &op,
           const std::string &operands, const std::string &type,
           bool isBackward) {
    std::vector<std::string> attributes;
    if (isBackward)
      attributes.emplace_back("mp.backward");
    if (op.find("mp.aten") == 0 && pick(0, 9) == 0)
      attributes.push_back("mp.pin = [#mp.pin<fp32 " +
                           std::string(pick(0, 1) ? "result" : "operands") +
                           ", \"test\", \"a test\">]");
    body += "  " + name + " = " + op + operands + " {" +
            llvm::join(attributes, ", ") + "} : " + type + "\n";
  }

  void addStep(bool isBackward) {
    const std::string wide = "tensor<64x64xf32>", half = "tensor<64x64xbf16>";
    std::string name = fresh();
    switch (pick(0, 6)) {
    case 0:
      add(name, "mp.aten \"aten.tanh.default\"", "(" + any() + ")",
          "(" + wide + ") -> " + wide, isBackward);
      break;
    case 1:
    case 2:
      add(name, "mp.aten \"aten.mul.Tensor\"", "(" + any() + ", " + any() + ")",
          "(" + wide + ", " + wide + ") -> " + wide, isBackward);
      break;
    case 3: { // observes its operand, so that this one is never rounded
      add(name, "mp.aten \"aten.floor.default\"", "(" + any() + ")",
          "(" + wide + ") -> " + wide, isBackward);
      break;
    }
    case 4:
      add(name, "mp.aten \"aten.permute.default\"", "(" + any() + ")",
          "(" + wide + ") -> " + wide, isBackward);
      break;
    case 5: // a copy, which a kernel makes
      add(name, "mp.aten \"aten.flip.default\"", "(" + any() + ")",
          "(" + wide + ") -> " + wide, isBackward);
      break;
    default: {
      std::string narrow = fresh(), product = fresh();
      add(narrow, "mp.cast ", any() + " origin(autocast)", wide + " to " + half,
          isBackward);
      add(product, "mp.matmul ", narrow + ", %w",
          "(" + half + ", " + half + ") -> " + half, isBackward);
      add(name, "mp.cast ", product + " origin(autocast)", half + " to " + wide,
          isBackward);
    }
    }
    values.push_back(name);
  }

  std::mt19937 random;
  std::string body;
  std::vector<std::string> values{"%x"};
  int count = 0;
};

/// One reader of a root, as the recount sees it.
struct Reader {
  int kernel;
  int64_t elements;
  bool canBeHigh, canBeLow;
  bool isKept;
  std::optional<bool> markedLow; ///< of a reader that the pass decides about
};

/// Costs of one root for every choice of its readers.
class Root {
public:
  SmallVector<Reader> readers;
  int64_t elements = 0, convert = 0;
  bool isArgument = false, isCall = false, isHalf = false;

  /// The least cost; `asMarked` leaves the pass's decisions as they are.
  int64_t leastCost(bool asMarked) const {
    std::optional<int64_t> best;
    for (unsigned bits = 0; bits < 1u << readers.size(); ++bits)
      if (isLegal(bits, asMarked)) {
        int64_t cost = costOf(bits);
        best = best ? std::min(*best, cost) : cost;
      }
    return *best;
  }

private:
  bool isLegal(unsigned bits, bool asMarked) const {
    for (auto [i, reader] : llvm::enumerate(readers)) {
      bool isLow = bits >> i & 1;
      if (isLow ? !reader.canBeLow : !reader.canBeHigh)
        return false;
      if (asMarked && reader.markedLow && *reader.markedLow != isLow)
        return false;
    }
    return true;
  }

  int64_t costOf(unsigned bits) const {
    int64_t cost = 0;
    for (bool isLow : {false, true}) {
      bool isRead = false, isKept = false;
      std::map<int, int64_t> reads;
      for (auto [i, reader] : llvm::enumerate(readers)) {
        if (bool(bits >> i & 1) != isLow)
          continue;
        isRead = true;
        isKept |= reader.isKept;
        int64_t &read = reads[reader.kernel];
        read = std::max(read, reader.elements);
      }
      int64_t width = isLow ? 2 : 4;
      for (auto [kernel, read] : reads)
        cost += width * read;
      bool isNative = isLow == isHalf;
      if (isArgument || isCall)
        cost += isRead && !isNative ? convert : 0;
      if (isCall && isNative)
        cost += width * elements;
      if (!isArgument && !isCall && isRead)
        cost += width * elements;
      if (!isArgument && isKept)
        cost += width * elements;
    }
    return cost;
  }
};

/// All roots of a graph with the hints that the pass has left on it.
class Recount {
public:
  Recount(func::FuncOp func, int64_t launchBytes)
      : fusion(func), launchBytes(launchBytes) {
    for (auto [number, kernel] : llvm::enumerate(fusion.getKernels()))
      for (Operation *op : fusion.operationsOf(kernel))
        if (!isCopy(op))
          for (OpOperand &use : op->getOpOperands())
            addReader(use, number, kernel.isExternal);
    for (OpOperand &use :
         func.getBody().front().getTerminator()->getOpOperands())
      addReader(use, -1, /*isCall=*/true);
  }

  int64_t leastCost(bool asMarked) const {
    int64_t sum = 0;
    for (auto &[value, root] : roots)
      sum += root.leastCost(asMarked);
    return sum;
  }

private:
  void addReader(OpOperand &use, int kernel, bool isCall) {
    std::optional<RootRead> read = readOf(use, fusion);
    if (!read)
      return;
    if (kernel >= 0 && !isCall && fusion.kernelOf(read->buffer) == kernel)
      return;
    Root &root = roots[read->root];
    describe(root, read->root);
    Operation *producer = read->root.getDefiningOp();
    Reader reader{kernel,
                  kernel < 0 ? 0 : estimatedElements(use.get().getType()),
                  true,
                  true,
                  producer && !isBackward(producer) &&
                      isBackward(use.getOwner()),
                  std::nullopt};
    bool isHalfUse =
        cast<RankedTensorType>(use.get().getType()).getElementType().isBF16();
    if (isCall) {
      (isHalfUse ? reader.canBeHigh : reader.canBeLow) = false;
    } else if (root.isHalf) {
      reader.canBeHigh = read->isRounded;
    } else if (!read->isRounded) {
      auto op = cast<PrecisionOpInterface>(use.getOwner());
      reader.canBeLow =
          producer && !op.observesRounding(use.getOperandNumber()) &&
          !isPinnedWide(use) && !hasPinBetween(read->root, use.get());
      reader.markedLow = isMarked(use);
    }
    root.readers.push_back(reader);
  }

  /// A pin on a view of a value is one on what is read through it.
  static bool hasPinBetween(Value root, Value value) {
    for (; value != root; value = value.getDefiningOp()->getOperand(0))
      if (isPinnedWide(value))
        return true;
    return isPinnedWide(root);
  }

  void describe(Root &root, Value value) const {
    root.elements = estimatedElements(value.getType());
    root.convert = 6 * root.elements + launchBytes;
    root.isArgument = !value.getDefiningOp();
    root.isCall = isa_and_nonnull<MatmulOp>(value.getDefiningOp());
    root.isHalf =
        cast<RankedTensorType>(value.getType()).getElementType().isBF16();
  }

  static bool isMarked(OpOperand &use) {
    auto hints =
        use.getOwner()->getAttrOfType<ArrayAttr>(MPDialect::kReadAsAttrName);
    return hints && isa<TypeAttr>(hints[use.getOperandNumber()]);
  }

  FusionEstimate fusion;
  int64_t launchBytes;
  llvm::MapVector<Value, Root> roots;
};

TEST(PlacementGraph, PassEqualsAllPlacements) {
  MLIRContext context;
  context.loadDialect<MPDialect, func::FuncDialect>();
  llvm::Expected<CostModel> costs = loadCostModel("sm_80");
  ASSERT_TRUE(bool(costs));
  int64_t launchBytes = costs->launch * costs->bandwidth;
  int graphs = 0, marked = 0;
  for (unsigned seed = 0; graphs < 1000; ++seed) {
    std::string text = RandomText(seed).text();
    auto module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
    AssignPrecisionOptions options;
    options.numerics = Numerics::Relaxed;
    options.epsilon = 1e9;
    options.minElements = 16;
    options.costModel = "sm_80";
    PassManager pm(&context);
    pm.addNestedPass<func::FuncOp>(createAssignPrecision(options));
    ASSERT_TRUE(succeeded(pm.run(*module))) << text;
    auto func = *module->getOps<func::FuncOp>().begin();
    auto placement =
        func->getAttrOfType<DictionaryAttr>(MPDialect::kPlacementAttrName);
    if (!placement)
      continue; // no half type in the graph
    // The budget is a share of the noise that is there.
    if (cast<FloatAttr>(placement.get("noise_traced")).getValueAsDouble() == 0)
      continue;
    ++graphs;
    Recount recount(func, launchBytes);
    int64_t ours = recount.leastCost(/*asMarked=*/true);
    ASSERT_EQ(ours, recount.leastCost(/*asMarked=*/false))
        << "seed " << seed << "\n"
        << text;
    ASSERT_EQ(cast<IntegerAttr>(placement.get("cost")).getInt(), ours)
        << "seed " << seed << "\n"
        << text;
    func.walk([&](Operation *op) {
      marked += op->hasAttr(MPDialect::kReadAsAttrName);
    });
  }
  // Otherwise there was nothing to decide.
  EXPECT_GT(marked, 150);
}
} // namespace
