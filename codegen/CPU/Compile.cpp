//===- Compile.cpp - kernels for the CPU, compiled in process -------------===//

#include "codegen/CPU/Compile.h"
#include "codegen/CPU/Entry.h"
#include "codegen/CPU/Finish.h"
#include "codegen/CPU/Jit.h"
#include "codegen/CPU/Lowering.h"
#include "codegen/CPU/ObjectStore.h"
#include "codegen/CPU/Product.h"
#include "codegen/Kernel/Read.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <mutex>

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cpu;
using ::mp::runtime::CpuKernel;
using ::mp::runtime::gemm::Product;

/// Changes whenever compiled kernels of before no longer fit.
static constexpr llvm::StringLiteral kFormat = "mpopt-cpu-1";

namespace {
/// What lives as long as the process: the code refers to the product.
struct Loaded {
  CpuKernel kernel{};
  Product product;
};

/// Where files for a person to read go.
class Dump {
public:
  Dump(StringRef directory, StringRef key) {
    if (directory.empty())
      return;
    path = directory;
    llvm::sys::path::append(path, key.take_front(16));
    if (llvm::sys::fs::create_directories(path))
      path.clear();
  }
  template <typename Print>
  void write(StringRef name, Print print) const {
    if (path.empty())
      return;
    SmallString<128> file(path);
    llvm::sys::path::append(file, name);
    std::error_code error;
    llvm::raw_fd_ostream os(file, error);
    if (!error)
      print(os);
  }

private:
  SmallString<128> path;
};

/// The kernels of this process by what they were made from.
class Compiler {
public:
  llvm::Expected<const CpuKernel *> get(StringRef text,
                                        const CpuOptions &options);

  std::mutex mutex;
  CpuCounters counters;

private:
  llvm::Expected<std::unique_ptr<Loaded>> make(StringRef text,
                                               const CpuOptions &options);
  llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
  objectOf(const MatmulKernel &kernel, StringRef key, const CpuOptions &options,
           Jit &jit);

  llvm::StringMap<std::unique_ptr<Loaded>> kernels;
};
} // namespace

static Compiler &compiler() {
  static Compiler *compiler = new Compiler; // kernels outlive static objects
  return *compiler;
}

static llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
compile(const MatmulKernel &kernel, Jit &jit, const Dump &dump) {
  FailureOr<OwningOpRef<ModuleOp>> module = emitFinish(kernel);
  if (failed(module))
    return llvm::createStringError("its epilogue has no form on vectors");
  dump.write("vectors.mlir", [&](raw_ostream &os) { (*module)->print(os); });
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code;
  if (succeeded(lowerToLLVMDialect(**module)))
    code = translate(**module, context);
  if (!code)
    return llvm::createStringError("its epilogue cannot be lowered");
  addEntry(*code);
  auto object = jit.compile(*code);
  dump.write("kernel.ll", [&](raw_ostream &os) { code->print(os, nullptr); });
  return object;
}

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
Compiler::objectOf(const MatmulKernel &kernel, StringRef key,
                   const CpuOptions &options, Jit &jit) {
  ObjectStore store(options.cacheDirectory);
  if (std::unique_ptr<llvm::MemoryBuffer> object = store.load(key)) {
    ++counters.loaded;
    return object;
  }
  Dump dump(options.dumpDirectory, key);
  auto object = compile(kernel, jit, dump);
  if (!object)
    return object.takeError();
  ++counters.compiled;
  dump.write("kernel.o",
             [&](raw_ostream &os) { os << (*object)->getBuffer(); });
  store.save(key, **object);
  return object;
}

llvm::Expected<std::unique_ptr<Loaded>>
Compiler::make(StringRef text, const CpuOptions &options) {
  llvm::Expected<Jit &> jit = Jit::get();
  if (!jit)
    return jit.takeError();
  KernelText source(text);
  llvm::Expected<Kernel> kernel = source.parse();
  if (!kernel)
    return kernel.takeError();
  auto *matmul = std::get_if<MatmulKernel>(&*kernel);
  if (!matmul)
    return llvm::createStringError("the CPU has no row kernels");
  FailureOr<Product> product = productOf(*matmul);
  if (failed(product))
    return llvm::createStringError(source.errors());
  product->isa = ::mp::runtime::gemm::chooseIsa(
      product->element, options.isa.empty() ? nullptr : options.isa.c_str());
  if (!product->isa)
    return llvm::createStringError("this machine has no '" + options.isa + "'");
  std::string key =
      digestOf({kFormat, LLVM_VERSION_STRING, jit->targetText(), text});
  auto object = objectOf(*matmul, key, options, *jit);
  if (!object)
    return llvm::createStringError(llvm::toString(object.takeError()) +
                                   (source.errors().empty() ? "" : ": ") +
                                   source.errors());
  auto loaded = std::make_unique<Loaded>();
  loaded->product = *product;
  llvm::Expected<void *> address =
      jit->link(std::move(*object), kTableName, entrySymbols(&loaded->product));
  if (!address)
    return address.takeError();
  const auto &table = *static_cast<const Table *>(*address);
  CpuKernel &made = loaded->kernel;
  made.phases = phases(loaded->product);
  made.scratchBytes =
      reinterpret_cast<decltype(made.scratchBytes)>(table.scratchBytes);
  made.tasks = reinterpret_cast<decltype(made.tasks)>(table.tasks);
  made.run = reinterpret_cast<decltype(made.run)>(table.run);
  loaded->product.finish =
      reinterpret_cast<::mp::runtime::gemm::Finish>(table.finish);
  return loaded;
}

llvm::Expected<const CpuKernel *> Compiler::get(StringRef text,
                                                const CpuOptions &options) {
  std::unique_ptr<Loaded> &slot = kernels[(options.isa + "\n" + text).str()];
  if (!slot) {
    auto made = make(text, options);
    if (!made)
      return made.takeError();
    slot = std::move(*made);
  }
  return &slot->kernel;
}

CpuCounters mlir::mp::cpu::cpuCounters() {
  std::lock_guard<std::mutex> lock(compiler().mutex);
  return compiler().counters;
}

llvm::Expected<const CpuKernel *>
mlir::mp::cpu::compileCpuKernel(StringRef text, const CpuOptions &options) {
  std::lock_guard<std::mutex> lock(compiler().mutex);
  return compiler().get(text, options);
}
