//===- Budget.cpp - mpopt budget ------------------------------------------===//

#include "passes/Report/Budget.h"
#include "dialect/Import/Load.h"
#include "passes/Report/RegionGroups.h"
#include "tools/mpopt/Commands.h"
#include "tools/mpopt/GraphPair.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::mp;
using llvm::Error;
using llvm::Expected;

namespace {
/// A graph of the command line: its name in the file, and where it lies.
struct Input {
  std::string name, path;
};

/// Where the figures of a graph come from, to give reasons.
struct Evidence {
  CastReport report;
  std::vector<SavedValue> saved;
};

/// All graphs of the command line.
struct Measured {
  Budget budget;
  std::map<std::string, Evidence> evidence;
};
} // namespace

//===----------------------------------------------------------------------===//
// Graphs of the command line
//===----------------------------------------------------------------------===//

static bool hasGraph(StringRef folder) {
  Expected<std::string> member = bundleMember(folder, kBundleBefore);
  if (member)
    return true;
  llvm::consumeError(member.takeError());
  return false;
}

/// The bundles in a folder that is none itself, such as MPOPT_DUMP's.
static SmallVector<std::string> bundlesIn(StringRef folder) {
  SmallVector<std::string> bundles;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(folder, error), end;
       it != end && !error; it.increment(error))
    if (hasGraph(it->path()))
      bundles.push_back(it->path());
  llvm::sort(bundles);
  return bundles;
}

static std::string nameOf(StringRef path) {
  while (path.size() > 1 && llvm::sys::path::is_separator(path.back()))
    path = path.drop_back();
  return llvm::sys::path::filename(path).str();
}

/// "PATH", "NAME=PATH", or a folder with bundles.
static void addInputs(StringRef word, std::vector<Input> &inputs) {
  auto [name, path] = word.split('=');
  bool hasName = !path.empty() && !llvm::sys::fs::exists(word);
  if (!hasName)
    path = word;
  if (!isBundle(path) || hasGraph(path)) {
    inputs.push_back({hasName ? name.str() : nameOf(path), path.str()});
    return;
  }
  SmallVector<std::string> bundles = bundlesIn(path);
  for (const std::string &bundle : bundles)
    inputs.push_back(
        {(hasName ? name + "/" : "").str() + nameOf(bundle), bundle});
  if (bundles.empty()) // loading it says what is missing
    inputs.push_back({nameOf(path), path.str()});
}

/// The release of PyTorch that traced a bundle.
static Error noteVersion(StringRef path, Budget &budget) {
  if (!isBundle(path))
    return Error::success();
  Expected<std::optional<std::string>> torch = bundleText(path, "torch");
  if (!torch)
    return torch.takeError();
  if (*torch)
    budget.versions["torch"] = **torch;
  return Error::success();
}

static Error measureGraph(const Input &input, const Arguments &arguments,
                          Measured &measured) {
  if (measured.budget.graphs.count(input.name))
    return llvm::createStringError("two graphs are called '" + input.name +
                                   "'; name them: NAME=" + input.path);
  Session session;
  Expected<GraphPair> pair = loadPair(session, input.path, arguments);
  if (!pair)
    return pair.takeError();
  Evidence &evidence = measured.evidence[input.name];
  evidence.report = makeReport(*pair->before, *pair->after);
  evidence.report.numerics = pair->numerics;
  evidence.saved = collectSavedValues(*pair->after);
  measured.budget.graphs[input.name] = figuresOf(evidence.report, *pair->after);
  return noteVersion(input.path, measured.budget);
}

static Expected<Measured> measureAll(const Arguments &arguments) {
  std::vector<Input> inputs;
  for (StringRef word : llvm::drop_begin(arguments.inputs, 2))
    addInputs(word, inputs);
  Measured measured;
  measured.budget.versions["mpopt"] = MPOPT_VERSION;
  measured.budget.versions["llvm"] = LLVM_VERSION_STRING;
  for (const Input &input : inputs)
    if (Error error = measureGraph(input, arguments, measured))
      return std::move(error);
  return std::move(measured);
}

//===----------------------------------------------------------------------===//
// Reasons
//===----------------------------------------------------------------------===//

/// Lines of reasons that one figure may take.
static constexpr size_t kMaxReasons = 3;

/// Pointers to the largest few of `items`, the largest first.
template <typename T, typename Bytes>
static SmallVector<const T *> largest(llvm::ArrayRef<T> items, Bytes bytesOf) {
  SmallVector<const T *> order;
  for (const T &item : items)
    order.push_back(&item);
  llvm::sort(order, [&](const T *a, const T *b) {
    int64_t first = bytesOf(*a), second = bytesOf(*b);
    return first != second ? first > second : a < b;
  });
  order.truncate(std::min(order.size(), kMaxReasons));
  return order;
}

