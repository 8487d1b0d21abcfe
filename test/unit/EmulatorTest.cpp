//===- EmulatorTest.cpp - planted faults are found ------------------------===//

#include "test/emulator/Emulator.h"
#include "gtest/gtest.h"

using namespace mlir::mp::emulator;

namespace {
/// A kernel of one buffer, in LLVM IR. Its body may use %tid, and @s, 1,024
/// bytes of shared memory.
struct EmulatorTest : testing::Test {
  std::vector<uint32_t> buffer = std::vector<uint32_t>(256);
  std::unique_ptr<Kernel> kernel;
  std::string error;

  bool load(const std::string &body) {
    std::string text = R"(
target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"
@s = internal addrspace(3) global [256 x i32] undef, align 16
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
declare void @llvm.nvvm.bar.warp.sync(i32)
declare void @llvm.nvvm.cp.async.ca.shared.global.4(ptr addrspace(3), ptr addrspace(1))
declare void @llvm.nvvm.cp.async.commit.group()
declare void @llvm.nvvm.cp.async.wait.group(i32)
declare i32 @llvm.nvvm.shfl.sync.bfly.i32(i32, i32, i32, i32)
declare i32 @llvm.nvvm.read.ptx.sreg.clock()
define ptx_kernel void @k(ptr addrspace(1) %b) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %mine = getelementptr i32, ptr addrspace(3) @s, i32 %tid
  %next = xor i32 %tid, 33
  %theirs = getelementptr i32, ptr addrspace(3) @s, i32 %next
  %near = xor i32 %tid, 1
  %nearby = getelementptr i32, ptr addrspace(3) @s, i32 %near
  %g = getelementptr i32, ptr addrspace(1) %b, i32 %tid
)" + body + "\n  ret void\n}\n";
    auto loaded = Kernel::fromText(text);
    if (!loaded) {
      error = llvm::toString(loaded.takeError());
      return false;
    }
    kernel = std::move(*loaded);
    return true;
  }

  Report run(const std::string &body, Copies copies = Copies::Late,
             bool isInput = false) {
    EXPECT_TRUE(load(body)) << error;
    for (size_t i = 0; i != buffer.size(); ++i)
      buffer[i] = uint32_t(i);
    Launch launch;
    launch.block = {64};
    launch.args = {isInput ? Argument::input(buffer, "b")
                           : Argument::output(buffer, "b")};
    return kernel->run(launch, copies);
  }

  /// Exactly this fault, at an instruction with this text.
  static void expectFault(const Report &report, FaultKind kind,
                          llvm::StringRef at) {
    const Fault *fault = report.find(kind);
    ASSERT_TRUE(fault) << report.text();
    EXPECT_NE(fault->location.find(at.str()), std::string::npos)
        << report.text();
  }
};
} // namespace

static const char *const kWrite = "store i32 %tid, ptr addrspace(3) %mine\n";
static const char *const kBarrier =
    "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)\n";
static const char *const kRead = "%v = load i32, ptr addrspace(3) %theirs\n"
                                 "store i32 %v, ptr addrspace(1) %g\n";
static const char *const kReadNear = "%v = load i32, ptr addrspace(3) %nearby\n"
                                     "store i32 %v, ptr addrspace(1) %g\n";

TEST_F(EmulatorTest, BarrierOrdersAccesses) {
  Report report = run(std::string(kWrite) + kBarrier + kRead);
  EXPECT_TRUE(report.clean()) << report.text();
  EXPECT_TRUE(report.conflicts().empty()) << report.text();
  for (uint32_t i = 0; i != 64; ++i)
    EXPECT_EQ(buffer[i], i ^ 33);
  EXPECT_EQ(report.count("barrier"), 64u);
}

TEST_F(EmulatorTest, MissingBarrierIsARace) {
  Report report = run(std::string(kWrite) + kRead);
  ASSERT_FALSE(report.clean());
  const Fault *race = report.find(FaultKind::Race);
  ASSERT_TRUE(race) << report.text();
  EXPECT_FALSE(race->otherLocation.empty());
}

TEST_F(EmulatorTest, WarpBarrierOrdersAWarp) {
  std::string sync = "call void @llvm.nvvm.bar.warp.sync(i32 -1)\n";
  Report near = run(kWrite + sync + kReadNear);
  EXPECT_TRUE(near.clean()) << near.text();
  Report far = run(kWrite + sync + kRead);
  EXPECT_TRUE(far.find(FaultKind::Race)) << far.text();
}

TEST_F(EmulatorTest, ReadBeforeAnyWrite) {
  expectFault(run(kRead), FaultKind::Uninitialized, "load i32");
}

TEST_F(EmulatorTest, OutsideABuffer) {
  expectFault(run("%o = getelementptr i32, ptr addrspace(1) %g, i32 200\n"
                  "store i32 0, ptr addrspace(1) %o\n"),
              FaultKind::OutOfBounds, "store i32 0");
}

TEST_F(EmulatorTest, OutsideSharedMemory) {
  expectFault(run("%o = getelementptr i32, ptr addrspace(3) %mine, i32 1000\n"
                  "store i32 0, ptr addrspace(3) %o\n"),
              FaultKind::OutOfBounds, "store i32 0");
}

