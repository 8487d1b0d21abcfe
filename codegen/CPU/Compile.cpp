//===- Compile.cpp - kernels for the CPU, compiled in process -------------===//

#include "codegen/CPU/Compile.h"
#include "codegen/CPU/Entry.h"
#include "codegen/CPU/Finish.h"
#include "codegen/CPU/Jit.h"
#include "codegen/CPU/Lowering.h"
#include "codegen/CPU/ObjectStore.h"
#include "codegen/CPU/Product.h"
#include "codegen/CPU/Rows/Rows.h"
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
using ::mp::runtime::rows::Job;

/// Changes whenever compiled kernels of before no longer fit.
static constexpr llvm::StringLiteral kFormat = "mpopt-cpu-2";

namespace {
/// What lives as long as the process: the code refers to the fixed part.
struct Loaded {
  CpuKernel kernel{};
  std::variant<Product, Job> fixed;
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
  objectOf(const Kernel &kernel, StringRef key, const CpuOptions &options,
           const CodeTarget &target, Jit &jit);

  llvm::StringMap<std::unique_ptr<Loaded>> kernels;
};
} // namespace

static Compiler &compiler() {
  static Compiler *compiler = new Compiler; // kernels outlive static objects
  return *compiler;
}

//===----------------------------------------------------------------------===//
// What is different for matmul and row kernels
//===----------------------------------------------------------------------===//

static FailureOr<OwningOpRef<ModuleOp>> emit(const MatmulKernel &kernel) {
  return emitFinish(kernel);
}

static FailureOr<OwningOpRef<ModuleOp>> emit(const RowKernel &kernel) {
  return emitRows(kernel);
}

/// The compiled functions of a kernel, as its table has them.
static ArrayRef<llvm::StringLiteral> partsOf(const Kernel &kernel) {
  static constexpr llvm::StringLiteral matmul[] = {kFinishName};
  static constexpr llvm::StringLiteral rows[] = {kRowsName, kColumnsName};
  if (std::holds_alternative<MatmulKernel>(kernel))
    return matmul;
  return rows;
}

/// What is known of a kernel without compiling it.
static FailureOr<std::variant<Product, Job>>
fixedOf(const Kernel &kernel, const CpuOptions &options) {
  if (const auto *rows = std::get_if<RowKernel>(&kernel)) {
    FailureOr<Job> job = jobOf(*rows);
    if (failed(job))
      return failure();
    return std::variant<Product, Job>(*job);
  }
  FailureOr<Product> product = productOf(std::get<MatmulKernel>(kernel));
  if (failed(product))
    return failure();
  product->isa = ::mp::runtime::gemm::chooseIsa(
      product->element, options.isa.empty() ? nullptr : options.isa.c_str());
  return std::variant<Product, Job>(*product);
}

static void connect(Product &product, CpuKernel &kernel, const Table &table) {
  product.finish =
      reinterpret_cast<::mp::runtime::gemm::Finish>(table.parts[0]);
  kernel.phases = phases(product);
}

static void connect(Job &job, CpuKernel &kernel, const Table &table) {
  using namespace ::mp::runtime::rows;
  job.computeRows = reinterpret_cast<RowsFunction>(table.parts[0]);
  job.addColumns = reinterpret_cast<ColumnsFunction>(table.parts[1]);
  kernel.phases = phases(job);
}

/// What the arithmetic is compiled for: rows for what `isa` names, the end of a
/// product for this machine. None if it lacks the instructions.
static std::optional<CodeTarget>
targetOf(const std::variant<Product, Job> &fixed, const CpuOptions &options,
         const Jit &jit) {
  const auto *product = std::get_if<Product>(&fixed);
  if (!product)
    return jit.findTarget(options.isa);
  return product->isa ? jit.findTarget("") : std::nullopt;
}

//===----------------------------------------------------------------------===//
// The way of a kernel
//===----------------------------------------------------------------------===//

static llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
compile(const Kernel &kernel, const CodeTarget &target, Jit &jit,
        const Dump &dump) {
  FailureOr<OwningOpRef<ModuleOp>> module =
      std::visit([](const auto &kind) { return emit(kind); }, kernel);
  if (failed(module))
    return llvm::createStringError("its arithmetic has no form on vectors");
  dump.write("vectors.mlir", [&](raw_ostream &os) { (*module)->print(os); });
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code;
  if (succeeded(lowerToLLVMDialect(**module, target.hasF16)))
    code = translate(**module, context);
  if (!code)
    return llvm::createStringError("its arithmetic cannot be lowered");
  addEntry(*code, partsOf(kernel));
  auto object = jit.compile(*code, target);
  dump.write("kernel.ll", [&](raw_ostream &os) { code->print(os, nullptr); });
  return object;
}

llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
Compiler::objectOf(const Kernel &kernel, StringRef key,
                   const CpuOptions &options, const CodeTarget &target,
                   Jit &jit) {
  ObjectStore store(options.cacheDirectory);
  if (std::unique_ptr<llvm::MemoryBuffer> object = store.load(key)) {
    ++counters.loaded;
    return object;
  }
  Dump dump(options.dumpDirectory, key);
  auto object = compile(kernel, target, jit, dump);
  if (!object)
    return object.takeError();
  ++counters.compiled;
  dump.write("kernel.o",
             [&](raw_ostream &os) { os << (*object)->getBuffer(); });
  store.save(key, **object);
  return object;
}

static llvm::Error withErrors(llvm::Error error, const KernelText &source) {
  std::string text = llvm::toString(std::move(error));
  std::string errors = source.errors();
  return llvm::createStringError(text + (errors.empty() ? "" : ": ") + errors);
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
  FailureOr<std::variant<Product, Job>> fixed = fixedOf(*kernel, options);
  if (failed(fixed))
    return llvm::createStringError(source.errors());
  std::optional<CodeTarget> target = targetOf(*fixed, options, *jit);
  if (!target)
    return llvm::createStringError("this machine has no '" + options.isa + "'");
  std::string key =
      digestOf({kFormat, LLVM_VERSION_STRING, target->str(), text});
  auto object = objectOf(*kernel, key, options, *target, *jit);
  if (!object)
    return withErrors(object.takeError(), source);
  auto loaded = std::make_unique<Loaded>();
  loaded->fixed = *fixed;
  auto symbols =
      std::visit([](auto &part) { return entrySymbols(&part); }, loaded->fixed);
  llvm::Expected<void *> address =
      jit->link(std::move(*object), kTableName, symbols);
  if (!address)
    return address.takeError();
  const auto &table = *static_cast<const Table *>(*address);
  CpuKernel &made = loaded->kernel;
  made.scratchBytes =
      reinterpret_cast<decltype(made.scratchBytes)>(table.scratchBytes);
  made.tasks = reinterpret_cast<decltype(made.tasks)>(table.tasks);
  made.run = reinterpret_cast<decltype(made.run)>(table.run);
  std::visit([&](auto &part) { connect(part, made, table); }, loaded->fixed);
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