/// Why the conversions of a region are there; of one kind, if `kind` names one.
static void printCastReasons(const Evidence &evidence, StringRef pattern,
                             StringRef kind, llvm::raw_ostream &os) {
  RegionGroup group;
  for (const RegionReport &region : evidence.report.regions)
    if (regionPattern(region.path) == pattern)
      group.regions.push_back(&region);
  std::vector<LeftGroup> left = groupLeft(group);
  llvm::erase_if(left, [&](const LeftGroup &entry) {
    return quotedKey(entry.first->conversion()) != kind;
  });
  auto bytesOf = [](const LeftGroup &entry) { return entry.total.bytes; };
  for (const LeftGroup *item : largest(llvm::ArrayRef(left), bytesOf)) {
    const LeftGroup &entry = *item;
    const CastEntry &cast = *entry.first;
    os << "    " << entry.total.casts << " x " << shapesText(entry) << ' '
       << stringifyCastRole(cast.role)
       << (cast.isBackward ? " in backward: " : ": ") << cast.reason;
    if (!cast.source.empty())
      os << " [" << cast.source << ']';
    os << '\n';
  }
}

/// The largest values that a region keeps for backward.
static void printSavedReasons(const Evidence &evidence, StringRef pattern,
                              llvm::raw_ostream &os) {
  std::vector<SavedValue> saved = evidence.saved;
  llvm::erase_if(saved, [&](const SavedValue &value) {
    return regionPattern(value.region) != pattern;
  });
  auto bytesOf = [](const SavedValue &v) { return v.bytes.value_or(0); };
  for (const SavedValue *item : largest(llvm::ArrayRef(saved), bytesOf)) {
    const SavedValue &value = *item;
    os << "    " << value.type << " of " << value.op << ", "
       << (value.bytes ? formatBytes(*value.bytes) : "dynamic");
    if (!value.source.empty())
      os << " [" << value.source << ']';
    os << '\n';
  }
}

static void printReasons(const FigureChange &change, const Evidence &evidence,
                         llvm::raw_ostream &os) {
  if (change.isTotal || change.verdict != FigureVerdict::Worse)
    return;
  StringRef figure = change.figure;
  if (figure.consume_front("kinds."))
    printCastReasons(evidence, change.region, figure, os);
  else if (figure == "saved_bytes" || figure == "dynamic_saves")
    printSavedReasons(evidence, change.region, os);
  else if (figure.starts_with("pins."))
    os << "    fewer values are kept in their type by this rule\n";
}

//===----------------------------------------------------------------------===//
// check
//===----------------------------------------------------------------------===//

static void printPolicy(StringRef name, const GraphFigures &file,
                        const GraphFigures &now, llvm::raw_ostream &os) {
  auto policyIn = [](const GraphFigures &graph) -> std::string {
    auto it = graph.settings.find("policy");
    return it == graph.settings.end() ? "none" : it->second;
  };
  if (policyIn(file) != policyIn(now))
    os << "note: " << name << ": policy " << policyIn(file) << " -> "
       << policyIn(now) << '\n';
}

static void printVersions(const Budget &file, const Budget &now,
                          llvm::raw_ostream &os) {
  for (const auto &[name, version] : now.versions) {
    auto old = file.versions.find(name);
    if (old != file.versions.end() && old->second != version)
      os << "note: " << name << ' ' << old->second << " -> " << version << '\n';
  }
}

/// Figures under another contract or target say nothing about each other. An
/// edit of the policy is what a budget is there to judge.
static Error checkSettings(StringRef name, const GraphFigures &file,
                           const GraphFigures &now) {
  for (const auto &[key, text] : file.settings) {
    if (key == "policy")
      continue;
    auto it = now.settings.find(key);
    StringRef current = it == now.settings.end() ? "" : StringRef(it->second);
    if (current != text)
      return llvm::createStringError("graph '" + name +
                                     "': the budget is for " + key + " '" +
                                     text + "', not '" + current + "'");
  }
  return Error::success();
}

static void printChange(const FigureChange &change, llvm::raw_ostream &os) {
  os << llvm::formatv("  {0,-28} {1,12} -> {2}", change.figure, change.before,
                      change.after);
  os << (change.verdict == FigureVerdict::Worse    ? "  worse\n"
         : change.verdict == FigureVerdict::Better ? "  better\n"
                                                   : "\n");
}

