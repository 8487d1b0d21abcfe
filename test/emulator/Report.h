//===- Report.h - what an emulated launch found ----------------*- C++ -*-===//

#ifndef TEST_EMULATOR_REPORT_H
#define TEST_EMULATOR_REPORT_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace mlir::mp::emulator {

/// Sizes or indices in x, y and z.
struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t(x) * y * z; }
};

/// The kinds of faults; Faults.def describes each.
enum class FaultKind {
#define MP_FAULT(ID, NAME, TEXT) ID,
#include "test/emulator/Faults.def"
};

/// The kind as text, e.g. "race".
llvm::StringRef nameOf(FaultKind kind);

/// One fault: the first of its kind at its pair of locations, and how often it
/// was seen there.
struct Fault {
  FaultKind kind;
  std::string kernel;
  Dim3 block, thread;
  /// "file:line:col: instruction" of the access, or the instruction alone.
  std::string location;
  /// The earlier access it conflicts with, or where the others wait; "" if
  /// none.
  std::string otherLocation;
  /// The thread of `otherLocation`.
  Dim3 otherThread;
  /// What happened, with addresses and sizes.
  std::string message;
  uint64_t count = 1;
};

/// What the warp-wide accesses of one instruction cost. Shared memory: passes
/// through the 32 banks. Global memory: 32-byte sectors.
struct AccessCost {
  std::string location;
  bool isShared = true, isWrite = false;
  uint64_t requests = 0; ///< Warp-wide accesses.
  uint64_t paid = 0;     ///< Passes, or sectors.
  uint64_t ideal = 0;    ///< The fewest that would move as many bytes.
  double ratio() const { return ideal ? double(paid) / double(ideal) : 1; }
};

struct Report {
  std::vector<Fault> faults;
  /// How often each operation ran, by intrinsic without "llvm.nvvm.": warp-wide
  /// ones once for a warp, others once for a thread.
  std::map<std::string, uint64_t> counts;
  std::vector<AccessCost> costs;
  uint64_t blocks = 0, threads = 0, switches = 0;

  bool clean() const { return faults.empty(); }
  /// The first fault of `kind`, or null.
  const Fault *find(FaultKind kind) const;
  /// How often the operations ran whose name starts with `prefix`.
  uint64_t count(llvm::StringRef prefix) const;
  /// The instructions that access shared memory with bank conflicts.
  std::vector<AccessCost> conflicts() const;

  void print(llvm::raw_ostream &os) const;
  std::string text() const;
  llvm::json::Value json() const;
};

/// At how many places each kind of fault was found, the first of each kind, and
/// the instructions that conflict in the banks of shared memory.
void printSummary(llvm::raw_ostream &os, const Report &report);
/// How often operations ran, and what accesses cost more than they need.
void printCosts(llvm::raw_ostream &os, const Report &report);

} // namespace mlir::mp::emulator

#endif // TEST_EMULATOR_REPORT_H
