//===- Check.cpp - mpopt check --------------------------------------------===//

#include "passes/Check/Check.h"
#include "dialect/Import/Load.h"
#include "tools/mpopt/Commands.h"
#include "tools/mpopt/Session.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::mp;
using llvm::Expected;

/// Of a bundle given as AFTER, the graph after the passes.
static Expected<OwningOpRef<ModuleOp>>
loadAfter(Session &session, StringRef path, StringRef model) {
  if (!isBundle(path))
    return session.load(path, model);
  Expected<std::string> member = bundleMember(path, kBundleAfter);
  if (!member)
    return member.takeError();
  return session.load(*member, model);
}

/// What the contract relaxed has let in.
static void print(const AddedRoundings &added) {
  llvm::outs() << '@' << added.function << ": ";
  if (added.reads)
    llvm::outs() << llvm::formatv(
        "{0} reads are rounded; the estimated error grows by {1:P} of {2:P}\n",
        added.reads, added.growth(), added.epsilon);
  if (added.calls)
    llvm::outs() << llvm::formatv(
        "{0} library calls are computed from halves, as asked\n", added.calls);
}

int mlir::mp::runCheck(const Arguments &arguments) {
  Session session;
  StringRef model = arguments.get("--model", "");
  auto before = session.load(arguments.inputs[0], model);
  if (!before)
    return reportError(before.takeError());
  auto after = loadAfter(session, arguments.inputs[1], model);
  if (!after)
    return reportError(after.takeError());
  SmallVector<AddedRoundings> added;
  if (succeeded(checkRewrites(**before, **after, &added))) {
    llvm::outs() << "every rewrite keeps its contract\n";
    llvm::for_each(added, print);
    return Ok;
  }
  for (const std::string &error : session.errors())
    llvm::errs() << "mpopt: violation: " << error << '\n';
  return Different;
}
