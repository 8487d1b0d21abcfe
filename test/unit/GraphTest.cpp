//===- GraphTest.cpp - columns in, a difference out -----------------------===//

#include "dialect/Graph/Graph.h"
#include "dialect/IR/MPOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Verifier.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::mp;

/// x : bf16 -> f32 -> bf16 -> relu; values 0, 1, 2, 3.
static Graph castChain() {
  Graph g;
  g.targets = {"mp.cast", "aten.relu.default"};
  g.types = {"tensor<4xbf16>", "tensor<4xf32>"};
  g.attrs = {"{origin = #mp.origin<user>}", ""};
  g.sources = {{"layers.0", "model.py", 7}};
  g.inputTypes = {0};
  g.inputAttrs = {"{mp.role = \"input\"}"};
  g.target = {0, 0, 1};
  g.attr = {0, 0, 1};
  g.flags = {0, 0, Graph::Backward};
  g.source = {0, -1, -1};
  g.operands = {0, 1, 2};
  g.operandEnd = {1, 2, 3};
  g.resultTypes = {1, 0, 0};
  g.resultEnd = {1, 2, 3};
  g.outputs = {3};
  g.outputAttrs = {"{mp.name = \"y\"}"};
  return g;
}

namespace {
struct GraphTest : testing::Test {
  MLIRContext context{MLIRContext::Threading::DISABLED};
  std::string diagnostic;

  OwningOpRef<ModuleOp> build(const Graph &graph) {
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &d) {
      diagnostic = d.str();
      return success();
    });
    return buildModule(graph, &context);
  }
  static SmallVector<Operation *> opsOf(ModuleOp module) {
    SmallVector<Operation *> ops;
    for (Operation &op :
         (*module.getOps<func::FuncOp>().begin()).getBody().front())
      ops.push_back(&op);
    return ops;
  }
};
} // namespace

TEST_F(GraphTest, BuildsWhatTheColumnsSay) {
  auto module = build(castChain());
  ASSERT_TRUE(module && succeeded(verify(*module)));
  SmallVector<Operation *> ops = opsOf(*module);
  ASSERT_EQ(ops.size(), 4u);
  EXPECT_TRUE(isa<CastOp>(ops[0]));
  EXPECT_EQ(cast<AtenOp>(ops[2]).getCallee(), "aten.relu.default");
  EXPECT_FALSE(isBackward(ops[1]));
  EXPECT_TRUE(isBackward(ops[2]));
  auto func = cast<func::FuncOp>(ops[0]->getParentOp());
  EXPECT_EQ(func.getArgAttrOfType<StringAttr>(0, "mp.role"), "input");
  EXPECT_EQ(func.getResultAttrOfType<StringAttr>(0, "mp.name"), "y");
}

TEST_F(GraphTest, LocationsNameNodeAndModule) {
  auto module = build(castChain());
  ASSERT_TRUE(module);
  SmallVector<Operation *> ops = opsOf(*module);
  EXPECT_EQ(nodeOf(ops[0]->getLoc()), 0);
  EXPECT_EQ(nodeOf(ops[2]->getLoc()), 2);
  EXPECT_EQ(modulePathOf(ops[0]->getLoc()), "layers.0");
  EXPECT_EQ(modulePathOf(ops[1]->getLoc()), "");
  Location derived = derivedLocation(ops[0]->getLoc());
  EXPECT_EQ(nodeOf(derived), -1);
  EXPECT_EQ(stemOf(derived), 0);
  EXPECT_EQ(modulePathOf(derived), "layers.0");
}

TEST_F(GraphTest, UnchangedModuleHasNoEdits) {
  Graph g = castChain();
  auto module = build(g);
  ASSERT_TRUE(module);
  auto edits = readEdits(*module, g);
  ASSERT_TRUE(succeeded(edits));
  EXPECT_TRUE(edits->empty() && edits->retyped.empty());
  EXPECT_EQ(edits->outputs, g.outputs);
}

