//===- Matmul.cpp - rule K7 of the backend contract -----------------------===//

#include "codegen/Kernel/Parse.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::kernel;

namespace {
/// The loops of a contraction: an optional batch, then m, n and k.
struct Loops {
  unsigned first; // 1 with a batch
  unsigned m() const { return first; }
  unsigned n() const { return first + 1; }
  unsigned k() const { return first + 2; }
};

/// Builds the description of one matmul kernel.
class Parser {
public:
  Parser(func::FuncOp func, linalg::GenericOp contraction)
      : contraction(contraction), loops{contraction.getNumLoops() - 3} {
    kernel.func = func;
    kernel.contraction = contraction;
  }

  FailureOr<MatmulKernel> parse();

private:
  LogicalResult parseContraction();
  LogicalResult parseMatrix(unsigned input, unsigned own, MatmulOperand &into);
  LogicalResult parseBody();
  LogicalResult parseOther(linalg::GenericOp op);
  LogicalResult parseEpilogue(linalg::GenericOp op);
  LogicalResult parseEpilogueOperand(linalg::GenericOp op, unsigned input);
  LogicalResult parseSum(linalg::GenericOp op);
  LogicalResult placeSum(linalg::GenericOp op, SideSum &sum);
  LogicalResult parseSumResult(linalg::GenericOp op, SideSum &sum);

  linalg::GenericOp contraction;
  Loops loops;
  MatmulKernel kernel;
};
} // namespace

LogicalResult Parser::parseMatrix(unsigned input, unsigned own,
                                  MatmulOperand &into) {
  Value value = contraction.getDpsInputs()[input];
  std::optional<unsigned> argument = argumentOf(value);
  auto read = loopsOf(contraction.getIndexingMapsArray()[input]);
  if (!argument || !read)
    return emitRule(contraction, 7)
           << "operand " << input << " must be an argument read by loops";
  into.argument = *argument;
  into.element = getElementTypeOrSelf(value);
  ArrayRef<unsigned> matrix = *read;
  into.batched = loops.first && !matrix.empty() && matrix.front() == 0;
  if (into.batched)
    matrix = matrix.drop_front();
  SmallVector<unsigned> plain{own, loops.k()};
  if (input == 1)
    std::swap(plain[0], plain[1]);
  into.transposed = matrix != ArrayRef(plain);
  if (into.transposed && matrix != ArrayRef<unsigned>{plain[1], plain[0]})
    return emitRule(contraction, 7) << "operand " << input << " is no matrix";
  return success();
}

/// The factor behind an optional widening.
static Value factor(Value value) {
  auto widen = value.getDefiningOp<arith::ExtFOp>();
  return widen ? widen.getIn() : value;
}

LogicalResult Parser::parseBody() {
  Block *body = contraction.getBody();
  auto add = dyn_cast_or_null<arith::AddFOp>(yieldedOp(contraction));
  if (!add)
    return emitRule(contraction, 7) << "a contraction adds products";
  bool first = add.getLhs() == body->getArgument(2);
  Value product = first ? add.getRhs() : add.getLhs();
  Value sum = first ? add.getLhs() : add.getRhs();
  auto mul = product.getDefiningOp<arith::MulFOp>();
  if (!mul || sum != body->getArgument(2) || !mul.getType().isF32())
    return emitRule(contraction, 7)
           << "a contraction adds products to an f32 accumulator";
  if (factor(mul.getLhs()) != body->getArgument(0) ||
      factor(mul.getRhs()) != body->getArgument(1))
    return emitRule(contraction, 7) << "a contraction multiplies its operands";
  return success();
}

LogicalResult Parser::parseContraction() {
  if (contraction.getNumDpsInputs() != 2 || contraction.getNumResults() != 1 ||
      loops.first > 1 || contraction.getNumReductionLoops() != 1)
    return emitRule(contraction, 7)
           << "a contraction has two operands and loops (b, m, n, k)";
  if (failed(parseMatrix(0, loops.m(), kernel.lhs)) ||
      failed(parseMatrix(1, loops.n(), kernel.rhs)) || failed(parseBody()))
    return failure();
  if (kernel.lhs.element != kernel.rhs.element)
    return emitRule(contraction, 7) << "the operands' types differ";
  auto start = filledFloat(contraction.getDpsInits().front());
  if (!start || !start->isZero())
    return emitRule(contraction, 7) << "the accumulator must start at zero";
  kernel.batch = loops.first ? extentOf(contraction, 0) : 1;
  kernel.m = extentOf(contraction, loops.m());
  kernel.n = extentOf(contraction, loops.n());
  kernel.k = extentOf(contraction, loops.k());
  kernel.dynamicFactor = dynamicFactor(contraction).value_or(1);
  return success();
}

LogicalResult Parser::parseEpilogueOperand(linalg::GenericOp op,
                                           unsigned input) {
  Value value = op.getDpsInputs()[input];
  auto read = loopsOf(op.getIndexingMapsArray()[input]);
  std::optional<unsigned> argument = argumentOf(value);
  if (!argument || !read || !llvm::is_sorted(*read))
    return emitRule(op, 5) << "operand " << input
                           << " of the epilogue must be an argument read in "
                              "the order of the loops";
  bool row = llvm::is_contained(*read, loops.m());
  bool column = llvm::is_contained(*read, loops.n());
  Access access = row && column ? Access::Element
                  : row         ? Access::Row
                  : column      ? Access::Column
                                : Access::Scalar;
  bool batched = loops.first && llvm::is_contained(*read, 0u);
  kernel.operands.push_back(
      {*argument, access, getElementTypeOrSelf(value), batched});
  return success();
}

