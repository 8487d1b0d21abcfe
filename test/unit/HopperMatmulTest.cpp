//===- HopperMatmulTest.cpp - wgmma kernels run by the emulator -----------===//
//
// As CudaMatmulTest.cpp: exact arithmetic, and no access may be a fault. Blocks
// go through several tiles.
//
//===----------------------------------------------------------------------===//

#include "CudaMatmulFixture.h"
#include "codegen/CUDA/Hopper/Schedule.h"
#include "llvm/Support/FormatVariadic.h"
#include <random>

using namespace mlir::mp;
using namespace mlir::mp::test;
using llvm::StringRef;

namespace {
class HopperMatmulTest : public CudaMatmulTest {};
} // namespace

TEST_F(HopperMatmulTest, EveryLayoutAndType) {
  for (StringRef element : {"f16", "bf16"})
    for (bool lhs : {false, true})
      for (bool rhs : {false, true}) {
        SCOPED_TRACE(llvm::formatv("{0} {1} {2}", element, lhs, rhs).str());
        MatmulShape shape{element, 128, 128, 96, 1, lhs, rhs, Tail::Residual};
        check(shape, "wgmma 64x64x64");
        shape.m = 136, shape.n = 200, shape.k = 328;
        check(shape, "wgmma 128x128x64");
      }
}

TEST_F(HopperMatmulTest, EverySchedule) {
  for (const cuda::hopper::Schedule &schedule : cuda::hopper::schedules())
    for (bool transposed : {false, true}) {
      SCOPED_TRACE(schedule.name.str());
      check({"bf16", 264, 328, 200, 1, transposed, !transposed, Tail::Cast},
            ("wgmma " + schedule.name).str());
    }
}

// A ring that goes around several times, with odd and even numbers of rounds.
TEST_F(HopperMatmulTest, LongSums) {
  for (int64_t k : {64, 448, 1088})
    check({"f16", 64, 192, k, 1, false, true, Tail::Cast}, "wgmma 64x64x64");
}

// Results that TMA cannot store: rows of 75 f32, and of an odd number of f16.
TEST_F(HopperMatmulTest, UnalignedResults) {
  check({"f16", 70, 75, 64, 1, false, true, Tail::None}, "wgmma 64x128x64");
  check({"f16", 70, 75, 64, 1, false, true, Tail::Residual}, "wgmma 64x64x64");
  check({"bf16", 70, 78, 64, 1, false, true, Tail::Residual}, "wgmma 64x64x64");
}

TEST_F(HopperMatmulTest, WideResults) {
  check({"f16", 136, 264, 72, 1, false, true, Tail::None}, "wgmma 128x256x64");
  check({"bf16", 136, 200, 72, 1, true, false, Tail::None}, "wgmma 128x192x64");
}

TEST_F(HopperMatmulTest, DynamicExtents) {
  MatmulShape rows{"f16", 100, 128, 64, 1, false, true, Tail::Residual, 'm'};
  check(rows, "wgmma 64x64x64");
  rows.m = 1;
  check(rows, "wgmma 64x128x64");
  check({"bf16", 64, 136, 70, 1, true, false, Tail::None, 'k'},
        "wgmma 64x64x64");
  check({"f16", 40, 72, 64, 2, false, false, Tail::Cast, 'b'},
        "wgmma 64x64x64");
}

// Tails along m and n inside a batch: no copy may touch the next matrix.
TEST_F(HopperMatmulTest, Batches) {
  for (bool lhs : {false, true})
    for (bool rhs : {false, true})
      check({"bf16", 72, 40, 88, 3, lhs, rhs, Tail::Residual},
            "wgmma 64x64x64");
}

TEST_F(HopperMatmulTest, PositionsInTheEpilogue) {
  check({"bf16", 72, 88, 64, 1, false, true, Tail::Mask}, "wgmma 64x64x64");
  check({"f16", 40, 40, 64, 3, false, true, Tail::Mask}, "wgmma 64x128x64");
}

TEST_F(HopperMatmulTest, RandomShapes) {
  std::mt19937 random(5); // NOLINT(bugprone-random-generator-seed)
  auto upTo = [&](unsigned limit) -> int64_t { return 1 + random() % limit; };
  llvm::ArrayRef<cuda::hopper::Schedule> all = cuda::hopper::schedules();
  for (int i = 0; i < 10; ++i) {
    MatmulShape shape{random() % 2 ? "f16" : "bf16",
                      8 * upTo(30),
                      8 * upTo(40),
                      8 * upTo(30),
                      1 + int64_t(random() % 2),
                      random() % 2 == 0,
                      random() % 2 == 0,
                      random() % 2 ? Tail::Cast : Tail::Residual};
    std::string schedule = ("wgmma " + all[random() % all.size()].name).str();
    SCOPED_TRACE(llvm::formatv("{0} {1}x{2}x{3} {4}{5} {6}", shape.element,
                               shape.m, shape.n, shape.k, shape.lhsTransposed,
                               shape.rhsTransposed, schedule)
                     .str());
    check(shape, schedule);
  }
}
