//===- mpopt-emulate.cpp - run a CUDA kernel on the CPU -------------------===//
//
// Reads a kernel in the form of the backend contract, emits it for a chip, runs
// it in the emulator and compares it with the reference interpreter. The folder
// above says what is checked and what is not (README.md).
//
// Exit codes: 0 nothing found, 1 a fault, a wrong result or (with
// --fail-on-conflicts) a bank conflict, 2 wrong command line, file or kernel.
//
//===----------------------------------------------------------------------===//

#include "codegen/CUDA/Compile.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Parser/Parser.h"
#include "test/emulator/Tool/Compare.h"
#include "test/emulator/Tool/Session.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
using namespace mlir::mp;

namespace cl = llvm::cl;

namespace {
enum class CopyTimes { Both, Late, Eager };
} // namespace

static constexpr int kFound = 1, kUnusable = 2;

static cl::OptionCategory category("mpopt-emulate options");
static cl::opt<std::string> inputFile(cl::Positional, cl::desc("KERNEL"),
                                      cl::init("-"), cl::cat(category));
static cl::opt<std::string>
    moduleFile("module",
               cl::desc("run this, .mlir or .ll of mpopt-codegen (for the same "
                        "target and schedule), instead of what is emitted"),
               cl::value_desc("file"), cl::cat(category));
static cl::opt<std::string> target("target", cl::desc("chip, such as sm_80"),
                                   cl::value_desc("chip"), cl::init("sm_80"),
                                   cl::cat(category));
static cl::opt<std::string>
    schedule("schedule",
             cl::desc("such as '128x128x32 w64x64 s4' (default: chosen)"),
             cl::value_desc("text"), cl::cat(category));
static cl::opt<int64_t> size("size",
                             cl::desc("the dynamic extent (default: 37)"),
                             cl::value_desc("n"), cl::init(37),
                             cl::cat(category));
static cl::opt<uint64_t> seed("seed", cl::desc("of the data (default: 1)"),
                              cl::value_desc("n"), cl::init(1),
                              cl::cat(category));
static cl::opt<emulator::Data>
    data("data", cl::desc("floats of arguments"),
         cl::init(emulator::Data::Integer),
         cl::values(clEnumValN(emulator::Data::Integer, "integer",
                               "from -3 to 3: sums are exact (default)"),
                    clEnumValN(emulator::Data::Real, "real", "from -2 to 2")),
         cl::cat(category));
static cl::opt<CopyTimes> copies(
    "copies", cl::desc("when asynchronous copies arrive"),
    cl::init(CopyTimes::Both),
    cl::values(clEnumValN(CopyTimes::Both, "both",
                          "one run each, which must agree (default)"),
               clEnumValN(CopyTimes::Late, "late", "at the wait for them"),
               clEnumValN(CopyTimes::Eager, "eager", "at once")),
    cl::cat(category));
static cl::opt<double>
    places("places",
           cl::desc("units in the last place that a result may be off, beside "
                    "2^-17 of the largest (default: 1)"),
           cl::value_desc("x"), cl::init(1), cl::cat(category));
static cl::opt<bool> isExact("exact",
                             cl::desc("results must have the same bits"),
                             cl::cat(category));
static cl::opt<int64_t>
    resident("blocks",
             cl::desc("blocks of a kernel that goes through its tiles itself "
                      "(default: 3)"),
             cl::value_desc("n"), cl::init(3), cl::cat(category));
static cl::opt<bool> failOnConflicts("fail-on-conflicts",
                                     cl::desc("bank conflicts count as found"),
                                     cl::cat(category));
static cl::opt<bool> printsCosts("costs",
                                 cl::desc("print the cost of global accesses "
                                          "and how often operations ran"),
                                 cl::cat(category));
static cl::opt<bool> printsJson("json", cl::desc("print JSON instead of text"),
                                cl::cat(category));

