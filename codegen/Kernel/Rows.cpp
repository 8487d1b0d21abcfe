//===- Rows.cpp - rule K8 of the backend contract -------------------------===//

#include "codegen/Kernel/Parse.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::kernel;

using Kind = RowStage::Kind;

namespace {
/// Builds the description of one row kernel.
class Parser {
public:
  explicit Parser(func::FuncOp func) { kernel.func = func; }

  FailureOr<RowKernel> parse();

private:
  LogicalResult parseStage(linalg::GenericOp op);
  LogicalResult findKind(RowStage &stage);
  LogicalResult findKindOfReduction(RowStage &stage);
  LogicalResult findKindOfVector(RowStage &stage);
  LogicalResult findAccesses(RowStage &stage);
  LogicalResult checkInputs(const RowStage &stage);
  LogicalResult findCombiner(RowStage &stage);
  LogicalResult takeExtents(const RowStage &stage);

  /// The access of what an earlier stage made; nullopt for an argument.
  std::optional<Access> made(Value value) const;

  RowKernel kernel;
  bool hasExtents = false;
};
} // namespace

static Access resultAccess(Kind kind) {
  switch (kind) {
  case Kind::Pointwise:
    return Access::Element;
  case Kind::RowReduction:
  case Kind::RowPointwise:
    return Access::Row;
  case Kind::ColumnReduction:
  case Kind::ColumnPointwise:
    return Access::Column;
  }
  llvm_unreachable("unknown stage");
}

std::optional<Access> Parser::made(Value value) const {
  for (const RowStage &stage : kernel.stages)
    if (stage.op == value.getDefiningOp())
      return resultAccess(stage.kind);
  return std::nullopt;
}

/// A reduction is over columns if it reads a matrix as (d0, d1) and over rows
/// if it reads one as (d1, d0).
LogicalResult Parser::findKindOfReduction(RowStage &stage) {
  for (AffineMap map : stage.op.getIndexingMapsArray()) {
    auto loops = loopsOf(map);
    if (!loops || loops->size() != 2)
      continue;
    stage.kind =
        loops->front() == 0 ? Kind::RowReduction : Kind::ColumnReduction;
    return success();
  }
  return emitRule(stage.op, 8) << "a reduction must read a matrix";
}

/// A stage of one loop is over what its inputs are over.
LogicalResult Parser::findKindOfVector(RowStage &stage) {
  for (Value input : stage.op.getDpsInputs()) {
    std::optional<Access> access = made(input);
    if (!access)
      continue;
    stage.kind =
        *access == Access::Row ? Kind::RowPointwise : Kind::ColumnPointwise;
    return success();
  }
  return emitRule(stage.op, 8)
         << "a stage of one loop must read the result of a reduction";
}

LogicalResult Parser::findKind(RowStage &stage) {
  linalg::GenericOp op = stage.op;
  if (op.getNumLoops() == 1 && op.getNumReductionLoops() == 0)
    return findKindOfVector(stage);
  if (op.getNumLoops() != 2 || isReduction(op, 0))
    return emitRule(op, 8) << "a stage loops over rows and columns";
  if (isReduction(op, 1))
    return findKindOfReduction(stage);
  stage.kind = Kind::Pointwise;
  return success();
}

/// What a map of loops (first, second) depends on.
static Access accessOf(ArrayRef<unsigned> loops, Kind kind) {
  if (loops.size() == 2)
    return Access::Element;
  if (loops.empty())
    return Access::Scalar;
  bool oneLoop = kind == Kind::RowPointwise || kind == Kind::ColumnPointwise;
  if (oneLoop)
    return resultAccess(kind);
  bool first = loops.front() == 0;
  return first == (kind != Kind::ColumnReduction) ? Access::Row
                                                  : Access::Column;
}

LogicalResult Parser::findAccesses(RowStage &stage) {
  linalg::GenericOp op = stage.op;
  for (unsigned i = 0, e = op.getNumDpsInputs(); i < e; ++i) {
    auto loops = loopsOf(op.getIndexingMapsArray()[i]);
    bool swapped = stage.kind == Kind::ColumnReduction;
    if (!loops || (loops->size() == 2 && (loops->front() == 0) == swapped))
      return emitRule(op, 5)
             << "operand " << i << " is not read in the order of the loops";
    stage.accesses.push_back(accessOf(*loops, stage.kind));
  }
  return success();
}

