//===- HopperFaultsTest.cpp - broken wgmma kernels are found out ----------===//
//
// Each test takes one thing away from a correct kernel. The emulator must name
// the fault, whatever the values are.
//
//===----------------------------------------------------------------------===//

#include "CudaMatmulFixture.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::mp::test;
using mlir::mp::emulator::FaultKind;
namespace emulator = mlir::mp::emulator;

namespace {
class HopperFaultsTest : public CudaMatmulTest {
protected:
  /// Two computing warpgroups, several rounds of the ring, two tiles a block.
  void prepare() {
    ASSERT_TRUE(
        compile(matmulText({"bf16", 256, 384, 704, 1, false, true, Tail::Cast}),
                "wgmma 128x64x64"));
  }

  emulator::Report emulate(emulator::Copies copies = emulator::Copies::Late) {
    constexpr size_t m = 256, n = 384, k = 704;
    std::vector<Buffer> arguments{{"bf16", m * k}, {"bf16", n * k}};
    std::vector<Buffer> results{{"bf16", m * n}};
    unsigned seed = 3;
    for (Buffer &argument : arguments)
      argument.fill(seed);
    std::vector<char> workspace;
    auto kernel = emulator::Kernel::fromMLIR(module->getOperation());
    if (!kernel) {
      ADD_FAILURE() << llvm::toString(kernel.takeError());
      return {};
    }
    return (*kernel)->run(makeLaunch(arguments, results, 0, workspace), copies);
  }

  void expect(FaultKind kind) {
    for (auto copies : {emulator::Copies::Late, emulator::Copies::Eager}) {
      emulator::Report report = emulate(copies);
      EXPECT_TRUE(report.find(kind)) << report.text();
    }
  }

  template <typename Op>
  std::vector<Op> all() {
    std::vector<Op> found;
    module->walk([&](Op op) { found.push_back(op); });
    return found;
  }
  template <typename Op>
  void eraseAll() {
    auto found = all<Op>();
    ASSERT_FALSE(found.empty());
    for (Op op : found)
      op.erase();
  }

  /// Whether the op stands in the same block as one of type `Other`.
  template <typename Other>
  static bool isBeside(Operation *op) {
    return !op->getBlock()->getOps<Other>().empty();
  }
  Value constant(Operation *before, int64_t value) {
    OpBuilder b(before);
    return LLVM::ConstantOp::create(b, before->getLoc(),
                                    b.getI32IntegerAttr(value));
  }
};
} // namespace

TEST_F(HopperFaultsTest, Clean) {
  prepare();
  for (auto copies : {emulator::Copies::Late, emulator::Copies::Eager}) {
    emulator::Report report = emulate(copies);
    EXPECT_TRUE(report.clean()) << report.text();
    // 12 tiles of two warpgroups, 11 steps of four products each.
    EXPECT_EQ(report.count("wgmma.mma_async"), 12u * 2 * 11 * 4);
    EXPECT_EQ(report.count("cp.async.bulk.tensor.g2s"), 12u * 11 * 2);
    EXPECT_TRUE(report.conflicts().empty()) << report.text();
  }
}

TEST_F(HopperFaultsTest, WrongParityOfLoads) {
  prepare();
  for (auto wait : all<NVVM::MBarrierTryWaitParityOp>()) {
    if (!isBeside<NVVM::WgmmaFenceAlignedOp>(wait))
      continue;
    OpBuilder b(wait);
    wait.getPhaseMutable().assign(LLVM::XOrOp::create(
        b, wait.getLoc(), wait.getPhase(), constant(wait, 1)));
  }
  expect(FaultKind::EarlyRead);
}

TEST_F(HopperFaultsTest, MissingWaitForLoads) {
  prepare();
  for (auto wait : all<NVVM::MBarrierTryWaitParityOp>())
    if (isBeside<NVVM::WgmmaFenceAlignedOp>(wait))
      wait.erase();
  expect(FaultKind::EarlyRead);
}

TEST_F(HopperFaultsTest, MissingWaitForEmptyStages) {
  prepare();
  for (auto wait : all<NVVM::MBarrierTryWaitParityOp>())
    if (isBeside<NVVM::MBarrierArriveExpectTxOp>(wait))
      wait.erase();
  expect(FaultKind::EarlyRead);
}

// A stage is given back while the last products still read it.
TEST_F(HopperFaultsTest, LateWaitForProducts) {
  prepare();
  for (auto wait : all<NVVM::WgmmaWaitGroupSyncOp>())
    if (wait.getGroup() == 1)
      wait.setGroup(2);
  expect(FaultKind::EarlyRead);
}

TEST_F(HopperFaultsTest, MissingWaitForProducts) {
  prepare();
  for (auto wait : all<NVVM::WgmmaWaitGroupSyncOp>())
    if (wait.getGroup() == 0)
      wait.erase();
  expect(FaultKind::EarlyRead);
}

TEST_F(HopperFaultsTest, TooFewBytesExpected) {
  prepare();
  for (auto arrival : all<NVVM::MBarrierArriveExpectTxOp>())
    arrival.getTxcountMutable().assign(constant(arrival, 8192));
  expect(FaultKind::BadOperand);
}

TEST_F(HopperFaultsTest, TooManyBytesExpected) {
  prepare();
  for (auto arrival : all<NVVM::MBarrierArriveExpectTxOp>())
    arrival.getTxcountMutable().assign(constant(arrival, 65536));
  expect(FaultKind::Deadlock);
}

// "empty" counts one of the two warpgroups: the other may still read.
TEST_F(HopperFaultsTest, TooFewArrivals) {
  prepare();
  for (auto init : all<NVVM::MBarrierInitOp>())
    init.getCountMutable().assign(constant(init, 1));
  emulator::Report report = emulate();
  EXPECT_FALSE(report.clean());
}

TEST_F(HopperFaultsTest, MissingProxyFence) {
  prepare();
  eraseAll<NVVM::FenceProxyOp>();
  expect(FaultKind::ProxyFence);
}

TEST_F(HopperFaultsTest, MissingFenceOfBarriers) {
  prepare();
  eraseAll<NVVM::FenceMbarrierInitOp>();
  expect(FaultKind::ProxyFence);
}

TEST_F(HopperFaultsTest, MissingFenceOfRegisters) {
  prepare();
  eraseAll<NVVM::WgmmaFenceAlignedOp>();
  expect(FaultKind::BadOperand);
}

// Others use barriers that they have not met the initialization of.
TEST_F(HopperFaultsTest, MissingMeetingAfterInitialization) {
  prepare();
  for (auto barrier : all<NVVM::BarrierOp>())
    if (!barrier.getNumberOfThreads())
      barrier.erase();
  EXPECT_FALSE(emulate().clean());
}

// The staging buffer is stored before all have written it.
TEST_F(HopperFaultsTest, MissingMeetingBeforeStores) {
  prepare();
  for (auto barrier : all<NVVM::BarrierOp>())
    if (barrier.getNumberOfThreads())
      barrier.erase();
  EXPECT_FALSE(emulate().clean());
}

TEST_F(HopperFaultsTest, MissingWaitForStores) {
  prepare();
  eraseAll<NVVM::CpAsyncBulkWaitGroupOp>();
  expect(FaultKind::EarlyRead);
}