static int fail(const Twine &text) {
  llvm::errs() << "error: " << text << '\n';
  return kUnusable;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static bool isEmitted(ModuleOp module) {
  return !module.getOps<gpu::GPUModuleOp>().empty();
}

/// A gpu.module, in the NVVM dialect or before it.
static llvm::Expected<std::unique_ptr<emulator::Kernel>>
loadMLIR(MLIRContext &context, const cuda::Chip &chip) {
  auto module = parseSourceFile<ModuleOp>(moduleFile, &context);
  if (!module || !isEmitted(*module))
    return llvm::createStringError(
        moduleFile + " has no gpu.module; write one with mpopt-codegen "
                     "--emit=nvvm");
  bool isHigh = false;
  module->walk([&](gpu::GPUFuncOp) { isHigh = true; });
  if (isHigh && failed(cuda::lowerToNVVM(*module, chip)))
    return llvm::createStringError(moduleFile + " cannot be lowered");
  return emulator::Kernel::fromMLIR(module->getOperation());
}

static llvm::Expected<std::unique_ptr<emulator::Kernel>> loadLLVM() {
  llvm::LLVMContext context;
  llvm::SMDiagnostic error;
  auto module = llvm::parseIRFile(moduleFile, error, context);
  if (!module)
    return llvm::createStringError(moduleFile + " line " +
                                   Twine(error.getLineNo()) + ": " +
                                   error.getMessage());
  return emulator::Kernel::fromLLVM(*module);
}

/// What runs: the emitted kernel, or the module that stands for it.
static llvm::Expected<std::unique_ptr<emulator::Kernel>>
load(cuda::EmittedKernel &emitted, const cuda::Chip &chip) {
  MLIRContext &context = *emitted.module->getContext();
  if (StringRef(moduleFile).ends_with(".ll"))
    return loadLLVM();
  if (!moduleFile.empty())
    return loadMLIR(context, chip);
  if (failed(cuda::lowerToNVVM(*emitted.module, chip)))
    return llvm::createStringError("the kernel cannot be lowered");
  return emulator::Kernel::fromMLIR(emitted.module->getOperation());
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

namespace {
/// One run of the kernel.
struct Run {
  emulator::Copies copies;
  emulator::Report report;
  std::vector<emulator::Comparison> comparisons;
  /// Whether results have the bits of the run before, if there was one.
  bool agrees = true;

  bool isClean() const {
    if (failOnConflicts && !report.conflicts().empty())
      return false;
    return agrees && report.clean() &&
           llvm::all_of(comparisons,
                        [](const auto &result) { return result.wrong == 0; });
  }
};
} // namespace

static Run runOnce(emulator::Kernel &kernel, emulator::Session &session,
                   emulator::Copies copies) {
  Run run{copies, {}, {}};
  session.clear();
  run.report = kernel.run(session.makeLaunch(resident), copies);
  session.readResults();
  for (auto [result, expected] : llvm::zip(session.results, session.expected))
    run.comparisons.push_back(
        emulator::compare(result, expected, {places, isExact}));
  return run;
}

static StringRef nameOf(emulator::Copies copies) {
  return copies == emulator::Copies::Late ? "late" : "eager";
}

static void printText(const Run &run, const emulator::Session &session) {
  llvm::raw_ostream &os = llvm::outs();
  os << "copies " << nameOf(run.copies) << ": " << run.report.blocks
     << " blocks, " << run.report.threads << " threads\n";
  emulator::printSummary(os, run.report);
  if (printsCosts)
    emulator::printCosts(os, run.report);
  for (auto [i, comparison] : llvm::enumerate(run.comparisons))
    emulator::print(os, unsigned(i), session.results[i], comparison);
  if (!run.agrees)
    os << "results differ from those of copies that arrive late\n";
}

static llvm::json::Value toJson(const Run &run) {
  llvm::json::Array results;
  for (const emulator::Comparison &comparison : run.comparisons)
    results.push_back(emulator::toJson(comparison));
  return llvm::json::Object{{"copies", nameOf(run.copies)},
                            {"agrees", run.agrees},
                            {"report", run.report.json()},
                            {"results", std::move(results)}};
}

static bool areSame(ArrayRef<reference::Tensor> left,
                    ArrayRef<reference::Tensor> right) {
  return llvm::all_of_zip(left, right, [](const auto &a, const auto &b) {
    return reference::firstDifference(a, b) < 0;
  });
}

static int runAll(emulator::Kernel &kernel, emulator::Session &session,
                  const cuda::EmittedKernel &emitted) {
  std::vector<Run> runs;
  for (auto time : {emulator::Copies::Late, emulator::Copies::Eager}) {
    if (copies != CopyTimes::Both &&
        (copies == CopyTimes::Late) != (time == emulator::Copies::Late))
      continue;
    std::vector<reference::Tensor> before = session.results;
    runs.push_back(runOnce(kernel, session, time));
    if (runs.size() > 1)
      runs.back().agrees = areSame(before, session.results);
  }
  if (printsJson) {
    llvm::json::Array list;
    for (const Run &run : runs)
      list.push_back(toJson(run));
    llvm::outs() << llvm::json::Value(
                        llvm::json::Object{{"schedule", emitted.schedule},
                                           {"runs", std::move(list)}})
                 << '\n';
  } else {
    llvm::outs() << "schedule " << emitted.schedule << '\n';
    for (const Run &run : runs)
      printText(run, session);
  }
  bool isClean =
      llvm::all_of(runs, [](const Run &run) { return run.isClean(); });
  return isClean ? 0 : kFound;
}

static int emulate(ModuleOp module, const cuda::Chip &chip) {
  if (isEmitted(module))
    return fail(inputFile + " is an emitted module: give the kernel that it "
                            "was made of, and this as --module");
  FailureOr<Kernel> kernel = parseKernel(module);
  if (failed(kernel))
    return kUnusable;
  auto arguments = emulator::makeArguments(*kernel, seed, size, data);
  if (!arguments)
    return fail(llvm::toString(arguments.takeError()));
  auto emitted = cuda::emitKernel(*kernel, chip, schedule);
  if (failed(emitted))
    return kUnusable;
  auto loaded = load(*emitted, chip);
  if (!loaded)
    return fail(llvm::toString(loaded.takeError()));
  func::FuncOp func = emulator::functionOf(*kernel);
  emulator::Session session(*emitted, std::move(*arguments), func, size);
  if (llvm::Error error = session.evaluate(func))
    return fail(llvm::toString(std::move(error)));
  return runAll(**loaded, session, *emitted);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  cl::HideUnrelatedOptions(category);
  if (!cl::ParseCommandLineOptions(
          argc, argv,
          "run a CUDA kernel on the CPU, check its accesses and results\n\n"
          "  exit codes: 0 nothing found, 1 something, 2 wrong use\n",
          &llvm::errs()))
    return kUnusable;
  const cuda::Chip *chip = cuda::findChip(target);
  if (!chip)
    return fail(cuda::unknownChip(target));
  if (size < 1 || resident < 1)
    return fail("--size and --blocks take numbers from 1");
  if (StringRef(inputFile).ends_with(".ll"))
    return fail(inputFile + " is an emitted module: give the kernel that it "
                            "was made of, and this as --module");
  DialectRegistry registry;
  cuda::registerCudaDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  auto module = parseSourceFile<ModuleOp>(inputFile, &context);
  if (!module)
    return kUnusable;
  return emulate(*module, *chip);
}
