//===- Measure.cpp - mpopt measure ----------------------------------------===//
//
// JSON, one object: `distance`, `error_before` and `error_after` are numbers,
// null for infinite; `applied` lists rewrites in order with `number`, `pass`,
// `rule`, `contract`, `module`, `op`, `node`, `source` and `why`.
//
//===----------------------------------------------------------------------===//

#include "codegen/Reference/Distance.h"
#include "codegen/Reference/Inputs.h"
#include "codegen/Reference/Interpreter.h"
#include "dialect/Graph/Graph.h"
#include "dialect/IR/MPDialect.h"
#include "dialect/Import/Load.h"
#include "mlir/IR/Builders.h"
#include "passes/Pipelines.h"
#include "passes/Report/CastReport.h"
#include "tools/mpopt/Commands.h"
#include "tools/mpopt/GraphPair.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

#include <cmath>

using namespace mlir;
using namespace mlir::mp;
using llvm::Error;
using llvm::Expected;

namespace {
struct Settings {
  int64_t limit, seed, trials, dynamicSize;
};

struct Applied {
  RewriteEntry entry;
  std::string pass, source;
};

struct Measurement {
  double distance = 0, errorBefore = 0, errorAfter = 0;
  std::vector<Applied> applied;
  int64_t trials = 0;
};
} // namespace

/// The one function of a graph.
static Expected<func::FuncOp> onlyFunction(ModuleOp module, StringRef input) {
  auto functions = llvm::to_vector(module.getOps<func::FuncOp>());
  if (functions.size() == 1)
    return functions.front();
  return llvm::createStringError(input + ": has " + Twine(functions.size()) +
                                 " functions; one is needed");
}

/// Reads an integer that is at least `least` into `value`, if it is given.
static Error readNumber(const Arguments &arguments, StringRef option,
                        int64_t least, int64_t &value) {
  if (!arguments.options.contains(option))
    return Error::success();
  StringRef text = arguments.get(option, "");
  if (text.getAsInteger(10, value) || value < least)
    return llvm::createStringError("option '" + option +
                                   "' takes an integer from " + Twine(least) +
                                   ", not '" + text + "'");
  return Error::success();
}

static Expected<Settings> readSettings(const Arguments &arguments) {
  Settings settings{/*limit=*/-1, /*seed=*/0, /*trials=*/3, /*dynamicSize=*/3};
  if (Error error = readNumber(arguments, "--limit", 0, settings.limit))
    return std::move(error);
  if (Error error = readNumber(arguments, "--seed", 0, settings.seed))
    return std::move(error);
  if (Error error = readNumber(arguments, "--trials", 1, settings.trials))
    return std::move(error);
  if (Error error =
          readNumber(arguments, "--dynamic-size", 0, settings.dynamicSize))
    return std::move(error);
  return settings;
}

//===----------------------------------------------------------------------===//
// The passes
//===----------------------------------------------------------------------===//

static Expected<std::string> pipelineOf(const Arguments &arguments) {
  if (arguments.options.contains("--pipeline"))
    return arguments.get("--pipeline", "").str();
  StringRef input = arguments.inputs.front();
  if (isBundle(input) && !arguments.options.contains("--numerics")) {
    Expected<std::optional<std::string>> own = bundlePipeline(input);
    if (!own)
      return own.takeError();
    if (*own)
      return **own;
  }
  return pipelineNow(arguments);
}

/// The line of the model for each node that is there now.
static void noteSources(ModuleOp module,
                        std::map<int64_t, std::string> &sources) {
  module.walk([&](Operation *op) {
    if (int64_t node = stemOf(op->getLoc()); node >= 0)
      sources.try_emplace(node, sourceText(op->getLoc()));
  });
}

/// "mp-normalize" of "func.func(mp-normalize{x=1})".
static StringRef passName(StringRef step) {
  step.consume_front("func.func(");
  return step.take_until([](char c) { return c == '{' || c == ')'; });
}

/// Runs the passes one by one, to know which one applied what.
static Error applyPasses(Session &session, ModuleOp module, StringRef pipeline,
                         std::vector<Applied> &applied) {
  std::string message;
  auto steps = splitPipeline(pipeline, message);
  if (failed(steps))
    return llvm::createStringError("pipeline '" + pipeline + "': " + message);
  std::map<int64_t, std::string> sources;
  for (const std::string &step : *steps) {
    noteSources(module, sources);
    if (Error error = session.run(module, step))
      return error;
    size_t count = 0;
    for (RewriteEntry &entry : collectRewrites(module)) {
      if (!entry.isApplied || ++count <= applied.size())
        continue;
      auto source = sources.find(entry.node);
      applied.push_back({std::move(entry), passName(step).str(),
                         source == sources.end() ? "" : source->second});
    }
  }
  return Error::success();
}

static void setLimit(func::FuncOp func, int64_t limit) {
  func->setAttr(MPDialect::kRewriteLimitAttrName,
                Builder(func.getContext()).getI64IntegerAttr(limit));
}

