//===- Interpreter.cpp - what a graph means -------------------------------===//

#include "codegen/Reference/Interpreter.h"
#include "codegen/Reference/Evaluators.h"
#include "dialect/Graph/Graph.h"
#include "dialect/IR/ListOperators.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::reference;

static const EvaluatorTable &evaluators() {
  static const EvaluatorTable table = [] {
    EvaluatorTable table;
    addCastEvaluators(table);
    addViewEvaluators(table);
    addMovementEvaluators(table);
    addPointwiseEvaluators(table);
    addReductionEvaluators(table);
    addMatmulEvaluators(table);
    addNormEvaluators(table);
    addBackwardEvaluators(table);
    addAttentionEvaluators(table);
    addUpdateEvaluators(table);
    return table;
  }();
  return table;
}

/// "mp.cast", "mp.matmul", or the framework operator that the op stands for.
static StringRef evaluatorName(Operation *op) {
  StringRef callee = frameworkCallee(op);
  return callee.empty() || isa<MatmulOp>(op) ? op->getName().getStringRef()
                                             : callee;
}

static Evaluator evaluatorOf(Operation *op) {
  StringRef name = evaluatorName(op);
  // view.dtype reinterprets bits and is not the view of its operator.
  if (name == "aten.view.dtype")
    return nullptr;
  if (Evaluator evaluator = evaluators().lookup(name))
    return evaluator;
  return evaluators().lookup(stripOverload(name));
}

/// An operator over lists that has a definition (ListOperators.h).
static bool isExpandable(Operation *op) {
  auto aten = dyn_cast<AtenOp>(op);
  return aten && isListOperator(aten) && whyNotExpandable(aten).empty();
}

bool mlir::mp::reference::isSupported(Operation *op) {
  if (isa<ScaledUpdateOp, RegionOp>(op))
    return llvm::all_of(op->getRegion(0).front().without_terminator(),
                        [](Operation &inner) { return isSupported(&inner); });
  return isExpandable(op) || evaluatorOf(op) != nullptr;
}

static llvm::Error errorAt(Operation *op, const Twine &message) {
  std::string location;
  llvm::raw_string_ostream(location) << op->getLoc();
  return llvm::createStringError(evaluatorName(op) + " " + message + " at " +
                                 location);
}

/// Checks a value against its type in the IR: the element type is equal and
/// every static size is kept.
static bool agrees(const Tensor &value, Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return value.element == type && value.rank() == 0;
  if (value.element != tensor.getElementType() ||
      value.rank() != tensor.getRank())
    return false;
  return llvm::all_of(llvm::zip(value.shape, tensor.getShape()), [](auto pair) {
    auto [size, expected] = pair;
    return ShapedType::isDynamic(expected) || size == expected;
  });
}

static std::string shapeText(const Tensor &value) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (int64_t size : value.shape)
    os << size << 'x';
  os << value.element;
  return text;
}

using Values = DenseMap<Value, Tensor>;

static llvm::Error evaluateBody(Block &body, Values &values);

/// The body on the operands; the arguments of the body are values of their own.
static llvm::Error evaluateNested(Operation *op, Values &values) {
  Block &body = op->getRegion(0).front();
  for (auto [argument, operand] :
       llvm::zip(body.getArguments(), op->getOperands())) {
    Tensor value = values.find(operand)->second;
    values[argument] = std::move(value);
  }
  if (llvm::Error error = evaluateBody(body, values))
    return error;
  for (auto [result, yielded] :
       llvm::zip(op->getResults(), body.getTerminator()->getOperands())) {
    Tensor value = values.find(yielded)->second;
    values[result] = std::move(value);
  }
  return llvm::Error::success();
}

static llvm::Error evaluateOp(Operation *op, Values &values) {
  if (isa<ScaledUpdateOp, RegionOp>(op))
    return evaluateNested(op, values);
  Evaluator evaluator = evaluatorOf(op);
  if (!evaluator)
    return errorAt(op, "has no evaluator");
  for (Type type : op->getResultTypes())
    if (!isSupportedElement(getElementTypeOrSelf(type)))
      return errorAt(op, "has a result type that is not supported");

  SmallVector<const Tensor *> operands;
  for (Value operand : op->getOperands())
    operands.push_back(&values.find(operand)->second);
  Call call(op, operands);
  std::vector<Tensor> results = evaluator(call);
  if (call.failed())
    return errorAt(op, llvm::toString(call.takeError()));
  if (results.size() != op->getNumResults())
    return errorAt(op, "has " + Twine(op->getNumResults()) +
                           " results, computed " + Twine(results.size()));
  for (auto [result, value] : llvm::zip(op->getResults(), results)) {
    if (!agrees(value, result.getType()))
      return errorAt(op, "computed " + shapeText(value) +
                             ", which is not of the type of its result");
    values[result] = std::move(value);
  }
  return llvm::Error::success();
}

static llvm::Error evaluateBody(Block &body, Values &values) {
  for (Operation &op : body.without_terminator())
    if (llvm::Error error = evaluateOp(&op, values))
      return error;
  return llvm::Error::success();
}

/// Puts the definitions of operators over lists in their places.
static void expandLists(func::FuncOp func) {
  for (AtenOp op : llvm::make_early_inc_range(func.getOps<AtenOp>()))
    if (isExpandable(op))
      replaceByLoop(op, derivedLocation(op.getLoc()));
}

llvm::Expected<std::vector<Tensor>>
mlir::mp::reference::evaluate(func::FuncOp func, ArrayRef<Tensor> inputs) {
  bool hasLists = llvm::any_of(func.getOps(),
                               [](Operation &op) { return isExpandable(&op); });
  if (hasLists) {
    OwningOpRef<func::FuncOp> expanded = func.clone();
    expandLists(*expanded);
    return evaluate(*expanded, inputs);
  }
  if (func.isExternal() || !func.getBody().hasOneBlock())
    return llvm::createStringError("function must have one block");
  if (inputs.size() != func.getNumArguments())
    return llvm::createStringError("function has " +
                                   Twine(func.getNumArguments()) +
                                   " arguments, got " + Twine(inputs.size()));
  Values values;
  for (auto [argument, input] : llvm::zip(func.getArguments(), inputs)) {
    if (!agrees(input, argument.getType()))
      return llvm::createStringError(
          "argument " + Twine(argument.getArgNumber()) + " got " +
          shapeText(input) + ", which is not of its type");
    values[argument] = input;
  }
  if (llvm::Error error = evaluateBody(func.getBody().front(), values))
    return error;
  std::vector<Tensor> results;
  for (Value value : func.getBody().front().getTerminator()->getOperands())
    results.push_back(values.find(value)->second);
  return results;
}
