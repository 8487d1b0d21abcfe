//===- RowsReference.cpp - row kernels in double precision ----------------===//

#include "RowsReference.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "runtime/Numerics.h"
#include "llvm/ADT/StringMap.h"
#include <cmath>

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::test;

using Kind = RowStage::Kind;

double test::roundTo(Type type, double value) {
  if (type.isF16())
    return mpopt::roundToF16(value);
  if (type.isBF16())
    return mpopt::roundToBF16(value);
  return type.isF32() ? mpopt::roundToF32(value) : value;
}

using Function = double (*)(ArrayRef<double>);

static const llvm::StringMap<Function> &functions() {
  static const llvm::StringMap<Function> map = {
      {"arith.addf", [](auto x) { return x[0] + x[1]; }},
      {"arith.subf", [](auto x) { return x[0] - x[1]; }},
      {"arith.mulf", [](auto x) { return x[0] * x[1]; }},
      {"arith.divf", [](auto x) { return x[0] / x[1]; }},
      {"arith.maximumf", [](auto x) { return std::fmax(x[0], x[1]); }},
      {"arith.select", [](auto x) { return x[0] != 0 ? x[1] : x[2]; }},
      {"arith.cmpi", [](auto x) { return double(x[0] == x[1]); }},
      {"arith.extf", [](auto x) { return x[0]; }},
      {"arith.bitcast", [](auto x) { return x[0]; }},
      {"arith.index_cast", [](auto x) { return x[0]; }},
      {"math.exp", [](auto x) { return std::exp(x[0]); }},
      {"math.log", [](auto x) { return std::log(x[0]); }},
      {"math.tanh", [](auto x) { return std::tanh(x[0]); }},
      {"math.sqrt", [](auto x) { return std::sqrt(x[0]); }},
      {"math.rsqrt", [](auto x) { return 1 / std::sqrt(x[0]); }},
  };
  return map;
}

namespace {
class Interpreter {
public:
  Interpreter(const RowKernel &kernel, int64_t rows) : kernel(kernel) {
    extents = {rows, kernel.columns};
  }
  void run(const RowStage &stage);
  llvm::DenseMap<Value, Numbers> values;

private:
  int64_t indexOf(Access access, int64_t row, int64_t column) const;
  SmallVector<double> evaluate(const RowStage &stage, int64_t row,
                               int64_t column, ArrayRef<double> results);
  double number(Value value);

  const RowKernel &kernel;
  std::pair<int64_t, int64_t> extents;
  llvm::DenseMap<Value, double> scalars;
};
} // namespace

int64_t Interpreter::indexOf(Access access, int64_t row, int64_t column) const {
  switch (access) {
  case Access::Element:
    return row * extents.second + column;
  case Access::Row:
    return row;
  case Access::Column:
    return column;
  case Access::Scalar:
    return 0;
  }
  llvm_unreachable("all accesses are handled");
}

double Interpreter::number(Value value) {
  if (auto found = scalars.find(value); found != scalars.end())
    return found->second;
  Attribute constant = value.getDefiningOp<arith::ConstantOp>().getValue();
  if (auto real = dyn_cast<FloatAttr>(constant))
    return real.getValueAsDouble();
  return double(cast<IntegerAttr>(constant).getInt());
}

/// What the body yields at a position; `results` are the accumulators.
SmallVector<double> Interpreter::evaluate(const RowStage &stage, int64_t row,
                                          int64_t column,
                                          ArrayRef<double> results) {
  linalg::GenericOp op = stage.op;
  Block &body = *op.getBody();
  scalars.clear();
  for (auto [i, input] : llvm::enumerate(op.getInputs())) {
    unsigned argument = argumentOf(input).value_or(0);
    Value key =
        argumentOf(input)
            ? Value(op->getParentOfType<func::FuncOp>().getArgument(argument))
            : input;
    scalars[body.getArgument(i)] =
        values[key][indexOf(stage.accesses[i], row, column)];
  }
  for (auto [i, result] : llvm::enumerate(results))
    scalars[body.getArgument(op.getInputs().size() + i)] = result;
  for (Operation &each : body.without_terminator()) {
    SmallVector<double> operands;
    for (Value operand : each.getOperands())
      operands.push_back(number(operand));
    double &made = scalars[each.getResult(0)];
    if (auto index = dyn_cast<linalg::IndexOp>(each))
      made = index.getDim() == 0 ? row : column;
    else if (isa<arith::TruncFOp>(each))
      made = roundTo(each.getResult(0).getType(), operands[0]);
    else
      made = functions().lookup(each.getName().getStringRef())(operands);
  }
  SmallVector<double> yielded;
  for (Value value : body.getTerminator()->getOperands())
    yielded.push_back(number(value));
  return yielded;
}

static Access accessOf(Kind kind) {
  if (kind == Kind::Pointwise)
    return Access::Element;
  bool isColumn =
      kind == Kind::ColumnReduction || kind == Kind::ColumnPointwise;
  return isColumn ? Access::Column : Access::Row;
}

static double neutralOf(Operation *combiner) {
  return isa_and_nonnull<arith::MaximumFOp>(combiner) ? -INFINITY : 0;
}

void Interpreter::run(const RowStage &stage) {
  Access access = accessOf(stage.kind);
  auto [rows, columns] = extents;
  size_t size = access == Access::Element ? rows * columns
                : access == Access::Row   ? rows
                                          : columns;
  linalg::GenericOp op = stage.op;
  std::vector<Numbers> made(op.getNumResults(),
                            Numbers(size, neutralOf(stage.combiner)));
  bool hasRows = stage.kind != Kind::ColumnPointwise;
  bool hasColumns = stage.kind != Kind::RowPointwise;
  for (int64_t row = 0; row < (hasRows ? rows : 1); ++row)
    for (int64_t column = 0; column < (hasColumns ? columns : 1); ++column) {
      int64_t at = indexOf(access, row, column);
      SmallVector<double> before;
      for (Numbers &numbers : made)
        before.push_back(numbers[at]);
      auto yielded = evaluate(stage, row, column, before);
      for (auto [numbers, value] : llvm::zip_equal(made, yielded))
        numbers[at] = value;
    }
  for (auto [result, numbers] : llvm::zip_equal(op.getResults(), made))
    values[result] = std::move(numbers);
}

std::vector<Numbers> test::runReference(const RowKernel &kernel, int64_t rows,
                                        const std::vector<Numbers> &arguments) {
  Interpreter interpreter(kernel, rows);
  func::FuncOp func = kernel.func;
  for (auto [argument, numbers] :
       llvm::zip_equal(func.getArguments(), arguments))
    interpreter.values[argument] = numbers;
  std::vector<Numbers> results(func.getNumResults());
  for (const RowStage &stage : kernel.stages) {
    interpreter.run(stage);
    for (Value value : stage.op->getResults())
      for (unsigned result : resultsOf(value))
        results[result] = interpreter.values[value];
  }
  return results;
}
