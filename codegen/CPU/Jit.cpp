//===- Jit.cpp - machine code in process ----------------------------------===//

#include "codegen/CPU/Jit.h"
#include "codegen/Optimize/Optimize.h"
#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/CompileUtils.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"

using namespace llvm;
using namespace mlir::mp::cpu;

Expected<std::unique_ptr<Jit>> Jit::create() {
  InitializeNativeTarget();
  InitializeNativeTargetAsmPrinter();
  auto target = orc::JITTargetMachineBuilder::detectHost();
  if (!target)
    return target.takeError();
  target->setCodeGenOptLevel(CodeGenOptLevel::Aggressive);
  // Whole vectors: loops of kernels are long.
  target->addFeatures({"-prefer-256-bit"});
  auto engine =
      orc::LLJITBuilder().setJITTargetMachineBuilder(*target).create();
  if (!engine)
    return engine.takeError();
  return std::unique_ptr<Jit>(new Jit(*target, std::move(*engine)));
}

Expected<Jit &> Jit::get() {
  // Never destroyed: kernels may run until the process ends.
  static Expected<std::unique_ptr<Jit>> *jit =
      new Expected<std::unique_ptr<Jit>>(create());
  if (!*jit)
    return createStringError("cannot compile for this machine");
  return *jit->get();
}

std::string CodeTarget::str() const {
  return builder.getTargetTriple().str() + " " + builder.getCPU() + " " +
         builder.getFeatures().getString();
}

namespace {
/// Instructions by name: what this machine must have, and the processor to
/// compile for; empty for this one.
struct IsaRow {
  StringLiteral isa, feature, cpu;
  bool hasF16;
};
} // namespace

static constexpr IsaRow kIsaRows[] = {
    {"amx", "amx-bf16", "", true},
    {"avx512_bf16", "avx512bf16", "", true},
    {"avx512", "avx512vl", "", true},
    {"avx2", "avx2", "x86-64-v3", true},
};

std::optional<CodeTarget> Jit::findTarget(StringRef isa) const {
  StringMap<bool> features = sys::getHostCPUFeatures();
  bool isX86 = host.getTargetTriple().isX86();
  if (isa.empty())
    return CodeTarget{host, !isX86 || features.lookup("f16c")};
  orc::JITTargetMachineBuilder other(host.getTargetTriple());
  other.setCodeGenOptLevel(CodeGenOptLevel::Aggressive);
  if (isa == "portable") {
    other.setCPU(isX86 ? "x86-64" : "generic");
    return CodeTarget{other, !isX86};
  }
  for (const IsaRow &row : kIsaRows) {
    if (row.isa != isa || !features.lookup(row.feature))
      continue;
    other.setCPU(row.cpu.str());
    return CodeTarget{row.cpu.empty() ? host : other, row.hasF16};
  }
  return std::nullopt;
}

Expected<std::unique_ptr<MemoryBuffer>> Jit::compile(Module &module,
                                                     const CodeTarget &target) {
  orc::JITTargetMachineBuilder builder = target.builder;
  auto machine = builder.createTargetMachine();
  if (!machine)
    return machine.takeError();
  module.setTargetTriple((*machine)->getTargetTriple());
  module.setDataLayout((*machine)->createDataLayout());
  for (Function &function : module) {
    function.addFnAttr("target-cpu", builder.getCPU());
    function.addFnAttr("target-features", builder.getFeatures().getString());
    function.addFnAttr("prefer-vector-width", "512");
  }
  mlir::mp::optimize(module, OptimizationLevel::O2, machine->get());
  return orc::SimpleCompiler(**machine)(module);
}

Expected<void *> Jit::link(std::unique_ptr<MemoryBuffer> object, StringRef name,
                           const std::map<std::string, void *> &symbols) {
  auto library =
      engine->createJITDylib("kernel." + std::to_string(libraries++));
  if (!library)
    return library.takeError();
  orc::SymbolMap map;
  for (const auto &[symbol, address] : symbols)
    map[engine->mangleAndIntern(symbol)] = {orc::ExecutorAddr::fromPtr(address),
                                            JITSymbolFlags::Exported};
  if (Error error = library->define(orc::absoluteSymbols(std::move(map))))
    return std::move(error);
  // libm, for functions without a polynomial.
  auto process = orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(
      engine->getDataLayout().getGlobalPrefix());
  if (!process)
    return process.takeError();
  library->addGenerator(std::move(*process));
  if (Error error = engine->addObjectFile(*library, std::move(object)))
    return std::move(error);
  auto address = engine->lookup(*library, name);
  if (!address)
    return address.takeError();
  return address->toPtr<void *>();
}
