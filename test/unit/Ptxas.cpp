//===- Ptxas.cpp - what the assembler says of a kernel --------------------===//

#include "Ptxas.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Regex.h"

using namespace llvm;
using namespace mlir::mp::test;

static std::string findPtxas() {
  if (auto given = sys::Process::GetEnv("MPOPT_PTXAS"))
    return *given;
  if (auto found = sys::findProgramByName("ptxas"))
    return *found;
  if (auto home = sys::Process::GetEnv("CUDA_HOME")) {
    SmallString<128> path(*home);
    sys::path::append(path, "bin", "ptxas");
    if (sys::fs::can_execute(path))
      return path.str().str();
  }
  return sys::fs::can_execute(MPOPT_PTXAS) ? MPOPT_PTXAS : "";
}

/// The number before `what`, added up over all lines.
static int sumOf(StringRef text, StringRef what) {
  Regex pattern(("([0-9]+) " + what).str());
  int sum = -1;
  SmallVector<StringRef> groups;
  while (pattern.match(text, &groups)) {
    int value = 0;
    groups[1].getAsInteger(10, value);
    sum = std::max(sum, 0) + value;
    text = text.drop_front(groups[0].end() - text.begin());
  }
  return sum;
}

bool PtxasReport::warns() const {
  StringRef all(text);
  // C7510 and its kin stand in lines of information.
  return all.contains("warning") || all.contains("(C75");
}

std::optional<PtxasReport> mlir::mp::test::assemble(StringRef ptx,
                                                    StringRef chip) {
  std::string ptxas = findPtxas();
  if (ptxas.empty())
    return std::nullopt;
  SmallString<128> source, target, log;
  if (sys::fs::createTemporaryFile("kernel", "ptx", source) ||
      sys::fs::createTemporaryFile("kernel", "cubin", target) ||
      sys::fs::createTemporaryFile("kernel", "log", log))
    return std::nullopt;
  FileRemover remove[] = {FileRemover(source), FileRemover(target),
                          FileRemover(log)};
  std::error_code error;
  raw_fd_ostream(source, error) << ptx;
  std::string arch = ("-arch=" + chip).str();
  StringRef arguments[] = {ptxas, "-v", arch, source, "-o", target};
  std::optional<StringRef> redirects[] = {std::nullopt, log.str(), log.str()};
  PtxasReport report;
  report.isAssembled =
      sys::ExecuteAndWait(ptxas, arguments, std::nullopt, redirects) == 0;
  if (auto buffer = MemoryBuffer::getFile(log))
    report.text = (*buffer)->getBuffer().str();
  StringRef all(report.text);
  report.registers = sumOf(all.substr(all.find("Used")), "registers");
  report.spilledBytes = sumOf(all, "bytes spill");
  return report;
}
