//===- HopperTest.cpp - the wgmma kernel as PTX ---------------------------===//

#include "HopperFixture.h"
#include "Ptxas.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda::hopper;
using namespace mlir::mp::test;

static unsigned count(StringRef text, StringRef piece) {
  return text.count(piece);
}

// Each schedule's PTX has as many products and copies as its tile asks for: one
// step before the loop and one in it.
TEST_F(HopperTest, CountsOfEachSchedule) {
  for (const Schedule &schedule : schedules()) {
    SCOPED_TRACE(schedule.name.str());
    auto emitted = emit({"bf16", 4096, 4096, 4096}, schedule.name);
    ASSERT_TRUE(emitted) << whyNot;
    std::string ptx = toPTX(*emitted->module);
    std::string wgmma =
        "wgmma.mma_async.sync.aligned.m64n" + std::to_string(schedule.blockN);
    EXPECT_EQ(count(ptx, wgmma), 8u);
    EXPECT_EQ(count(ptx, "wgmma.mma_async"), 8u);
    EXPECT_EQ(count(ptx, "wgmma.commit_group"), 2u);
    EXPECT_EQ(count(ptx, "wgmma.wait_group"), 2u);
    // LLVM may unroll the loop of the loading thread.
    unsigned loads = count(ptx, "mbarrier.arrive.expect_tx");
    EXPECT_GE(loads, 1u);
    EXPECT_EQ(count(ptx, "cp.async.bulk.tensor.2d.shared"), 2 * loads);
    EXPECT_EQ(count(ptx, "mbarrier.try_wait"), 2 + loads);
    EXPECT_EQ(count(ptx, "cp.async.bulk.tensor.2d.global"),
              unsigned(schedule.blockN / 64));
    EXPECT_EQ(count(ptx, "mbarrier.init"), unsigned(2 * schedule.stages));
    EXPECT_EQ(count(ptx, "setmaxnreg"), 2u);
    EXPECT_EQ(count(ptx, "cvta.param"), 3u);
    EXPECT_EQ(count(ptx, "st.global"), 0u);
  }
}

// Operands with k outside come in pieces of 64 and have the transpose bits set.
TEST_F(HopperTest, CountsOfLayouts) {
  for (bool lhs : {false, true})
    for (bool rhs : {false, true}) {
      MatmulShape shape{"f16", 4096, 4096, 4096};
      shape.lhsTransposed = lhs;
      shape.rhsTransposed = rhs;
      auto emitted = emit(shape, "128x256x64");
      ASSERT_TRUE(emitted) << whyNot;
      std::string ptx = toPTX(*emitted->module);
      unsigned loads = count(ptx, "mbarrier.arrive.expect_tx");
      EXPECT_EQ(count(ptx, "cp.async.bulk.tensor.2d.shared"),
                ((lhs ? 2 : 1) + (rhs ? 1 : 4)) * loads);
      EXPECT_EQ(count(ptx, "m64n256k16.f32.f16.f16"), 8u);
    }
}

// The assembler keeps all in registers and inserts no wait of its own.
TEST_F(HopperTest, Assembles) {
  for (const Schedule &schedule : schedules())
    for (Tail tail : {Tail::Cast, Tail::None, Tail::Residual, Tail::Gelu}) {
      // The error function is libdevice's.
      if (tail == Tail::Gelu && cuda::findLibdevice({}).empty())
        continue;
      SCOPED_TRACE(schedule.name.str());
      MatmulShape shape{"bf16", -1, 4096, 4096};
      shape.dynamic = 'm';
      shape.tail = tail;
      auto emitted = emit(shape, schedule.name);
      ASSERT_TRUE(emitted) << whyNot;
      auto report = assemble(toPTX(*emitted->module), "sm_90a");
      if (!report)
        GTEST_SKIP() << "there is no ptxas";
      ASSERT_TRUE(report->isAssembled) << report->text;
      EXPECT_EQ(report->spilledBytes, 0) << report->text;
      EXPECT_LE(report->registers, schedule.launchRegisters) << report->text;
      EXPECT_FALSE(report->warns()) << report->text;
    }
}

TEST_F(HopperTest, Launch) {
  MatmulShape shape{"bf16", -1, 512, 256, 1};
  shape.dynamic = 'm';
  auto emitted = emit(shape, "128x256x64");
  ASSERT_TRUE(emitted) << whyNot;
  const auto &launch = emitted->launch;
  EXPECT_EQ(launch.grid.extent[0], -1);
  EXPECT_EQ(launch.grid.extent[1], 512);
  EXPECT_EQ(launch.grid.tile[0], 128);
  EXPECT_EQ(launch.grid.tile[1], 256);
  EXPECT_TRUE(launch.grid.flat);
  EXPECT_EQ(launch.block[0], 384u);
  EXPECT_EQ(launch.dynamicSharedBytes, 4u * 48 * 1024 + 2 * 16 * 1024 + 64);
  ASSERT_EQ(launch.mapCount, 3);
  const ::mp::runtime::TensorMap &lhs = launch.maps[0];
  EXPECT_EQ(lhs.buffer, 0);
  EXPECT_EQ(lhs.extents[0].factor, 256);
  EXPECT_EQ(lhs.extents[1].size, 0);
  EXPECT_EQ(lhs.box[0], 64u);
  EXPECT_EQ(lhs.box[1], 128u);
  EXPECT_EQ(launch.maps[2].buffer, 2);
}

TEST_F(HopperTest, Refuses) {
  auto reason = [&](const MatmulShape &shape) {
    whyNot.clear();
    EXPECT_FALSE(emit(shape, "64x64x64"));
    return whyNot;
  };
  EXPECT_EQ(reason({"bf16", 64, 64, 60}),
            "rows of lhs have 120 bytes, which is no multiple of 16");
  MatmulShape plain{"bf16", 64, 60, 64};
  plain.rhsTransposed = false;
  EXPECT_EQ(reason(plain),
            "rows of rhs have 120 bytes, which is no multiple of 16");
}

// Large matrices get the largest tile; few rows get a low one.
TEST_F(HopperTest, Chooses) {
  auto chosen = [&](int64_t m, int64_t n, int64_t k) {
    source =
        parseSourceString<ModuleOp>(matmulText({"bf16", m, n, k}), &context);
    return chooseSchedule(std::get<MatmulKernel>(*parseKernel(*source)), 132)
        .name;
  };
  EXPECT_EQ(chosen(8192, 8192, 8192), "128x256x64");
  EXPECT_EQ(chosen(64, 4096, 4096), "64x64x64");
  EXPECT_EQ(chosen(512, 1024, 4096), "64x64x64");
}
