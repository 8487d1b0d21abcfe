//===- Fusion.cpp - what a fuser would store ------------------------------===//

#include "passes/Placement/Fusion.h"
#include "dialect/IR/Target.h"
#include "passes/Placement/KernelMerger.h"

using namespace mlir;
using namespace mlir::mp;

// Inductor's thresholds: realize_reads_threshold, realize_opcount_threshold and
// the limit on reads of one expression.
static constexpr size_t kMaxSharedReads = 4;
static constexpr int64_t kMaxSharedOps = 30;
static constexpr size_t kMaxReads = 8;

static bool hasTensorResult(Operation *op) {
  return llvm::any_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>);
}

/// True if the operation has fewer results than operand elements.
static bool reduces(Operation *op) {
  if (op->getNumOperands() == 0)
    return false;
  return estimatedElements(op->getResult(0).getType()) <
         estimatedElements(op->getOperand(0).getType());
}

KernelRole mlir::mp::kernelRoleOf(Operation *op) {
  if (!hasTensorResult(op))
    return KernelRole::Nothing;
  if (isa<MaterializeOp>(op))
    return KernelRole::Pointwise;
  if (!isMemoryEffectFree(op))
    return KernelRole::External;
  switch (opKindOf(op)) {
  case OpKind::View:
  case OpKind::Reshape:
    return KernelRole::View;
  case OpKind::Creation:
    return KernelRole::Creation;
  case OpKind::Norm:
  case OpKind::Softmax:
  case OpKind::Loss:
    return KernelRole::Reduction;
  case OpKind::Reduction:
  case OpKind::Monotone:
    return reduces(op) ? KernelRole::Reduction : KernelRole::Pointwise;
  case OpKind::Movement:
  case OpKind::Gather:
  case OpKind::Sign:
  case OpKind::Pointwise:
  case OpKind::Activation:
  case OpKind::Compare:
  case OpKind::Rounding:
  case OpKind::Random:
    return op->getNumResults() == 1 ? KernelRole::Pointwise
                                    : KernelRole::External;
  case OpKind::Shape:
    return KernelRole::Nothing;
  case OpKind::Unknown:
  case OpKind::Scatter:
  case OpKind::Matmul:
  case OpKind::Convolution:
  case OpKind::Attention:
  case OpKind::Index:
  case OpKind::Bitcast:
  case OpKind::Effect:
    return KernelRole::External;
  }
  llvm_unreachable("unknown kind");
}

Value mlir::mp::viewedBuffer(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (kernelRoleOf(op) != KernelRole::View || op->getNumOperands() == 0)
      break;
    value = op->getOperand(0);
  }
  return value;
}

int64_t mlir::mp::estimatedElements(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return 0;
  int64_t elements = 1;
  for (int64_t size : tensor.getShape())
    elements *= ShapedType::isDynamic(size) ? kDynamicSize : size;
  return elements;
}

int64_t mlir::mp::estimatedBytes(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return 0;
  Type element = tensor.getElementType();
  int64_t bits = 8;
  if (auto complex = dyn_cast<ComplexType>(element))
    bits = 2 * int64_t(complex.getElementType().getIntOrFloatBitWidth());
  else if (element.isIntOrFloat())
    bits = std::max<int64_t>(8, element.getIntOrFloatBitWidth());
  return estimatedElements(type) * bits / 8;
}

//===----------------------------------------------------------------------===//
// What is stored
//===----------------------------------------------------------------------===//

static bool isFusedRole(KernelRole role) {
  return role == KernelRole::Pointwise || role == KernelRole::Creation;
}

/// The operations that read `op` through views.
static SmallVector<Operation *> realUsersOf(Operation *op) {
  SmallVector<Operation *> users, pending = {op};
  llvm::SmallPtrSet<Operation *, 8> seen;
  while (!pending.empty())
    for (Operation *user : pending.pop_back_val()->getUsers()) {
      if (!seen.insert(user).second)
        continue;
      bool isView = kernelRoleOf(user) == KernelRole::View;
      (isView ? pending : users).push_back(user);
    }
  return users;
}

