//===- CpuRowsTest.cpp - row kernels on the CPU ---------------------------===//
//
// Families, types, widths and instruction sets, against double precision and,
// where no order and no function matters, against the interpreter's bits.
//
//===----------------------------------------------------------------------===//

#include "CpuRowsFixture.h"
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

static void expectSameBits(const Tensors &left, const Tensors &right) {
  ASSERT_EQ(left.size(), right.size());
  for (size_t i = 0; i != left.size(); ++i)
    EXPECT_LT(reference::firstDifference(left[i], right[i]), 0)
        << "result " << i;
}

TEST_F(CpuRows, FamiliesAndTypes) {
  for (StringRef family : rowFamilies())
    for (StringRef element : {"bf16", "f16", "f32"}) {
      SCOPED_TRACE(traceOf(family, element, 72, 5));
      parse(family, element, 72);
      checkBound(5);
    }
}

// Sums have one order, and functions one polynomial, everywhere.
TEST_F(CpuRows, AllInstructionsGiveTheSameBits) {
  ASSERT_FALSE(isas().empty());
  for (StringRef family :
       {"cross-entropy", "layer-norm", "layer-norm-backward", "softmax"})
    for (StringRef element : {"bf16", "f16", "f32"}) {
      SCOPED_TRACE(traceOf(family, element, 107, 3));
      parse(family, element, 107);
      Tensors inputs = makeInputs(3, Data::Real);
      options.isa = "";
      Tensors best = run(inputs, 3);
      checkBound(inputs, best, 3);
      for (const std::string &isa : isas()) {
        SCOPED_TRACE(isa);
        options.isa = isa;
        expectSameBits(run(inputs, 3), best);
      }
    }
}

// Rows shorter than a vector, odd ones, those of several loops' vectors.
TEST_F(CpuRows, Widths) {
  for (int64_t columns : {1, 7, 16, 33, 64, 100, 768, 1000, 4096})
    for (StringRef family :
         {"layer-norm", "layer-norm-backward", "cross-entropy"}) {
      SCOPED_TRACE(traceOf(family, "bf16", columns, 3));
      parse(family, "bf16", columns);
      checkBound(3);
    }
}

// Too long for a buffer on the stack: elements are made again.
TEST_F(CpuRows, LongRows) {
  for (StringRef family : {"softmax", "layer-norm-backward", "cross-entropy"}) {
    SCOPED_TRACE(traceOf(family, "bf16", 50257, 2));
    parse(family, "bf16", 50257);
    checkBound(2);
  }
}

TEST_F(CpuRows, IntegersAreExact) {
  for (StringRef element : {"bf16", "f16", "f32"})
    for (int64_t columns : {9, 96, 500})
      for (StringRef family : {"column-sum", "softmax-backward"}) {
        SCOPED_TRACE(traceOf(family, element, columns, 40));
        parse(family, element, columns);
        checkExact(makeInputs(40, Data::Integer), 40);
      }
}

// From one block of rows to more than are added up at a time; none at all.
TEST_F(CpuRows, ColumnSumsOfManyRows) {
  for (int64_t rows : {0, 1, 3, 15, 16, 17, 64, 600, 1100, 2050}) {
    SCOPED_TRACE(traceOf("column-sum", "bf16", 72, rows));
    parse("column-sum", "bf16", 72);
    checkExact(makeInputs(rows, Data::Integer), rows);
  }
  parse("column-sum", "f16", 1100);
  checkExact(makeInputs(70, Data::Integer), 70);
  parse("layer-norm-backward", "f16", 40);
  checkBound(650);
}

TEST_F(CpuRows, NoRowsWriteNothingButColumnSums) {
  for (StringRef family : rowFamilies()) {
    SCOPED_TRACE(family.str());
    parse(family, "bf16", 72);
    for (const Tensor &result : run(makeInputs(0, Data::Real), 0))
      for (double value : result.floats)
        EXPECT_EQ(value, 0);
  }
}

// Which thread runs which task, and when, does not matter.
TEST_F(CpuRows, TasksAreIndependent) {
  for (StringRef family : rowFamilies()) {
    SCOPED_TRACE(family.str());
    parse(family, "bf16", 1030);
    Tensors inputs = makeInputs(50, Data::Real);
    Tensors forward = run(inputs, 50);
    expectSameBits(run(inputs, 50, Tasks::OneByOneBackwards), forward);
  }
}

TEST_F(CpuRows, RandomShapes) {
  std::mt19937 random(5); // NOLINT(bugprone-random-generator-seed)
  for (int i = 0; i < 40; ++i) {
    StringRef family = rowFamilies()[random() % rowFamilies().size()];
    StringRef element = random() % 2 ? "bf16" : "f16";
    int64_t columns = 1 + int64_t(random() % (random() % 2 ? 600 : 64));
    int64_t rows = 1 + int64_t(random() % 80);
    SCOPED_TRACE(traceOf(family, element, columns, rows));
    parse(family, element, columns);
    checkBound(rows);
  }
}

TEST_F(CpuRows, ErrorsNameTheInstructions) {
  parse("softmax", "bf16", 16);
  options.isa = "mmx";
  auto compiled =
      cpu::compileCpuKernel(rowsText("softmax", "bf16", 16), options);
  ASSERT_FALSE(bool(compiled));
  EXPECT_EQ(llvm::toString(compiled.takeError()), "this machine has no 'mmx'");
}
