//===- Jit.cpp - machine code in process ----------------------------------===//

#include "codegen/CPU/Jit.h"
#include "codegen/Optimize/Optimize.h"
#include "llvm/ExecutionEngine/Orc/AbsoluteSymbols.h"
#include "llvm/ExecutionEngine/Orc/CompileUtils.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/Support/TargetSelect.h"

using namespace llvm;
using mlir::mp::cpu::Jit;

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

std::string Jit::targetText() const {
  return target.getTargetTriple().str() + " " + target.getCPU() + " " +
         target.getFeatures().getString();
}

Expected<std::unique_ptr<MemoryBuffer>> Jit::compile(Module &module) {
  auto machine = target.createTargetMachine();
  if (!machine)
    return machine.takeError();
  module.setTargetTriple((*machine)->getTargetTriple());
  module.setDataLayout((*machine)->createDataLayout());
  for (Function &function : module) {
    function.addFnAttr("target-cpu", target.getCPU());
    function.addFnAttr("target-features", target.getFeatures().getString());
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