//===----------------------------------------------------------------------===//
// The results
//===----------------------------------------------------------------------===//

static Error measureOnce(func::FuncOp before, func::FuncOp after,
                         func::FuncOp exact, uint64_t seed, int64_t dynamicSize,
                         Measurement &result) {
  using namespace mlir::mp::reference;
  Expected<std::vector<Tensor>> inputs =
      makeInputs(before, seed, dynamicSize, Draw::Ordinary);
  if (!inputs)
    return inputs.takeError();
  Expected<std::vector<Tensor>> first = evaluate(before, *inputs);
  if (!first)
    return first.takeError();
  Expected<std::vector<Tensor>> second = evaluate(after, *inputs);
  if (!second)
    return second.takeError();
  Expected<std::vector<Tensor>> truth = evaluate(exact, widened(*inputs));
  if (!truth)
    return truth.takeError();
  auto grow = [](double &largest, double value) {
    largest = std::max(largest, value);
  };
  grow(result.distance, relativeDistance(*first, *second));
  grow(result.errorBefore, relativeDistance(*truth, *first));
  grow(result.errorAfter, relativeDistance(*truth, *second));
  return Error::success();
}

static Error compareResults(func::FuncOp before, func::FuncOp after,
                            const Settings &settings, Measurement &result) {
  OwningOpRef<func::FuncOp> exact = reference::withoutRoundings(before);
  for (; result.trials != settings.trials; ++result.trials)
    if (Error error =
            measureOnce(before, after, *exact, settings.seed + result.trials,
                        settings.dynamicSize, result))
      return error;
  return Error::success();
}

static Expected<Measurement> measure(const Arguments &arguments) {
  Expected<Settings> settings = readSettings(arguments);
  if (!settings)
    return settings.takeError();
  StringRef input = arguments.inputs.front();
  Session session;
  auto before = session.load(input, arguments.get("--model", ""));
  if (!before)
    return before.takeError();
  Expected<std::string> pipeline = pipelineOf(arguments);
  if (!pipeline)
    return pipeline.takeError();
  Expected<func::FuncOp> first = onlyFunction(**before, input);
  if (!first)
    return first.takeError();
  if (arguments.options.contains("--target"))
    (*first)->setAttr(MPDialect::kTargetAttrName,
                      Builder(session.context())
                          .getStringAttr(arguments.get("--target", "")));

  if (Error error = setPolicies(**before, arguments))
    return std::move(error);
  OwningOpRef<ModuleOp> after((*before)->clone());
  Expected<func::FuncOp> second = onlyFunction(*after, input);
  if (!second)
    return second.takeError();
  if (settings->limit >= 0)
    setLimit(*second, settings->limit);
  Measurement result;
  if (Error error = applyPasses(session, *after, *pipeline, result.applied))
    return std::move(error);
  if (Error error = compareResults(*first, *second, *settings, result))
    return llvm::createStringError(input + ": " +
                                   llvm::toString(std::move(error)));
  return std::move(result);
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

static llvm::json::Value jsonNumber(double value) {
  return std::isfinite(value) ? llvm::json::Value(value)
                              : llvm::json::Value(nullptr);
}

static void printJSON(const Measurement &result, llvm::raw_ostream &os) {
  llvm::json::OStream json(os, /*IndentSize=*/1);
  auto text = [&](StringRef key, StringRef value) {
    json.attribute(key, llvm::json::fixUTF8(value));
  };
  json.object([&] {
    json.attribute("distance", jsonNumber(result.distance));
    json.attribute("error_before", jsonNumber(result.errorBefore));
    json.attribute("error_after", jsonNumber(result.errorAfter));
    json.attributeArray("applied", [&] {
      int64_t number = 0;
      for (const Applied &applied : result.applied)
        json.object([&] {
          json.attribute("number", ++number);
          text("pass", applied.pass);
          text("rule", applied.entry.rule);
          text("contract", applied.entry.contract);
          text("module", applied.entry.region);
          text("op", applied.entry.op);
          json.attribute("node", applied.entry.node);
          text("source", applied.source);
          text("why", applied.entry.why);
        });
    });
  });
  os << '\n';
}

static void printText(const Measurement &result, llvm::raw_ostream &os) {
  os << result.applied.size() << " rewrites, " << result.trials << " inputs\n";
  auto row = [&](StringRef label, double value) {
    os << llvm::formatv("  {0,-36} {1}\n", label,
                        llvm::formatv("{0:e3}", value));
  };
  row("distance from the graph before", result.distance);
  row("error against f64, before", result.errorBefore);
  row("error against f64, after", result.errorAfter);
}

int mlir::mp::runMeasure(const Arguments &arguments) {
  Expected<Measurement> result = measure(arguments);
  if (!result)
    return reportError(result.takeError());
  if (arguments.get("--format", "text") == "json")
    ::printJSON(*result, llvm::outs());
  else
    ::printText(*result, llvm::outs());
  return Ok;
}
