//===- Mainloop.cpp - the sum over k --------------------------------------===//

#include "codegen/CUDA/Matmul/Mainloop.h"
#include "codegen/CUDA/Matmul/Copies.h"
#include "codegen/CUDA/Matmul/Fragments.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;

namespace {
/// The fragments of both operands for one mma step.
struct Operands {
  SmallVector<Fragment> lhs, rhs;
};

class Mainloop {
public:
  Mainloop(Frame &frame, Value first, Value last, OperandSums sums);
  Accumulators emit();

private:
  void issue(Value step, Value stage);
  void waitForStage();
  Value nextStage(Value stage);
  Operands loadOperands(Value stage, int64_t step);
  void addProducts(const Operands &operands);
  void addSums(const Operands &operands);
  void emitStep(Value step, Value &read, Value &write, Operands &operands);
  SmallVector<Value> carried(const Operands &operands, Value read, Value write);
  void take(ValueRange carried, Operands &operands, Value &read, Value &write);

  Frame &frame;
  KernelBuilder &b;
  int64_t stages, bytesOfStage, mmaSteps;
  Value first, last;
  OperandCopy lhsCopy, rhsCopy;
  FragmentLoader lhsLoader, rhsLoader;
  Fragment lhsOnes, rhsOnes;
  Accumulators accumulators;
};
} // namespace

/// The position along k where the block's steps end.
static Value endOf(Frame &frame, Value last) {
  KernelBuilder &b = frame.b;
  return b.minOf(b.mul(last, frame.schedule.blockK), frame.k.value);
}

Mainloop::Mainloop(Frame &frame, Value first, Value last, OperandSums sums)
    : frame(frame), b(frame.b), stages(frame.schedule.stages),
      bytesOfStage(stageBytes(frame.kernel, frame.schedule)),
      mmaSteps(frame.schedule.blockK / mmaDepth(frame.elementBytes())),
      first(first), last(last),
      lhsCopy(frame, lhsTile(frame.kernel, frame.schedule), endOf(frame, last)),
      rhsCopy(frame, rhsTile(frame.kernel, frame.schedule), endOf(frame, last)),
      lhsLoader(frame, lhsTile(frame.kernel, frame.schedule)),
      rhsLoader(frame, rhsTile(frame.kernel, frame.schedule)) {
  accumulators.rows = frame.schedule.warpM / 16;
  accumulators.columns = frame.schedule.warpN / 8;
  accumulators.sums = sums;
  int64_t fragments = accumulators.rows * accumulators.columns;
  if (sums.lhs)
    fragments += accumulators.rows;
  if (sums.rhs)
    fragments += accumulators.columns;
  accumulators.values.assign(4 * fragments, b.f32(0));
  lhsOnes = makeOnes(frame, /*isLhs=*/true);
  rhsOnes = makeOnes(frame, /*isLhs=*/false);
}

void Mainloop::issue(Value step, Value stage) {
  lhsCopy.issue(step, stage);
  rhsCopy.issue(step, stage);
  NVVM::CpAsyncCommitGroupOp::create(b);
}

/// Waits until only the copies of the stages after the next one are under way.
void Mainloop::waitForStage() {
  NVVM::CpAsyncWaitGroupOp::create(b, static_cast<uint32_t>(stages - 2));
  b.barrier();
}

Value Mainloop::nextStage(Value stage) {
  Value next = b.add(stage, bytesOfStage);
  Value isEnd = b.isEqual(next, b.i32(stages * bytesOfStage));
  return b.select(isEnd, b.i32(0), next);
}

Operands Mainloop::loadOperands(Value stage, int64_t step) {
  return {lhsLoader.load(stage, step), rhsLoader.load(stage, step)};
}

static void assign(Accumulators &accumulators, int64_t fragment,
                   ArrayRef<Value> sums) {
  llvm::copy(sums, accumulators.values.begin() + 4 * fragment);
}

void Mainloop::addProducts(const Operands &operands) {
  Accumulators &acc = accumulators;
  for (int64_t row = 0; row < acc.rows; ++row)
    for (int64_t i = 0; i < acc.columns; ++i) {
      // To and fro, so that neighbours share an operand.
      int64_t column = row % 2 ? acc.columns - 1 - i : i;
      assign(acc, row * acc.columns + column,
             multiply(frame, operands.lhs[row], operands.rhs[column],
                      acc.at(row, column)));
    }
  addSums(operands);
}

/// The products with ones.
void Mainloop::addSums(const Operands &operands) {
  Accumulators &acc = accumulators;
  int64_t next = acc.rows * acc.columns;
  for (int64_t row = 0; acc.sums.lhs && row < acc.rows; ++row)
    assign(acc, next++,
           multiply(frame, operands.lhs[row], rhsOnes, acc.lhsSum(row)));
  for (int64_t column = 0; acc.sums.rhs && column < acc.columns; ++column)
    assign(acc, next++,
           multiply(frame, lhsOnes, operands.rhs[column], acc.rhsSum(column)));
}

/// One step of the ring. On entry `operands` are the first of stage `read`, on
/// return those of the stage after it.
void Mainloop::emitStep(Value step, Value &read, Value &write,
                        Operands &operands) {
  issue(b.add(step, stages - 1), write);
  Value next = nextStage(read);
  for (int64_t i = 0; i < mmaSteps; ++i) {
    bool isLast = i + 1 == mmaSteps;
    if (isLast)
      waitForStage();
    Operands ahead = loadOperands(isLast ? next : read, isLast ? 0 : i + 1);
    addProducts(operands);
    operands = std::move(ahead);
  }
  read = next;
  write = nextStage(write);
}

SmallVector<Value> Mainloop::carried(const Operands &operands, Value read,
                                     Value write) {
  SmallVector<Value> values(accumulators.values);
  for (const auto *side : {&operands.lhs, &operands.rhs})
    for (const Fragment &fragment : *side)
      llvm::append_range(values, fragment);
  values.push_back(read);
  values.push_back(write);
  return values;
}

void Mainloop::take(ValueRange carried, Operands &operands, Value &read,
                    Value &write) {
  size_t next = accumulators.values.size();
  accumulators.values.assign(carried.begin(), carried.begin() + next);
  for (auto *side : {&operands.lhs, &operands.rhs})
    for (Fragment &fragment : *side)
      for (Value &word : fragment)
        word = carried[next++];
  read = carried[next];
  write = carried[next + 1];
}

Accumulators Mainloop::emit() {
  for (int64_t stage = 0; stage + 1 < stages; ++stage)
    issue(b.add(first, stage), b.i32(stage * bytesOfStage));
  waitForStage();
  Value read = b.i32(0), write = b.i32((stages - 1) * bytesOfStage);
  Operands operands = loadOperands(read, 0);

  auto loop = scf::ForOp::create(b, first, last, b.i32(1),
                                 carried(operands, read, write));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    take(loop.getRegionIterArgs(), operands, read, write);
    emitStep(loop.getInductionVar(), read, write, operands);
    scf::YieldOp::create(b, carried(operands, read, write));
  }
  take(loop.getResults(), operands, read, write);
  NVVM::CpAsyncWaitGroupOp::create(b, 0u);
  b.barrier();
  return accumulators;
}

Accumulators cuda::emitMainloop(Frame &frame, Value first, Value last,
                                OperandSums sums) {
  return Mainloop(frame, first, last, sums).emit();
}
