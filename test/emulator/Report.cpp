//===- Report.cpp - what an emulated launch found -------------------------===//

#include "test/emulator/Report.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"

#include <iterator>

using namespace mlir::mp::emulator;
using llvm::StringRef;

static constexpr StringRef kindNames[] = {
#define MP_FAULT(ID, NAME, TEXT) NAME,
#include "test/emulator/Faults.def"
};
static constexpr StringRef kindTexts[] = {
#define MP_FAULT(ID, NAME, TEXT) TEXT,
#include "test/emulator/Faults.def"
};

/// Of each kind, in a summary.
static constexpr unsigned kPrintedFaults = 3;

StringRef mlir::mp::emulator::nameOf(FaultKind kind) {
  return kindNames[unsigned(kind)];
}

const Fault *Report::find(FaultKind kind) const {
  auto found =
      llvm::find_if(faults, [&](const Fault &f) { return f.kind == kind; });
  return found == faults.end() ? nullptr : &*found;
}

uint64_t Report::count(StringRef prefix) const {
  uint64_t sum = 0;
  for (const auto &[name, n] : counts)
    if (StringRef(name).starts_with(prefix))
      sum += n;
  return sum;
}

std::vector<AccessCost> Report::conflicts() const {
  std::vector<AccessCost> found;
  llvm::copy_if(costs, std::back_inserter(found), [](const AccessCost &cost) {
    return cost.isShared && cost.paid > cost.ideal;
  });
  return found;
}

static std::string textOf(const Dim3 &d) {
  return ("(" + llvm::Twine(d.x) + "," + llvm::Twine(d.y) + "," +
          llvm::Twine(d.z) + ")")
      .str();
}

static void print(llvm::raw_ostream &os, const Fault &fault) {
  os << nameOf(fault.kind) << ": " << fault.message << "\n  kernel "
     << fault.kernel << ", block " << textOf(fault.block) << ", thread "
     << textOf(fault.thread) << "\n  at " << fault.location << '\n';
  if (!fault.otherLocation.empty())
    os << "  with thread " << textOf(fault.otherThread) << " at "
       << fault.otherLocation << '\n';
  os << "  (" << kindTexts[unsigned(fault.kind)] << "; seen " << fault.count
     << " times)\n";
}

static void print(llvm::raw_ostream &os, const AccessCost &cost) {
  os << "  " << (cost.isShared ? "shared " : "global ")
     << (cost.isWrite ? "write" : "read") << ": " << cost.requests
     << " requests, " << cost.paid << (cost.isShared ? " passes" : " sectors")
     << ", " << llvm::format("%.2f", cost.ratio()) << " of ideal, at "
     << cost.location << '\n';
}

void mlir::mp::emulator::printCosts(llvm::raw_ostream &os,
                                    const Report &report) {
  if (!report.counts.empty())
    os << "operations:\n";
  for (const auto &[name, n] : report.counts)
    os << "  " << name << ": " << n << '\n';
  auto isDear = [](const AccessCost &cost) { return cost.paid > cost.ideal; };
  if (llvm::any_of(report.costs, isDear))
    os << "accesses above the ideal cost:\n";
  for (const AccessCost &cost : llvm::make_filter_range(report.costs, isDear))
    ::print(os, cost);
}

void Report::print(llvm::raw_ostream &os) const {
  for (const Fault &fault : faults)
    ::print(os, fault);
  os << blocks << " blocks, " << threads << " threads, " << faults.size()
     << " faults\n";
  printCosts(os, *this);
}

void mlir::mp::emulator::printSummary(llvm::raw_ostream &os,
                                      const Report &report) {
  os << "faults: " << report.faults.size() << " places";
  const char *separator = ": ";
  for (auto [i, name] : llvm::enumerate(kindNames)) {
    auto places = llvm::count_if(
        report.faults, [&](const Fault &f) { return size_t(f.kind) == i; });
    os << separator << name << ' ' << places;
    separator = ", ";
  }
  os << '\n';
  std::map<FaultKind, unsigned> printed;
  for (const Fault &fault : report.faults)
    if (printed[fault.kind]++ < kPrintedFaults)
      ::print(os, fault);
  std::vector<AccessCost> conflicts = report.conflicts();
  uint64_t extra = 0;
  for (const AccessCost &cost : conflicts)
    extra += cost.paid - cost.ideal;
  os << "bank conflicts: " << extra << " extra passes at " << conflicts.size()
     << " places\n";
  for (const AccessCost &cost : conflicts)
    ::print(os, cost);
}

std::string Report::text() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os);
  return text;
}

static llvm::json::Value toJson(const Dim3 &d) {
  return llvm::json::Array{d.x, d.y, d.z};
}

static llvm::json::Value toJson(const Fault &fault) {
  llvm::json::Object object{
      {"kind", nameOf(fault.kind)},    {"kernel", fault.kernel},
      {"block", toJson(fault.block)},  {"thread", toJson(fault.thread)},
      {"location", fault.location},    {"message", fault.message},
      {"count", int64_t(fault.count)},
  };
  if (!fault.otherLocation.empty()) {
    object["other_location"] = fault.otherLocation;
    object["other_thread"] = toJson(fault.otherThread);
  }
  return object;
}

static llvm::json::Value toJson(const AccessCost &cost) {
  return llvm::json::Object{
      {"space", cost.isShared ? "shared" : "global"},
      {"access", cost.isWrite ? "write" : "read"},
      {"location", cost.location},
      {"requests", int64_t(cost.requests)},
      {"paid", int64_t(cost.paid)},
      {"ideal", int64_t(cost.ideal)},
  };
}

llvm::json::Value Report::json() const {
  llvm::json::Array faultList, costList;
  llvm::json::Object countMap;
  for (const Fault &fault : faults)
    faultList.push_back(toJson(fault));
  for (const AccessCost &cost : costs)
    costList.push_back(toJson(cost));
  for (const auto &[name, n] : counts)
    countMap[name] = int64_t(n);
  return llvm::json::Object{
      {"clean", clean()},
      {"blocks", int64_t(blocks)},
      {"threads", int64_t(threads)},
      {"faults", std::move(faultList)},
      {"counts", std::move(countMap)},
      {"costs", std::move(costList)},
  };
}