bool FusionEstimate::needsMemory(Operation *op, size_t reads,
                                 int64_t size) const {
  if (isa<MaterializeOp>(op) || reads > kMaxReads)
    return true;
  SmallVector<Operation *> users = realUsersOf(op);
  for (Operation *user : users) {
    if (user->hasTrait<OpTrait::IsTerminator>() ||
        kernelRoleOf(user) == KernelRole::External)
      return true;
    // What forward makes for backward is saved.
    if (isBackward(user) != isBackward(op))
      return true;
  }
  return users.size() > 1 && (reads > kMaxSharedReads || size > kMaxSharedOps);
}

void FusionEstimate::findStored(func::FuncOp func) {
  struct Expression {
    SmallVector<Value, 4> reads;
    int64_t size = 1;
  };
  llvm::DenseMap<Operation *, Expression> expressions;
  for (Operation &op : func.getBody().front()) {
    KernelRole role = kernelRoleOf(&op);
    if (role == KernelRole::Nothing || role == KernelRole::View)
      continue;
    if (role == KernelRole::External || role == KernelRole::Reduction) {
      storedOps.insert(&op);
      continue;
    }
    Expression expression;
    llvm::SmallDenseSet<Value> seen;
    for (Value operand : op.getOperands()) {
      Value buffer = viewedBuffer(operand);
      Operation *producer = buffer.getDefiningOp();
      if (!producer || storedOps.contains(producer)) {
        if (isa<RankedTensorType>(buffer.getType()) &&
            seen.insert(buffer).second)
          expression.reads.push_back(buffer);
        continue;
      }
      auto inlined = expressions.find(producer);
      if (inlined == expressions.end())
        continue;
      expression.size += inlined->second.size;
      for (Value read : inlined->second.reads)
        if (seen.insert(read).second)
          expression.reads.push_back(read);
    }
    if (needsMemory(&op, expression.reads.size(), expression.size))
      storedOps.insert(&op);
    else
      expressions[&op] = std::move(expression);
  }
}

FusionEstimate::FusionEstimate(func::FuncOp func) {
  findStored(func);
  KernelMerger merger(targetOf(func).mixesReductions);
  for (Operation &op : func.getBody().front())
    if (storedOps.contains(&op))
      merger.add(&op, operationsOf(Kernel{{&op}}));
  for (KernelMerger::Members &members : merger.run()) {
    Kernel kernel;
    kernel.stored.append(members.begin(), members.end());
    Operation *first = kernel.stored.front();
    kernel.isExternal = kernelRoleOf(first) == KernelRole::External;
    kernel.isBackward = isBackward(first);
    for (Operation *op : kernel.stored) {
      kernel.elements = std::max(kernel.elements, iterationSize(op));
      kernelOfOp[op] = kernels.size();
    }
    kernels.push_back(std::move(kernel));
  }
}

bool FusionEstimate::isStored(Value value) const {
  Operation *op = value.getDefiningOp();
  return !op || storedOps.contains(op);
}

int FusionEstimate::kernelOf(Value value) const {
  auto found = kernelOfOp.find(value.getDefiningOp());
  return found == kernelOfOp.end() ? -1 : found->second;
}

SmallVector<Operation *>
FusionEstimate::operationsOf(const Kernel &kernel) const {
  SmallVector<Operation *> operations(kernel.stored.begin(),
                                      kernel.stored.end());
  llvm::SmallPtrSet<Operation *, 8> seen(kernel.stored.begin(),
                                         kernel.stored.end());
  for (size_t i = 0; i < operations.size(); ++i)
    for (Value operand : operations[i]->getOperands()) {
      Operation *producer = viewedBuffer(operand).getDefiningOp();
      if (producer && !storedOps.contains(producer) &&
          isFusedRole(kernelRoleOf(producer)) && seen.insert(producer).second)
        operations.push_back(producer);
    }
  return operations;
}
