//===- Entry.cpp - the functions of a CpuKernel in LLVM IR ----------------===//

#include "codegen/CPU/Entry.h"
#include "runtime/Gemm/Gemm.h"
#include "runtime/Rows/Rows.h"
#include "llvm/IR/IRBuilder.h"

using namespace llvm;
namespace gemm = ::mp::runtime::gemm;
namespace rows = ::mp::runtime::rows;

/// What the functions of the runtime get first.
static constexpr StringLiteral kFixedName = "mp_fixed";
static constexpr StringLiteral kScratchBytesName = "mp_scratch_bytes";
static constexpr StringLiteral kTasksName = "mp_tasks";
static constexpr StringLiteral kRunName = "mp_run";

/// A function that calls `callee` with the fixed part before its own arguments.
static Function *addForward(Module &module, StringRef name, StringRef callee,
                            Type *result, ArrayRef<Type *> arguments) {
  LLVMContext &context = module.getContext();
  auto *pointer = PointerType::get(context, 0);
  SmallVector<Type *> types{pointer};
  types.append(arguments.begin(), arguments.end());
  FunctionCallee target = module.getOrInsertFunction(
      callee, FunctionType::get(result, types, false));
  auto *function = Function::Create(FunctionType::get(result, arguments, false),
                                    Function::ExternalLinkage, name, module);
  IRBuilder<> builder(BasicBlock::Create(context, "", function));
  SmallVector<Value *> values{module.getOrInsertGlobal(kFixedName, pointer)};
  for (Argument &argument : function->args())
    values.push_back(&argument);
  CallInst *call = builder.CreateCall(target, values);
  if (result->isVoidTy())
    builder.CreateRetVoid();
  else
    builder.CreateRet(call);
  return function;
}

void mlir::mp::cpu::addEntry(Module &module, ArrayRef<StringLiteral> parts) {
  LLVMContext &context = module.getContext();
  auto *pointer = llvm::PointerType::get(context, 0);
  llvm::Type *i32 = llvm::IntegerType::get(context, 32);
  llvm::Type *i64 = llvm::IntegerType::get(context, 64);
  SmallVector<Constant *> functions = {
      addForward(module, "scratch_bytes", kScratchBytesName, i64,
                 {pointer, i32}),
      addForward(module, "tasks", kTasksName, i64, {i32, pointer, i32}),
      addForward(module, "run", kRunName, llvm::Type::getVoidTy(context),
                 {i32, i64, i64, pointer, pointer, pointer, i32})};
  for (StringLiteral part : parts) {
    Function *function = module.getFunction(part);
    functions.push_back(function ? static_cast<Constant *>(function)
                                 : ConstantPointerNull::get(pointer));
  }
  auto *type = ArrayType::get(pointer, functions.size());
  new GlobalVariable(module, type, /*isConstant=*/true,
                     GlobalValue::ExternalLinkage,
                     ConstantArray::get(type, functions), kTableName);
}

/// The symbols of a kernel whose functions get `fixed`.
template <typename Fixed, typename ScratchBytes, typename Tasks, typename Run>
static std::map<std::string, void *>
symbolsOf(const Fixed *fixed, ScratchBytes scratchBytes, Tasks tasks, Run run) {
  return {{kFixedName.str(), const_cast<Fixed *>(fixed)},
          {kScratchBytesName.str(), reinterpret_cast<void *>(scratchBytes)},
          {kTasksName.str(), reinterpret_cast<void *>(tasks)},
          {kRunName.str(), reinterpret_cast<void *>(run)}};
}

std::map<std::string, void *>
mlir::mp::cpu::entrySymbols(const gemm::Product *product) {
  using gemm::Product;
  return symbolsOf(
      product,
      +[](const Product *product, const int64_t *sizes, int32_t threads) {
        return gemm::scratchBytes(*product, sizes, threads);
      },
      +[](const Product *product, int32_t phase, const int64_t *sizes,
          int32_t threads) {
        return gemm::tasks(*product, phase, sizes, threads);
      },
      +[](const Product *product, int32_t phase, int64_t begin, int64_t end,
          void *const *buffers, const int64_t *sizes, void *scratch,
          int32_t threads) {
        gemm::run(*product, phase, begin, end, buffers, sizes, scratch,
                  threads);
      });
}

/// Work is shared in the same way whatever the number of threads.
std::map<std::string, void *>
mlir::mp::cpu::entrySymbols(const rows::Job *job) {
  using rows::Job;
  return symbolsOf(
      job,
      +[](const Job *job, const int64_t *sizes, int32_t) {
        return rows::scratchBytes(*job, sizes);
      },
      +[](const Job *job, int32_t phase, const int64_t *sizes, int32_t) {
        return rows::tasks(*job, phase, sizes);
      },
      +[](const Job *job, int32_t phase, int64_t begin, int64_t end,
          void *const *buffers, const int64_t *sizes, void *scratch, int32_t) {
        rows::run(*job, phase, begin, end, buffers, sizes, scratch);
      });
}