TEST_F(GraphTest, ErasedCastsRewireTheirReader) {
  Graph g = castChain();
  auto module = build(g);
  ASSERT_TRUE(module);
  SmallVector<Operation *> ops = opsOf(*module);
  ops[2]->setOperand(0, ops[0]->getOperand(0));
  ops[1]->erase();
  ops[0]->erase();
  auto edits = readEdits(*module, g);
  ASSERT_TRUE(succeeded(edits));
  EXPECT_EQ(edits->erased, (std::vector<int32_t>{0, 1}));
  ASSERT_EQ(edits->rewired.size(), 1u);
  EXPECT_EQ(edits->rewired[0].node, 2);
  EXPECT_EQ(edits->rewired[0].position, 0);
  EXPECT_EQ(edits->rewired[0].value, 0);
  EXPECT_TRUE(edits->added.empty());
}

TEST_F(GraphTest, AddedOpIsNumberedAfterTheGraphsValues) {
  Graph g = castChain();
  auto module = build(g);
  ASSERT_TRUE(module);
  SmallVector<Operation *> ops = opsOf(*module);
  OpBuilder builder(ops[2]);
  auto added = CastOp::create(builder, derivedLocation(ops[1]->getLoc()),
                              ops[0]->getOperand(0), builder.getF32Type(),
                              CastOrigin::mpopt);
  ops[3]->setOperand(0, added.getOutput());
  auto edits = readEdits(*module, g);
  ASSERT_TRUE(succeeded(edits));
  ASSERT_EQ(edits->added.size(), 1u);
  EXPECT_EQ(edits->added[0].before, 2);
  EXPECT_EQ(edits->added[0].like, 1);
  EXPECT_EQ(edits->added[0].op, added.getOperation());
  EXPECT_EQ(edits->added[0].operands, (std::vector<int32_t>{0}));
  EXPECT_EQ(edits->added[0].firstResult, 4);
  EXPECT_EQ(edits->outputs, (std::vector<int32_t>{4}));
}

TEST_F(GraphTest, AnotherResultTypeIsReported) {
  Graph g = castChain();
  auto module = build(g);
  ASSERT_TRUE(module);
  Operation *relu = opsOf(*module)[2];
  relu->getResult(0).setType(
      RankedTensorType::get({4}, Builder(&context).getF32Type()));
  auto edits = readEdits(*module, g);
  ASSERT_TRUE(succeeded(edits));
  EXPECT_EQ(edits->retyped, (std::vector<int32_t>{2}));
}

TEST_F(GraphTest, BadTypeIsNamed) {
  Graph g = castChain();
  g.types[1] = "tensor<4xfloat>";
  EXPECT_FALSE(build(g));
  EXPECT_FALSE(diagnostic.empty());
}

TEST_F(GraphTest, OperandBeforeItsDefinitionIsNamed) {
  Graph g = castChain();
  g.operands[1] = 3;
  EXPECT_FALSE(build(g));
  EXPECT_NE(diagnostic.find("operand 3 of node 1"), std::string::npos)
      << diagnostic;
}

TEST_F(GraphTest, OutputThatNobodyDefinesIsNamed) {
  Graph g = castChain();
  g.outputs = {9};
  EXPECT_FALSE(build(g));
  EXPECT_NE(diagnostic.find("output 9"), std::string::npos) << diagnostic;
}

TEST_F(GraphTest, AttributeThatIsNoDictionaryIsNamed) {
  Graph g = castChain();
  g.attrs[1] = "[1, 2]";
  EXPECT_FALSE(build(g));
  EXPECT_NE(diagnostic.find("[1, 2]"), std::string::npos) << diagnostic;
}

TEST_F(GraphTest, EditsOfAnotherFunctionAreRefused) {
  Graph g = castChain();
  auto module = build(g);
  ASSERT_TRUE(module);
  g.name = "elsewhere";
  ScopedDiagnosticHandler handler(&context,
                                  [](Diagnostic &) { return success(); });
  EXPECT_TRUE(failed(readEdits(*module, g)));
}