LogicalResult Parser::parseEpilogue(linalg::GenericOp op) {
  if (kernel.epilogue)
    return emitRule(op, 7) << "a matmul kernel has one epilogue";
  if (op.getDpsInputs().empty() ||
      op.getDpsInputs().front() != contraction.getResult(0) ||
      !op.getIndexingMapsArray().front().isIdentity() ||
      op.getNumLoops() != loops.k())
    return emitRule(op, 7) << "the epilogue's first operand is the contraction";
  kernel.epilogue = op;
  for (unsigned i = 1, e = op.getNumDpsInputs(); i < e; ++i)
    if (failed(parseEpilogueOperand(op, i)))
      return failure();
  for (OpResult value : op.getResults()) {
    if (!op.getIndexingMapMatchingResult(value).isIdentity())
      return emitRule(op, 7) << "the epilogue writes whole matrices";
    for (unsigned result : resultsOf(value))
      kernel.results.push_back(
          {result, value.getResultNumber(), getElementTypeOrSelf(value)});
  }
  return success();
}

LogicalResult Parser::placeSum(linalg::GenericOp op, SideSum &sum) {
  Value input = op.getDpsInputs().front();
  auto read = loopsOf(op.getIndexingMapsArray().front());
  if (!read || read->size() != 2)
    return emitRule(op, 7) << "a sum reads a matrix";
  bool reducesLast = read->back() == 1;
  if (kernel.epilogue && input.getDefiningOp() == kernel.epilogue) {
    sum.over = SideSum::Over::ResultOverM;
    sum.yielded = cast<OpResult>(input).getResultNumber();
    return success(!reducesLast);
  }
  std::optional<unsigned> argument = argumentOf(input);
  if (argument == kernel.lhs.argument && reducesLast != kernel.lhs.transposed) {
    sum.over = SideSum::Over::LhsOverK;
    return success();
  }
  if (argument == kernel.rhs.argument && reducesLast == kernel.rhs.transposed) {
    sum.over = SideSum::Over::RhsOverK;
    return success();
  }
  return emitRule(op, 7)
         << "a sum is over k of an operand or over m of the epilogue";
}

/// The sum leaves the kernel as it is, or converted.
LogicalResult Parser::parseSumResult(linalg::GenericOp op, SideSum &sum) {
  Value value = op.getResult(0);
  if (value.hasOneUse())
    if (auto convert = dyn_cast<linalg::GenericOp>(*value.user_begin()))
      value = convert.getResult(0);
  SmallVector<unsigned> results = resultsOf(value);
  if (results.size() != 1)
    return emitRule(op, 7) << "a sum is one result of the kernel";
  sum.result = results.front();
  sum.element = getElementTypeOrSelf(value);
  return success();
}

/// Whether a body only adds its widened element to the accumulator.
static bool addsElements(linalg::GenericOp op) {
  auto add = dyn_cast_or_null<arith::AddFOp>(yieldedOp(op));
  Block *body = op.getBody();
  return add && add.getType().isF32() && body->getNumArguments() == 2 &&
         ((factor(add.getLhs()) == body->getArgument(0) &&
           add.getRhs() == body->getArgument(1)) ||
          (factor(add.getRhs()) == body->getArgument(0) &&
           add.getLhs() == body->getArgument(1)));
}

LogicalResult Parser::parseSum(linalg::GenericOp op) {
  auto start = filledFloat(op.getDpsInits().front());
  if (loops.first || op.getNumLoops() != 2 || !isReduction(op, 1) ||
      !addsElements(op) || !start || !start->isZero())
    return emitRule(op, 7) << "a sum adds the elements of a matrix, from zero, "
                              "over the last of two loops";
  SideSum sum;
  if (failed(placeSum(op, sum)) || failed(parseSumResult(op, sum)))
    return failure();
  kernel.sums.push_back(sum);
  return success();
}

/// Whether the op converts a sum (parseSumResult has looked at it).
static bool convertsSum(linalg::GenericOp op) {
  if (op.getNumLoops() != 1 || op.getNumDpsInputs() != 1)
    return false;
  auto source = op.getDpsInputs().front().getDefiningOp<linalg::GenericOp>();
  auto convert = dyn_cast_or_null<arith::TruncFOp>(yieldedOp(op));
  return source && source.getNumReductionLoops() == 1 && convert &&
         convert.getIn() == op.getBody()->getArgument(0);
}

LogicalResult Parser::parseOther(linalg::GenericOp op) {
  if (op.getNumReductionLoops() == 0) {
    if (convertsSum(op))
      return success();
    return parseEpilogue(op);
  }
  return parseSum(op);
}

FailureOr<MatmulKernel> Parser::parse() {
  kernel.contract = allowsContraction(kernel.func);
  if (failed(parseContraction()))
    return failure();
  for (auto op : kernel.func.getOps<linalg::GenericOp>())
    if (op != contraction && failed(parseOther(op)))
      return failure();
  SmallVector<unsigned> own = resultsOf(contraction.getResult(0));
  if (own.size() > 1)
    return emitRule(contraction, 7) << "the accumulator is returned twice";
  if (!own.empty())
    kernel.accumulatorResult = own.front();
  size_t written = kernel.results.size() + own.size() + kernel.sums.size();
  if (written != kernel.func.getNumResults())
    return emitRule(kernel.func, 7)
           << "results must come from the contraction, its epilogue or sums";
  return std::move(kernel);
}

FailureOr<MatmulKernel> kernel::parseMatmul(func::FuncOp func,
                                            linalg::GenericOp contraction) {
  return Parser(func, contraction).parse();
}
