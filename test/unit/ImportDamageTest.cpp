//===- ImportDamageTest.cpp - truncated and damaged files -----------------===//
//
// Whatever bytes are in a file, loading ends in a module or in one error that
// names the file. A crash ends this program, so finishing is the assertion;
// that most damage is noticed is asserted by number.
//
//===----------------------------------------------------------------------===//

#include "dialect/IR/MPDialect.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "test/unit/ImportFixtures.h"
#include "gtest/gtest.h"

#include <random>

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::test;

static bool isError(const std::string &outcome, StringRef name) {
  bool isFailure = StringRef(outcome).starts_with("error: ");
  if (isFailure) {
    EXPECT_NE(outcome.find(name.str()), std::string::npos) << outcome;
    EXPECT_GT(outcome.size(), name.size() + 12) << outcome;
  }
  return isFailure;
}

static std::string bytecodeText() {
  MLIRContext context;
  auto module = loadBuffer(
      llvm::MemoryBuffer::getMemBufferCopy(programText(), "p"), &context);
  EXPECT_TRUE(bool(module));
  std::string bytes;
  llvm::raw_string_ostream stream(bytes);
  EXPECT_TRUE(succeeded(writeBytecodeToFile(**module, stream)));
  return bytes;
}

/// Loads every prefix shorter than `bytes`; returns how many were accepted.
static size_t acceptedPrefixes(const std::string &bytes, StringRef name,
                               size_t step = 1) {
  size_t accepted = 0;
  for (size_t size = 0; size < bytes.size(); size += step)
    accepted += !isError(load(bytes.substr(0, size), name), name);
  return accepted;
}

/// Loads `rounds` copies with some random bytes changed; returns how many were
/// accepted.
static size_t acceptedFlips(const std::string &bytes, StringRef name,
                            size_t rounds) {
  // The same damage on each run, so that a failure can be repeated.
  std::mt19937 random(20); // NOLINT(bugprone-random-generator-seed)
  auto below = [&](size_t bound) { return random() % bound; };
  size_t accepted = 0;
  for (size_t round = 0; round != rounds; ++round) {
    std::string copy = bytes;
    for (size_t flips = 1 + below(4); flips != 0; --flips)
      copy[below(copy.size())] ^= char(1u << below(8));
    accepted += !isError(load(copy, name), name);
  }
  return accepted;
}

TEST(Damage, EveryPrefixOfAnArchiveIsAnError) {
  EXPECT_EQ(acceptedPrefixes(archiveText(), "cut.pt2"), 0u);
}

TEST(Damage, EveryPrefixOfAProgramIsAnError) {
  EXPECT_EQ(acceptedPrefixes(programText(), "cut.json"), 0u);
}

TEST(Damage, EveryPrefixOfBytecodeIsAnError) {
  std::string bytes = bytecodeText();
  ASSERT_EQ(bytes.substr(0, 2), "ML");
  EXPECT_EQ(acceptedPrefixes(bytes, "cut.mlirbc"), 0u);
}

TEST(Damage, FlippedArchivesAreNoticed) {
  // What the CRC does not cover: weights, padding, fields that nobody reads.
  EXPECT_LT(acceptedFlips(archiveText(), "bad.pt2", 2000), 400u);
}

TEST(Damage, FlippedProgramsEnd) {
  EXPECT_LT(acceptedFlips(programText(), "bad.json", 2000), 1500u);
}

TEST(Damage, FlippedBytecodeEnds) {
  EXPECT_LT(acceptedFlips(bytecodeText(), "bad.mlirbc", 200), 160u);
}

TEST(Damage, FlippedTextEnds) {
  EXPECT_LT(acceptedFlips(load(programText()), "bad.mlir", 500), 300u);
}

TEST(Damage, DeepTextIsRefused) {
  for (char open : {'(', '[', '{', '<'})
    EXPECT_TRUE(isError(load("#a = " + std::string(3000000, open), "deep.mlir"),
                        "deep.mlir"));
}

TEST(Damage, LargeTextLoads) {
  std::string text = "func.func @f(%0: tensor<4xf32>) -> tensor<4xf32> {\n";
  std::string line;
  size_t value = 0;
  while (text.size() < (4u << 20)) {
    line = "  %" + std::to_string(value + 1) +
           " = mp.aten \"aten.relu.default\"(%" + std::to_string(value) +
           ") : (tensor<4xf32>) -> tensor<4xf32>\n";
    text += line;
    ++value;
  }
  text += "  return %" + std::to_string(value) + " : tensor<4xf32>\n}\n";
  EXPECT_FALSE(isError(load(text, "large.mlir"), "large.mlir"));
  // Cut in the middle: one error.
  EXPECT_TRUE(
      isError(load(text.substr(0, text.size() / 2), "half.mlir"), "half.mlir"));
}
