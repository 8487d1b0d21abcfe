//===- mpopt-run.cpp - evaluate a graph with the reference interpreter ----===//
//
// Runs one function on inputs made from a seed and prints its results, or runs
// two files on the same inputs and fails at the first differing bit. Exit
// codes: 0 done or equal, 1 different or not evaluated, 2 wrong command line or
// file.
//
//===----------------------------------------------------------------------===//

#include "codegen/Reference/Inputs.h"
#include "codegen/Reference/Interpreter.h"
#include "dialect/IR/MPDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/InitLLVM.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::reference;

static llvm::cl::OptionCategory category("mpopt-run options");
static llvm::cl::opt<std::string> inputFile(llvm::cl::Positional,
                                            llvm::cl::desc("FILE"),
                                            llvm::cl::Required,
                                            llvm::cl::cat(category));
static llvm::cl::opt<std::string>
    compareFile("compare", llvm::cl::value_desc("FILE"),
                llvm::cl::desc("file that must give the same bits"),
                llvm::cl::cat(category));
static llvm::cl::opt<std::string>
    functionName("function", llvm::cl::value_desc("name"),
                 llvm::cl::desc("function to run (default: the first)"),
                 llvm::cl::cat(category));
static llvm::cl::opt<uint64_t> seed("seed", llvm::cl::init(0),
                                    llvm::cl::desc("seed of the inputs"),
                                    llvm::cl::cat(category));
static llvm::cl::opt<unsigned>
    trials("trials", llvm::cl::init(1),
           llvm::cl::desc("number of inputs, of consecutive seeds"),
           llvm::cl::cat(category));
static llvm::cl::opt<int64_t>
    dynamicSize("dynamic-size", llvm::cl::init(3),
                llvm::cl::desc("size that stands for a dynamic one"),
                llvm::cl::cat(category));

static func::FuncOp findFunction(ModuleOp module, StringRef file) {
  if (functionName.empty())
    for (auto func : module.getOps<func::FuncOp>())
      return func;
  if (auto func = module.lookupSymbol<func::FuncOp>(functionName))
    return func;
  llvm::errs() << "error: " << file << " has no function"
               << (functionName.empty() ? "" : " @") << functionName << '\n';
  return {};
}

static void print(ArrayRef<Tensor> results) {
  for (auto [r, result] : llvm::enumerate(results)) {
    llvm::outs() << "result " << r << ": ";
    for (int64_t size : result.shape)
      llvm::outs() << size << 'x';
    llvm::outs() << result.element << " =";
    for (int64_t i = 0, end = result.numElements(); i != end; ++i) {
      if (result.isFloat())
        llvm::outs() << llvm::format(" %.9g", result.floats[i]);
      else
        llvm::outs() << ' ' << result.ints[i];
    }
    llvm::outs() << '\n';
  }
}

/// Reports the first difference; true if there is none.
static bool areEqual(ArrayRef<Tensor> a, ArrayRef<Tensor> b, uint64_t seed) {
  if (a.size() != b.size()) {
    llvm::errs() << "error: " << a.size() << " results and " << b.size()
                 << '\n';
    return false;
  }
  for (size_t r = 0; r != a.size(); ++r) {
    if (a[r].element != b[r].element || a[r].shape != b[r].shape) {
      llvm::errs() << "error: types of result " << r << " differ\n";
      return false;
    }
    int64_t i = firstDifference(a[r], b[r]);
    if (i < 0)
      continue;
    llvm::errs() << "error: seed " << seed << ": result " << r << " element "
                 << i
                 << llvm::format(": %.17g and %.17g\n", a[r].number(i),
                                 b[r].number(i));
    return false;
  }
  return true;
}

/// Reports an error; true if there is none.
template <typename T>
static bool check(llvm::Expected<T> &value, StringRef file) {
  if (value)
    return true;
  llvm::errs() << "error: " << file << ": " << llvm::toString(value.takeError())
               << '\n';
  return false;
}

static bool runOnce(func::FuncOp first, func::FuncOp second, uint64_t seed) {
  auto inputs = makeInputs(first, seed, dynamicSize);
  if (!check(inputs, inputFile))
    return false;
  auto results = evaluate(first, *inputs);
  if (!check(results, inputFile))
    return false;
  if (!second) {
    print(*results);
    return true;
  }
  auto others = evaluate(second, *inputs);
  return check(others, compareFile) && areEqual(*results, *others, seed);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  llvm::cl::HideUnrelatedOptions(category);
  llvm::cl::ParseCommandLineOptions(
      argc, argv, "evaluate a graph with the reference interpreter\n");
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<MPDialect, func::FuncDialect>();

  auto module = parseSourceFile<ModuleOp>(inputFile, &context);
  func::FuncOp first = module ? findFunction(*module, inputFile) : nullptr;
  if (!first)
    return 2;
  OwningOpRef<ModuleOp> other;
  func::FuncOp second;
  if (!compareFile.empty()) {
    other = parseSourceFile<ModuleOp>(compareFile, &context);
    second = other ? findFunction(*other, compareFile) : nullptr;
    if (!second)
      return 2;
  }
  for (unsigned trial = 0; trial != trials; ++trial)
    if (!runOnce(first, second, seed + trial))
      return 1;
  if (second)
    llvm::outs() << "equal bits in " << trials << " trials\n";
  return 0;
}
