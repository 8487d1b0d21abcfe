//===- Entry.cpp - the functions of a CpuKernel in LLVM IR ----------------===//

#include "codegen/CPU/Entry.h"
#include "codegen/CPU/Finish.h"
#include "runtime/Gemm/Gemm.h"
#include "llvm/IR/IRBuilder.h"

using namespace llvm;
namespace gemm = ::mp::runtime::gemm;

static constexpr StringLiteral kProductName = "mp_product";

/// A function that calls `callee` with the product before its own arguments.
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
  SmallVector<Value *> values{module.getOrInsertGlobal(kProductName, pointer)};
  for (Argument &argument : function->args())
    values.push_back(&argument);
  CallInst *call = builder.CreateCall(target, values);
  if (result->isVoidTy())
    builder.CreateRetVoid();
  else
    builder.CreateRet(call);
  return function;
}

void mlir::mp::cpu::addEntry(Module &module) {
  LLVMContext &context = module.getContext();
  auto *pointer = llvm::PointerType::get(context, 0);
  llvm::Type *i32 = llvm::IntegerType::get(context, 32);
  llvm::Type *i64 = llvm::IntegerType::get(context, 64);
  Constant *functions[] = {
      addForward(module, "scratch_bytes", "mp_gemm_scratch_bytes", i64,
                 {pointer, i32}),
      addForward(module, "tasks", "mp_gemm_tasks", i64, {i32, pointer, i32}),
      addForward(module, "run", "mp_gemm_run", llvm::Type::getVoidTy(context),
                 {i32, i64, i64, pointer, pointer, pointer, i32}),
      module.getFunction(kFinishName)};
  auto *type = ArrayType::get(pointer, std::size(functions));
  new GlobalVariable(module, type, /*isConstant=*/true,
                     GlobalValue::ExternalLinkage,
                     ConstantArray::get(type, functions), kTableName);
}

static int64_t scratchBytes(const gemm::Product *product, const int64_t *sizes,
                            int32_t threads) {
  return gemm::scratchBytes(*product, sizes, threads);
}

static int64_t tasks(const gemm::Product *product, int32_t phase,
                     const int64_t *sizes, int32_t threads) {
  return gemm::tasks(*product, phase, sizes, threads);
}

static void run(const gemm::Product *product, int32_t phase, int64_t begin,
                int64_t end, void *const *buffers, const int64_t *sizes,
                void *scratch, int32_t threads) {
  gemm::run(*product, phase, begin, end, buffers, sizes, scratch, threads);
}

std::map<std::string, void *>
mlir::mp::cpu::entrySymbols(const gemm::Product *product) {
  return {{kProductName.str(), const_cast<gemm::Product *>(product)},
          {"mp_gemm_scratch_bytes", reinterpret_cast<void *>(scratchBytes)},
          {"mp_gemm_tasks", reinterpret_cast<void *>(tasks)},
          {"mp_gemm_run", reinterpret_cast<void *>(run)}};
}
