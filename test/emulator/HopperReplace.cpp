//===- HopperReplace.cpp - inline PTX as operations -----------------------===//

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "test/emulator/HopperOperations.h"

using namespace mlir;

namespace {
class Replacer {
public:
  Replacer(Operation *module, StringRef prefix)
      : module(module), prefix(prefix) {}
  void run();

private:
  LLVM::LLVMFuncOp declare(OpBuilder &b, const Twine &name, TypeRange arguments,
                           Type result, Operation *user);
  void replace(NVVM::MBarrierTryWaitParityOp op);
  void replace(NVVM::WgmmaMmaAsyncOp op);
  void checkUses(Value accumulators);

  Operation *module;
  StringRef prefix;
};
} // namespace

LLVM::LLVMFuncOp Replacer::declare(OpBuilder &b, const Twine &name,
                                   TypeRange arguments, Type result,
                                   Operation *user) {
  Operation *table = SymbolTable::getNearestSymbolTable(user);
  std::string full = (prefix + name).str();
  if (auto found = dyn_cast_or_null<LLVM::LLVMFuncOp>(
          SymbolTable::lookupSymbolIn(table, full)))
    return found;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&table->getRegion(0).front());
  auto type = LLVM::LLVMFunctionType::get(result, llvm::to_vector(arguments));
  auto func = LLVM::LLVMFuncOp::create(b, user->getLoc(), full, type);
  func.setConvergent(true);
  return func;
}

void Replacer::replace(NVVM::MBarrierTryWaitParityOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  SmallVector<Value> arguments{op.getAddr(), op.getPhase()};
  auto func = declare(b, "mbarrier.wait.parity", ValueRange(arguments),
                      LLVM::LLVMVoidType::get(op.getContext()), op);
  LLVM::CallOp::create(b, func, arguments);
  op.erase();
}

/// Descriptors, whether it adds to the accumulators, the transpose bits, then
/// the accumulators.
void Replacer::replace(NVVM::WgmmaMmaAsyncOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto flag = [&](bool value) -> Value {
    return LLVM::ConstantOp::create(b, b.getI32Type(),
                                    b.getI32IntegerAttr(value));
  };
  SmallVector<Value> arguments{op.getDescriptorA(), op.getDescriptorB(),
                               flag(op.getScaleD() == NVVM::WGMMAScaleOut::one),
                               flag(op.getLayoutA() == NVVM::MMALayout::col),
                               flag(op.getLayoutB() == NVVM::MMALayout::row)};
  auto type = cast<LLVM::LLVMStructType>(op.getResults().getType());
  for (unsigned i = 0, e = type.getBody().size(); i < e; ++i)
    arguments.push_back(LLVM::ExtractValueOp::create(b, op.getInouts(), i));
  StringRef element =
      op.getTypeA() == NVVM::WGMMATypes::bf16 ? ".bf16" : ".f16";
  auto func = declare(b, "wgmma.m64n" + Twine(op.getShape().getN()) + element,
                      ValueRange(arguments), type, op);
  auto call = LLVM::CallOp::create(b, func, arguments);
  op.getResults().replaceAllUsesWith(call.getResult());
  op.erase();
}

/// Puts the check before the first use of accumulators in a block that is no
/// wgmma.
void Replacer::checkUses(Value accumulators) {
  llvm::SmallPtrSet<Block *, 4> seen;
  for (Operation *user : llvm::to_vector(accumulators.getUsers())) {
    if (!isa<LLVM::ExtractValueOp>(user) ||
        !seen.insert(user->getBlock()).second)
      continue;
    Operation *first = user;
    for (Operation *other : accumulators.getUsers())
      if (other->getBlock() == user->getBlock() &&
          isa<LLVM::ExtractValueOp>(other) && other->isBeforeInBlock(first))
        first = other;
    ImplicitLocOpBuilder b(first->getLoc(), first);
    auto func = declare(b, "wgmma.read", TypeRange(),
                        LLVM::LLVMVoidType::get(b.getContext()), first);
    LLVM::CallOp::create(b, func, ValueRange());
  }
}

void Replacer::run() {
  SmallVector<NVVM::WgmmaMmaAsyncOp> products;
  SmallVector<NVVM::MBarrierTryWaitParityOp> waits;
  module->walk([&](NVVM::WgmmaMmaAsyncOp op) { products.push_back(op); });
  module->walk([&](NVVM::MBarrierTryWaitParityOp op) { waits.push_back(op); });
  // Also those that a loop carries.
  llvm::SmallPtrSet<Type, 2> types;
  for (NVVM::WgmmaMmaAsyncOp op : products)
    types.insert(op.getResults().getType());
  SmallVector<Value> carried;
  module->walk([&](Operation *op) {
    for (Value result : op->getResults())
      if (types.contains(result.getType()))
        carried.push_back(result);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          if (types.contains(argument.getType()))
            carried.push_back(argument);
  });
  for (Value accumulators : carried)
    checkUses(accumulators);
  for (NVVM::WgmmaMmaAsyncOp op : products)
    replace(op);
  for (NVVM::MBarrierTryWaitParityOp op : waits)
    replace(op);
}

void mp::emulator::hopper::replaceInlinePTX(Operation *module,
                                            StringRef prefix) {
  Replacer(module, prefix).run();
}
