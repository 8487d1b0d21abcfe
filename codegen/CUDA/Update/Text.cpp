//===- Text.cpp - the kernels of the update by name -----------------------===//

#include "codegen/CUDA/Update/Text.h"
#include "codegen/CUDA/Update/Factors.h"
#include "codegen/CUDA/Update/Measure.h"
#include "codegen/CUDA/Update/Update.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::mp::cuda;
using mpopt::AtFloor;
using mpopt::ScalerRule;
using mpopt::update::Algorithm;
using mpopt::update::Format;
using mpopt::update::Rounding;

using Words = ArrayRef<StringRef>;

static InFlightDiagnostic fail(MLIRContext &context) {
  return emitError(UnknownLoc::get(&context));
}

static std::optional<Format> formatCalled(StringRef name) {
  return llvm::StringSwitch<std::optional<Format>>(name)
      .Case("f32", Format::F32)
      .Case("f16", Format::F16)
      .Case("bf16", Format::BF16)
      .Default(std::nullopt);
}

static std::optional<Algorithm> algorithmCalled(StringRef name) {
  return llvm::StringSwitch<std::optional<Algorithm>>(name)
      .Case("adam", Algorithm::Adam)
      .Case("sgd", Algorithm::SGD)
      .Case("lion", Algorithm::Lion)
      .Default(std::nullopt);
}

//===----------------------------------------------------------------------===//
// update
//===----------------------------------------------------------------------===//

/// Sets what one word says; false if it says nothing.
static bool setOption(UpdateKernel &kernel, StringRef word) {
  auto [key, value] = word.split('=');
  if (std::optional<Format> format = formatCalled(value)) {
    if (key == "weight" || key == "gradient") {
      (key == "weight" ? kernel.weight : kernel.gradient) = *format;
      return true;
    }
    auto *array = llvm::StringSwitch<std::optional<Format> *>(key)
                      .Case("first", &kernel.first)
                      .Case("second", &kernel.second)
                      .Case("largest", &kernel.largest)
                      .Case("copy", &kernel.copy)
                      .Default(nullptr);
    if (array)
      *array = format;
    return array;
  }
  if (word == "stochastic") {
    kernel.rounding = Rounding::Stochastic;
    return true;
  }
  bool *option = llvm::StringSwitch<bool *>(word)
                     .Case("split", &kernel.isSplit)
                     .Case("nesterov", &kernel.isNesterov)
                     .Case("clear", &kernel.clearsGradients)
                     .Default(nullptr);
  if (option)
    *option = true;
  return option;
}

static FailureOr<EmittedKernel> update(MLIRContext &context, Words words) {
  std::optional<Algorithm> algorithm;
  if (!words.empty())
    algorithm = algorithmCalled(words.front());
  if (!algorithm)
    return fail(context) << "an update needs adam, sgd or lion";
  UpdateKernel kernel;
  kernel.algorithm = *algorithm;
  for (StringRef word : words.drop_front())
    if (!setOption(kernel, word))
      return fail(context) << "an update knows no '" << word << "'";
  return emitUpdate(context, kernel);
}

//===----------------------------------------------------------------------===//
// advance
//===----------------------------------------------------------------------===//

static bool setFigure(ScalerRule &rule, StringRef word) {
  auto [key, value] = word.split('=');
  if (key == "at_floor") {
    auto choice = llvm::StringSwitch<std::optional<AtFloor>>(value)
                      .Case("hold", AtFloor::Hold)
                      .Case("reset", AtFloor::Reset)
                      .Case("fail", AtFloor::Fail)
                      .Default(std::nullopt);
    rule.atFloor = choice.value_or(rule.atFloor);
    return choice.has_value();
  }
  double *real = llvm::StringSwitch<double *>(key)
                     .Case("init_scale", &rule.initScale)
                     .Case("growth_factor", &rule.growthFactor)
                     .Case("backoff_factor", &rule.backoffFactor)
                     .Case("min_scale", &rule.minScale)
                     .Case("max_scale", &rule.maxScale)
                     .Default(nullptr);
  if (real)
    return !value.getAsDouble(*real);
  int32_t *whole = llvm::StringSwitch<int32_t *>(key)
                       .Case("growth_interval", &rule.growthInterval)
                       .Case("hysteresis", &rule.hysteresisSteps)
                       .Case("floor_tolerance", &rule.floorTolerance)
                       .Default(nullptr);
  return whole && !value.getAsInteger(10, *whole);
}

static FailureOr<EmittedKernel> advance(MLIRContext &context, Words words) {
  const ScalerRule *found =
      words.empty() ? nullptr : mpopt::findScalerRule(words.front().str());
  if (!found)
    return fail(context) << "advance needs the name of a rule";
  ScalerRule rule = *found;
  for (StringRef word : words.drop_front())
    if (!setFigure(rule, word))
      return fail(context) << "a rule knows no '" << word << "'";
  std::string wrong = mpopt::whatIsWrong(rule);
  if (!wrong.empty())
    return fail(context) << wrong;
  return emitAdvance(context, rule);
}

//===----------------------------------------------------------------------===//
// The others
//===----------------------------------------------------------------------===//

static FailureOr<EmittedKernel> measure(MLIRContext &context, Words words) {
  std::optional<Format> format;
  if (words.size() == 1)
    format = formatCalled(words.front());
  if (!format)
    return fail(context) << "measure needs f32, f16 or bf16";
  return emitMeasure(context, *format);
}

static FailureOr<EmittedKernel> factors(MLIRContext &context, Words words) {
  bool readsRate = words.size() == 1 && words.front() == "rate";
  if (!readsRate && !words.empty())
    return fail(context) << "factors knows no '" << words.front() << "'";
  return emitFactors(context, readsRate);
}

template <EmittedKernel (*emit)(MLIRContext &)>
static FailureOr<EmittedKernel> plain(MLIRContext &context, Words words) {
  if (!words.empty())
    return fail(context) << "'" << words.front() << "' where nothing is needed";
  return emit(context);
}

FailureOr<EmittedKernel> mlir::mp::cuda::emitFromText(MLIRContext &context,
                                                      StringRef text) {
  SmallVector<StringRef> words;
  text.split(words, ' ', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  using Emit = FailureOr<EmittedKernel> (*)(MLIRContext &, Words);
  Emit emit = words.empty() ? nullptr
                            : llvm::StringSwitch<Emit>(words.front())
                                  .Case("update", update)
                                  .Case("measure", measure)
                                  .Case("total", plain<emitTotal>)
                                  .Case("decide", plain<emitDecide>)
                                  .Case("note", plain<emitNote>)
                                  .Case("advance", advance)
                                  .Case("factors", factors)
                                  .Case("poke", plain<emitPoke>)
                                  .Default(nullptr);
  if (!emit)
    return fail(context) << "no kernel of the update is called '" << text
                         << "'";
  return emit(context, Words(words).drop_front());
}
