//===- HopperTest.cpp - the wgmma kernel as PTX ---------------------------===//

#include "HopperFixture.h"

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
    EXPECT_EQ(count(ptx, "cp.async.bulk.tensor.2d.shared"), 2u);
    EXPECT_EQ(count(ptx, "cp.async.bulk.tensor.2d.global"),
              unsigned(schedule.blockN / 64));
    EXPECT_EQ(count(ptx, "mbarrier.init"), unsigned(2 * schedule.stages));
    EXPECT_EQ(count(ptx, "mbarrier.try_wait"), 3u);
    EXPECT_EQ(count(ptx, "setmaxnreg"), 2u);
  }
}
