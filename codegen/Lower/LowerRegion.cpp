//===- LowerRegion.cpp - from a region to the backend contract ------------===//

#include "codegen/Lower/LowerRegion.h"
#include "codegen/Lower/KernelWriter.h"
#include "codegen/Lower/RegionGraph.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::lower;

/// Collapsing and expanding are all that the contract has for shapes.
static bool keepsShapes(RegionOp region, const NodeGraph &graph,
                        const KernelWriter &writer) {
  auto hasRank = [&](Type type, Place place) {
    return cast<RankedTensorType>(type).getRank() >=
           int64_t(writer.shapeOf(place).size());
  };
  for (const Node &node : graph.nodes)
    if (node.kind == Node::Kind::Argument &&
        !hasRank(region.getOperand(node.argument).getType(), node.place))
      return false;
  return llvm::all_of(graph.results, [&](const GraphResult &result) {
    return !result.node || hasRank(result.type, result.node->place);
  });
}

OwningOpRef<ModuleOp> mlir::mp::lowerRegion(RegionOp region,
                                            std::string &reason) {
  for (Operation &op : region.getBody().front().without_terminator())
    if (regionRoleOf(&op) == RegionRole::None) {
      reason = (regionOpName(&op) + " has no expansion").str();
      return {};
    }
  std::optional<Places> places = placesOf(region);
  if (!places) {
    reason = "its values are of no one matrix";
    return {};
  }
  std::unique_ptr<NodeGraph> graph =
      GraphBuilder(region, std::move(*places)).build(reason);
  if (!graph)
    return {};
  KernelWriter writer(region, *graph);
  if (!keepsShapes(region, *graph, writer)) {
    reason = "a value has fewer dimensions than its matrix";
    return {};
  }
  bool isMatmul = region.getKind() == KernelKind::matmul;
  if (!(isMatmul ? writeMatmul : writeRows)(writer, *graph, reason))
    return {};
  return writer.takeModule();
}

void mlir::mp::loadKernelDialects(MLIRContext &context) {
  context.loadDialect<arith::ArithDialect, func::FuncDialect,
                      linalg::LinalgDialect, math::MathDialect,
                      tensor::TensorDialect>();
}

std::string mlir::mp::kernelText(ModuleOp kernel) {
  std::string text;
  llvm::raw_string_ostream os(text);
  kernel.print(os, OpPrintingFlags().useLocalScope());
  return text;
}

FailureOr<OwningOpRef<ModuleOp>> mlir::mp::parseKernelText(RegionOp region) {
  if (!region.getKernel())
    return region.emitOpError("has no kernel");
  ScopedDiagnosticHandler quiet(region.getContext(),
                                [](Diagnostic &) { return success(); });
  auto module = parseSourceString<ModuleOp>(*region.getKernel(),
                                            ParserConfig(region.getContext()));
  if (module)
    return module;
  return failure();
}