TEST_F(EmulatorTest, WriteToAnInput) {
  expectFault(run("store i32 0, ptr addrspace(1) %g\n", Copies::Late, true),
              FaultKind::ReadOnly, "store i32 0");
}

TEST_F(EmulatorTest, MisalignedVector) {
  expectFault(run("%o = getelementptr i32, ptr addrspace(1) %b, i32 1\n"
                  "store <4 x i32> zeroinitializer, ptr addrspace(1) %o, "
                  "align 16\n"),
              FaultKind::Misaligned, "store <4 x i32>");
}

static std::string copyAndRead(const char *wait) {
  return std::string("call void @llvm.nvvm.cp.async.ca.shared.global.4(ptr "
                     "addrspace(3) %mine, ptr addrspace(1) %g)\n"
                     "call void @llvm.nvvm.cp.async.commit.group()\n") +
         wait + kBarrier + kRead;
}

TEST_F(EmulatorTest, CopiesArriveAtTheWait) {
  std::string wait = "call void @llvm.nvvm.cp.async.wait.group(i32 0)\n";
  for (Copies copies : {Copies::Late, Copies::Eager}) {
    Report report = run(copyAndRead(wait.c_str()), copies);
    EXPECT_TRUE(report.clean()) << report.text();
    for (uint32_t i = 0; i != 64; ++i)
      EXPECT_EQ(buffer[i], i ^ 33);
  }
}

TEST_F(EmulatorTest, WaitForTooFewCopies) {
  std::string wait = "call void @llvm.nvvm.cp.async.wait.group(i32 1)\n";
  for (Copies copies : {Copies::Late, Copies::Eager})
    expectFault(run(copyAndRead(wait.c_str()), copies), FaultKind::EarlyRead,
                "load i32");
}

TEST_F(EmulatorTest, ColumnAccessHasBankConflicts) {
  Report report = run("%r = and i32 %tid, 7\n"
                      "%w = mul i32 %r, 32\n"
                      "%o = getelementptr i32, ptr addrspace(3) @s, i32 %w\n"
                      "%f = icmp ult i32 %tid, 8\n"
                      "br i1 %f, label %yes, label %no\n"
                      "yes:\n"
                      "store i32 0, ptr addrspace(3) %o\n"
                      "br label %no\n"
                      "no:\n");
  EXPECT_TRUE(report.clean()) << report.text();
  auto conflicts = report.conflicts();
  ASSERT_EQ(conflicts.size(), 1u) << report.text();
  EXPECT_EQ(conflicts[0].paid, 8u);
  EXPECT_EQ(conflicts[0].ideal, 1u);
}

static std::string onlyLow(const std::string &body) {
  return "%f = icmp ult i32 %tid, 16\n"
         "br i1 %f, label %yes, label %no\n"
         "yes:\n" +
         body + "br label %no\nno:\n";
}

TEST_F(EmulatorTest, BarrierThatNotAllReach) {
  Report report = run(onlyLow(kBarrier) + "call void @llvm.nvvm.barrier.cta."
                                          "sync.aligned.all(i32 0)\n");
  expectFault(report, FaultKind::DivergentBarrier, "barrier");
}

TEST_F(EmulatorTest, LaneThatDoesNotTakePart) {
  std::string body = onlyLow(
      "%x = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %tid, i32 1, "
      "i32 31)\nstore i32 %x, ptr addrspace(1) %g\n");
  expectFault(run(body), FaultKind::MissingLane, "shfl.sync");
}

TEST_F(EmulatorTest, ShuffleExchanges) {
  Report report = run(
      "%x = call i32 @llvm.nvvm.shfl.sync.bfly.i32(i32 -1, i32 %tid, i32 5, "
      "i32 31)\nstore i32 %x, ptr addrspace(1) %g\n");
  EXPECT_TRUE(report.clean()) << report.text();
  for (uint32_t i = 0; i != 64; ++i)
    EXPECT_EQ(buffer[i], i ^ 5);
}

TEST_F(EmulatorTest, UnknownIntrinsicIsNamed) {
  EXPECT_FALSE(load("%c = call i32 @llvm.nvvm.read.ptx.sreg.clock()\n"
                    "store i32 %c, ptr addrspace(1) %g\n"));
  EXPECT_EQ(error, "cannot emulate llvm.nvvm.read.ptx.sreg.clock");
}

TEST_F(EmulatorTest, AssemblyIsNamed) {
  EXPECT_FALSE(load("call void asm sideeffect \"nanosleep.u32 1;\", \"\"()\n"));
  EXPECT_EQ(error, "cannot emulate inline assembly: nanosleep.u32 1;");
}

TEST_F(EmulatorTest, WrongLaunchIsAFault) {
  ASSERT_TRUE(load(kWrite));
  Launch launch;
  launch.block = {64};
  Report report = kernel->run(launch);
  EXPECT_TRUE(report.find(FaultKind::BadOperand)) << report.text();
}