LogicalResult Parser::checkInputs(const RowStage &stage) {
  linalg::GenericOp op = stage.op;
  for (auto [i, value] : llvm::enumerate(op.getDpsInputs())) {
    std::optional<Access> access = made(value);
    if (!access && !argumentOf(value))
      return emitRule(op, 8) << "operand " << i
                             << " is neither an argument nor a stage's result";
    if (access && *access != stage.accesses[i])
      return emitRule(op, 8) << "operand " << i << " is read as "
                             << stringifyAccess(stage.accesses[i])
                             << " but made as " << stringifyAccess(*access);
    if (access == Access::Column && stage.kind != Kind::ColumnPointwise)
      return emitRule(op, 8)
             << "operand " << i << " is known only when all rows are done";
  }
  return success();
}

static bool isNeutral(Operation *combiner, Value init) {
  std::optional<APFloat> real = filledFloat(init);
  std::optional<APInt> integer = filledInt(init);
  return TypeSwitch<Operation *, bool>(combiner)
      .Case<arith::AddFOp>([&](auto) { return real && real->isZero(); })
      .Case<arith::MaximumFOp, arith::MaxNumFOp>([&](auto) {
        return real && real->isInfinity() && real->isNegative();
      })
      .Case<arith::MinimumFOp, arith::MinNumFOp>([&](auto) {
        return real && real->isInfinity() && !real->isNegative();
      })
      .Case<arith::AddIOp, arith::OrIOp>(
          [&](auto) { return integer && integer->isZero(); })
      .Default(false);
}

LogicalResult Parser::findCombiner(RowStage &stage) {
  linalg::GenericOp op = stage.op;
  if (op.getNumResults() != 1)
    return emitRule(op, 8) << "a reduction has one result";
  Operation *combiner = yieldedOp(op);
  BlockArgument accumulator = op.getBody()->getArguments().back();
  if (!combiner || combiner->getNumOperands() != 2 ||
      !llvm::is_contained(combiner->getOperands(), accumulator) ||
      !accumulator.hasOneUse())
    return emitRule(op, 8)
           << "the last op of a reduction joins it with the accumulator";
  Type type = accumulator.getType();
  if (!type.isF32() && !type.isInteger())
    return emitRule(op, 8) << "the accumulator must be f32 or an integer";
  if (!isNeutral(combiner, op.getDpsInits().front()))
    return emitRule(op, 8)
           << "the accumulator must start at the combiner's neutral element";
  stage.combiner = combiner;
  return success();
}

LogicalResult Parser::takeExtents(const RowStage &stage) {
  linalg::GenericOp op = stage.op;
  if (op.getNumLoops() != 2)
    return success();
  int64_t rows = extentOf(op, 0), columns = extentOf(op, 1);
  if (stage.kind == Kind::ColumnReduction)
    std::swap(rows, columns);
  if (hasExtents && (rows != kernel.rows || columns != kernel.columns))
    return emitRule(op, 8) << "stages loop over different matrices";
  kernel.rows = rows;
  kernel.columns = columns;
  hasExtents = true;
  return success();
}

LogicalResult Parser::parseStage(linalg::GenericOp op) {
  RowStage stage;
  stage.op = op;
  if (failed(findKind(stage)) || failed(findAccesses(stage)) ||
      failed(checkInputs(stage)) || failed(takeExtents(stage)))
    return failure();
  bool reduces = op.getNumReductionLoops() != 0;
  if (reduces && failed(findCombiner(stage)))
    return failure();
  kernel.stages.push_back(std::move(stage));
  return success();
}

FailureOr<RowKernel> Parser::parse() {
  kernel.contract = allowsContraction(kernel.func);
  for (auto op : kernel.func.getOps<linalg::GenericOp>())
    if (failed(parseStage(op)))
      return failure();
  for (const RowStage &stage : kernel.stages)
    if (std::optional<int64_t> factor = dynamicFactor(stage.op))
      kernel.dynamicFactor = *factor;
  if (!hasExtents)
    return emitRule(kernel.func, 8) << "a row kernel loops over a matrix";
  size_t written = 0;
  for (const RowStage &stage : kernel.stages)
    for (Value value : stage.op->getResults())
      written += resultsOf(value).size();
  if (written != kernel.func.getNumResults())
    return emitRule(kernel.func, 8) << "results must come from stages";
  return std::move(kernel);
}

FailureOr<RowKernel> kernel::parseRows(func::FuncOp func) {
  return Parser(func).parse();
}
