//===- Pipelines.cpp - named sequences of passes --------------------------===//

#include "passes/Pipelines.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;
using namespace mlir::mp;

using Passes = std::vector<std::unique_ptr<Pass>>;

/// What must keep its type, by the user's word first. On the types as traced,
/// before conversions go.
template <typename Options>
static void addPins(Passes &passes, const Options &options, Half half) {
  passes.push_back(createApplyPolicy());
  PinTypesOptions pin;
  pin.half = half;
  pin.rangesFile = options.ranges;
  passes.push_back(createPinTypes(pin));
}

/// Types of library calls are chosen on the whole graph, before a partitioner
/// sees what their operands cost to keep.
static void addTypesOfCalls(Passes &passes, const PipelineOptions &options) {
  AssignPrecisionOptions assign;
  assign.precision = options.precision;
  assign.costModel = options.costModel;
  passes.push_back(createAssignPrecision(assign));
  passes.push_back(createApplyPrecision());
}

static Passes passesOf(const PipelineOptions &options) {
  Passes passes;
  // First, so that no later pass meets a second spelling of a conversion.
  passes.push_back(createNormalize());
  // Before conversions move: afterwards they could hide a pattern.
  passes.push_back(createRaise());
  addPins(passes, options,
          options.precision == Half::F16 ? Half::F16 : Half::Auto);
  passes.push_back(createWidenPinned({options.numerics}));
  if (options.precision != Half::None)
    addTypesOfCalls(passes, options);
  passes.push_back(createEliminateCasts({options.numerics}));
  // Last but one: the graph goes back to the framework.
  passes.push_back(createLower());
  // On what the framework gets, so that the report is about that.
  passes.push_back(createReportCasts({options.numerics}));
  return passes;
}

static Passes passesOf(const PartitionedOptions &options) {
  Passes passes;
  passes.push_back(createNormalize());
  passes.push_back(createRaise());
  addPins(passes, options, Half::Auto);
  AssignPrecisionOptions assign;
  assign.numerics = options.numerics;
  assign.epsilon = options.epsilon;
  assign.costModel = options.costModel;
  passes.push_back(createAssignPrecision(assign));
  passes.push_back(createApplyPrecision());
  // A wide result meets the widenings of its readers.
  passes.push_back(createEliminateCasts({Numerics::Precise}));
  // What is kept is known now, and in which types.
  passes.push_back(createPlanSaves());
  passes.push_back(createLower());
  return passes;
}

template <typename Options>
static void addPasses(OpPassManager &pm, const Options &options) {
  OpPassManager &nested = pm.nest<func::FuncOp>();
  for (std::unique_ptr<Pass> &pass : passesOf(options))
    if (!llvm::is_contained(options.disable, pass->getArgument()))
      nested.addPass(std::move(pass));
}

void mlir::mp::buildDefaultPipeline(OpPassManager &pm,
                                    const PipelineOptions &options) {
  addPasses(pm, options);
}

void mlir::mp::buildPartitionedPipeline(OpPassManager &pm,
                                        const PartitionedOptions &options) {
  addPasses(pm, options);
}

/// Everything about the update that a traced step shows, and leaves it raised.
static void buildUpdatePipeline(OpPassManager &pm) {
  OpPassManager &nested = pm.nest<func::FuncOp>();
  nested.addPass(createNormalize());
  // Before the operators over lists hide which tensor goes where.
  nested.addPass(createExpandForeach());
  // Before anything is rewritten that would be wrong.
  nested.addPass(createCheckLossScale());
  nested.addPass(createFuseScaledUpdate());
}

/// The name in `disable` that no pass has, and the nearest that one has. A pass
/// of another pipeline counts: one option of the backend is for all of them.
static std::optional<std::pair<StringRef, StringRef>>
findUnknownName(ArrayRef<std::string> disable) {
  Passes passes = passesOf(PipelineOptions());
  for (std::unique_ptr<Pass> &pass : passesOf(PartitionedOptions()))
    passes.push_back(std::move(pass));
  for (const std::string &name : disable) {
    auto distance = [&](const std::unique_ptr<Pass> &pass) {
      return StringRef(name).edit_distance(pass->getArgument());
    };
    auto nearest =
        std::min_element(passes.begin(), passes.end(), [&](auto &a, auto &b) {
          return distance(a) < distance(b);
        });
    if (distance(*nearest) != 0)
      return std::pair(StringRef(name), (*nearest)->getArgument());
  }
  return std::nullopt;
}

/// PassPipelineRegistration has no way to refuse an option.
template <typename Options>
static void registerWithDisable(StringRef name, StringRef description) {
  registerPassPipeline(
      name, description,
      [name](OpPassManager &pm, StringRef text,
             function_ref<LogicalResult(const Twine &)> emitError)
          -> LogicalResult {
        Options options;
        if (failed(options.parseFromString(text)))
          return failure();
        if (auto unknown = findUnknownName(options.disable))
          return emitError(name + " has no pass '" + unknown->first +
                           "' to disable; did you mean '" + unknown->second +
                           "'?");
        addPasses(pm, options);
        return success();
      },
      [](function_ref<void(const mlir::detail::PassOptions &)> visit) {
        visit(Options());
      });
}

void mlir::mp::registerPipelines() {
  registerWithDisable<PipelineOptions>(
      "mp-default", "Clean conversions under a numerics contract");
  registerWithDisable<PartitionedOptions>(
      "mp-partitioned",
      "Choose the types of what is stored, once the partition is known");
  PassPipelineRegistration<>(
      "mp-update", "Check the loss scale and fuse the update of a traced step",
      buildUpdatePipeline);
}

/// Cuts `text` at the commas that are not inside brackets.
static std::vector<std::string> splitAtTopLevel(StringRef text) {
  std::vector<std::string> parts;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    char letter = i == text.size() ? ',' : text[i];
    depth += letter == '(' || letter == '{';
    depth -= letter == ')' || letter == '}';
    if (letter != ',' || depth != 0)
      continue;
    if (StringRef part = text.slice(start, i).trim(); !part.empty())
      parts.push_back(part.str());
    start = i + 1;
  }
  return parts;
}

FailureOr<std::vector<std::string>>
mlir::mp::splitPipeline(StringRef pipeline, std::string &error) {
  OpPassManager pm(ModuleOp::getOperationName());
  llvm::raw_string_ostream os(error);
  if (failed(parsePassPipeline(pipeline, pm, os)))
    return failure();
  std::vector<std::string> passes;
  for (Pass &pass : pm) {
    std::string text;
    llvm::raw_string_ostream out(text);
    pass.printAsTextualPipeline(out);
    StringRef rest(text);
    if (!rest.consume_front("func.func(")) {
      passes.push_back(text);
      continue;
    }
    for (std::string &inner : splitAtTopLevel(rest.drop_back()))
      passes.push_back("func.func(" + inner + ")");
  }
  return passes;
}

FailureOr<std::string> mlir::mp::contractOf(StringRef pipeline,
                                            std::string &error) {
  FailureOr<std::vector<std::string>> passes = splitPipeline(pipeline, error);
  if (failed(passes))
    return failure();
  std::string contract = "strict";
  auto isRelaxed = [](StringRef pass) {
    return llvm::any_of(
        std::array<StringRef, 4>{"mp-remove-loss-scale", "numerics=relaxed",
                                 "precision=bf16", "precision=f16"},
        [&](StringRef text) { return pass.contains(text); });
  };
  for (StringRef pass : *passes) {
    if (isRelaxed(pass))
      return std::string("relaxed");
    if (pass.contains("numerics=precise"))
      contract = "precise";
  }
  return contract;
}