static void printHeading(const FigureChange &change, llvm::raw_ostream &os) {
  os << change.graph;
  if (!change.isTotal)
    os << ": " << regionLabel(change.region);
  if (change.isNewRegion)
    os << "  (a region that the budget lacks)";
  if (change.isGoneRegion)
    os << "  (a region that is gone)";
  os << '\n';
}

static void printChanges(llvm::ArrayRef<FigureChange> changes,
                         const Evidence &evidence, llvm::raw_ostream &os) {
  const FigureChange *last = nullptr;
  for (const FigureChange &change : changes) {
    if (!last || last->region != change.region ||
        last->isTotal != change.isTotal)
      printHeading(change, os);
    last = &change;
    printChange(change, os);
    printReasons(change, evidence, os);
  }
}

/// Graphs that only one side has; how many.
static int64_t reportStrangers(const Budget &file, const Budget &now,
                               llvm::raw_ostream &os) {
  int64_t count = 0;
  for (const auto &[name, graph] : file.graphs)
    if (!now.graphs.count(name)) {
      os << name << ": a graph of the budget that was not given\n";
      ++count;
    }
  for (const auto &[name, graph] : now.graphs)
    if (!file.graphs.count(name)) {
      os << name << ": a graph that the budget lacks\n";
      ++count;
    }
  return count;
}

static std::string renewal(const Arguments &arguments) {
  std::string command = "mpopt budget write";
  for (StringRef word : llvm::drop_begin(arguments.inputs))
    command += " " + word.str();
  return command;
}

static int compare(const Budget &file, const Measured &measured,
                   double tolerance, const Arguments &arguments) {
  llvm::raw_ostream &os = llvm::outs();
  int64_t worse = reportStrangers(file, measured.budget, os), better = 0;
  for (const auto &[name, old] : file.graphs) {
    auto now = measured.budget.graphs.find(name);
    if (now == measured.budget.graphs.end())
      continue;
    if (Error error = checkSettings(name, old, now->second))
      return reportError(std::move(error));
    std::vector<FigureChange> changes =
        compareFigures(name, old, now->second, tolerance);
    printChanges(changes, measured.evidence.at(name), os);
    if (!changes.empty())
      printPolicy(name, old, now->second, os);
    for (const FigureChange &change : changes) {
      worse += change.verdict == FigureVerdict::Worse;
      better += change.verdict == FigureVerdict::Better;
    }
  }
  if (!worse && !better) {
    os << "within the budget\n";
    return Ok;
  }
  printVersions(file, measured.budget, os);
  if (worse)
    os << "over the budget; if that is meant: " << renewal(arguments) << '\n';
  else
    os << "within the budget, and better; to keep it so: " << renewal(arguments)
       << '\n';
  return worse ? Different : Ok;
}

static Expected<double> toleranceOf(const Arguments &arguments) {
  StringRef text = arguments.get("--tolerance", "0");
  double value = 0;
  // A comparison that NaN fails.
  if (text.getAsDouble(value) || !(value >= 0 && value < 1))
    return llvm::createStringError(
        "option '--tolerance' takes a share from 0 to 1, such as 0.02, not '" +
        text + "'");
  return value;
}

static int checkBudget(const Arguments &arguments) {
  Expected<double> tolerance = toleranceOf(arguments);
  if (!tolerance)
    return reportError(tolerance.takeError());
  StringRef path = arguments.inputs[1];
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return reportError(path +
                       ": cannot be read: " + buffer.getError().message() +
                       "; make it with 'mpopt budget write'");
  Expected<Budget> file = parseBudget((*buffer)->getBuffer(), path);
  if (!file)
    return reportError(file.takeError());
  Expected<Measured> measured = measureAll(arguments);
  if (!measured)
    return reportError(measured.takeError());
  return compare(*file, *measured, *tolerance, arguments);
}

static int writeBudget(const Arguments &arguments) {
  if (arguments.options.contains("--tolerance"))
    return reportError("option '--tolerance' is for 'mpopt budget check'");
  Expected<Measured> measured = measureAll(arguments);
  if (!measured)
    return reportError(measured.takeError());
  Error error = writeOutput(arguments.inputs[1], [&](llvm::raw_ostream &os) {
    printBudget(measured->budget, os);
  });
  return error ? reportError(std::move(error)) : Ok;
}

int mlir::mp::runBudget(const Arguments &arguments) {
  StringRef verb = arguments.inputs.front();
  if (verb == "write")
    return writeBudget(arguments);
  if (verb == "check")
    return checkBudget(arguments);
  return reportError("'mpopt budget' does 'write' or 'check', not '" + verb +
                     "'" + suggest(verb, {"write", "check"}));
}
