//===- RowsTest.cpp - row kernels run by the emulator ---------------------===//
//
// Families, types, widths and schedules against double precision; no access may
// be a fault and none to shared memory a conflict.
//
//===----------------------------------------------------------------------===//

#include "Ptxas.h"
#include "RowsFixture.h"
#include "RowsText.h"
#include "llvm/Support/FormatVariadic.h"
#include <random>

using namespace mlir::mp;
using namespace mlir::mp::test;
using llvm::StringRef;

static std::string traceOf(StringRef family, StringRef element, int64_t columns,
                           int64_t rows) {
  return llvm::formatv("{0} {1} {2}x{3}", family, element, rows, columns);
}

TEST_F(RowsTest, FamiliesAndTypes) {
  for (StringRef family : rowFamilies())
    for (StringRef element : {"bf16", "f16", "f32"}) {
      SCOPED_TRACE(traceOf(family, element, 72, 5));
      parse(family, element, 72);
      check(5);
    }
}

// Rows shorter than a vector, odd ones, those of one warp, of several, and
// those that stay in no register.
TEST_F(RowsTest, Widths) {
  for (int64_t columns : {1, 7, 33, 768, 1000, 4096, 8192})
    for (StringRef family :
         {"layer-norm", "layer-norm-backward", "cross-entropy"}) {
      SCOPED_TRACE(traceOf(family, "bf16", columns, 3));
      parse(family, "bf16", columns);
      check(3);
    }
}

TEST_F(RowsTest, LoopedRows) {
  for (StringRef family : {"softmax", "layer-norm-backward", "cross-entropy"})
    for (int64_t columns : {8, 1000, 2056}) {
      SCOPED_TRACE(traceOf(family, "f16", columns, 3));
      parse(family, "f16", columns);
      cuda::RowSchedule schedule = defaultSchedule();
      schedule.isLooped = true;
      schedule.threads = 64;
      schedule.groups = 1;
      schedule.unroll = 2;
      check(3, schedule);
    }
}

// More blocks than one step of the final sum joins.
TEST_F(RowsTest, ManyBlocks) {
  parse("column-sum", "bf16", 264);
  cuda::RowSchedule schedule = defaultSchedule();
  schedule.steps = 4;
  for (int64_t rows : {1, 31, 32, 33, 600, 1100})
    check(rows, schedule, Data::Integer);
  parse("layer-norm-backward", "f16", 40);
  check(650);
}

TEST_F(RowsTest, IntegersAreExact) {
  for (StringRef element : {"bf16", "f16", "f32"})
    for (int64_t columns : {9, 96, 500}) {
      SCOPED_TRACE(traceOf("", element, columns, 40));
      parse("column-sum", element, columns);
      check(40, defaultSchedule(), Data::Integer);
      parse("softmax-backward", element, columns);
      check(40, defaultSchedule(), Data::Integer);
    }
}

TEST_F(RowsTest, RandomShapes) {
  std::mt19937 random(5); // NOLINT(bugprone-random-generator-seed)
  for (int i = 0; i < 20; ++i) {
    StringRef family = rowFamilies()[random() % rowFamilies().size()];
    StringRef element = random() % 2 ? "bf16" : "f16";
    int64_t columns = 1 + random() % (random() % 2 ? 600 : 64);
    int64_t rows = 1 + random() % 40;
    SCOPED_TRACE(traceOf(family, element, columns, rows));
    parse(family, element, columns);
    check(rows);
  }
}

// The schedules that are chosen keep all in registers.
TEST_F(RowsTest, NothingIsSpilled) {
  if (!assemble("", "sm_80") || StringRef(MPOPT_LIBDEVICE).empty())
    GTEST_SKIP() << "no ptxas or no libdevice";
  for (StringRef family : rowFamilies())
    for (int64_t columns : {768, 8192})
      for (StringRef chip : {"sm_80", "sm_90", "sm_100", "sm_120"}) {
        SCOPED_TRACE(traceOf(family, chip, columns, 0));
        parse(family, "bf16", columns);
        std::optional<PtxasReport> report = assemble(ptxOf(chip), chip);
        ASSERT_TRUE(report->isAssembled) << report->text;
        EXPECT_EQ(report->spilledBytes, 0) << report->text;
        EXPECT_LE(report->registers * defaultSchedule().blockThreads(), 65536);
      }
}
