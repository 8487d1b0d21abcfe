//===- ImportTest.cpp - what the loader makes of good and bad files -------===//

#include "dialect/Import/PT2Archive.h"
#include "test/unit/ImportFixtures.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir::mp;
using namespace mlir::mp::test;
using testing::HasSubstr;
using testing::Not;

static std::string replaced(std::string text, const std::string &from,
                            const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

TEST(Program, SignatureCarriesRolesAndNames) {
  std::string text = load(programText());
  EXPECT_THAT(text, HasSubstr("func.func @model(%arg0: tensor<2x4xf32> "
                              "{mp.name = \"fc.weight\", mp.role = "
                              "\"parameter\"}"));
  EXPECT_THAT(text, HasSubstr("%arg1: tensor<?x4xf32> {mp.name = \"x\", "
                              "mp.role = \"input\"}"));
  // The constant input and output have no value.
  EXPECT_THAT(text, Not(HasSubstr("%arg2")));
  EXPECT_THAT(text,
              HasSubstr("-> (tensor<?x2xbf16> {mp.name = \"y\", mp.output "
                        "= \"user_output\"}, index {mp.name = \"n\""));
}

TEST(Program, ArgumentsAreEncoded) {
  std::string text = load(programText());
  EXPECT_THAT(text, HasSubstr("mp.aten \"aten.sym_size.int\"(%arg1) {args = "
                              "{dim = 0 : i64}} : (tensor<?x4xf32>) -> index"));
  // After a missing tensor each tensor is named; %0 is left out.
  EXPECT_THAT(text,
              HasSubstr("(%1, %1, %0) {args = {mask, other = \"%1\", size "
                        "= [\"%2\", -1], value = 0xFFF0000000000000 : "
                        "f64}}"));
}

TEST(Program, AutocastRegionIsInlined) {
  std::string text = load(programText());
  EXPECT_THAT(text, HasSubstr("mp.aten \"aten.linear.default\"(%arg1, %arg0) "
                              "{mp.autocast = \"bf16\"}"));
  EXPECT_THAT(text, Not(HasSubstr("wrap_with_autocast")));
  EXPECT_THAT(load(replaced(programText(),
                            "{\"as_bool\": true}},\n     {\"name"
                            "\": \"\", \"arg\": {\"as_none",
                            "{\"as_bool\": false}},\n     {\"name\": \"\", "
                            "\"arg\": {\"as_none")),
              HasSubstr("mp.autocast = \"off\""));
}

TEST(Program, PlacesBecomeLocations) {
  std::string text = load(programText());
  EXPECT_THAT(text, HasSubstr("loc(\"net.py\":7:0)"));
  EXPECT_THAT(text, HasSubstr("loc(\"fc\"(#loc"));
  EXPECT_THAT(text, HasSubstr("fused<1 : i64>"));
}

TEST(Program, SchemaMajorMustMatch) {
  EXPECT_THAT(load(programText(9, 1)),
              HasSubstr("input: export schema version is 9.1, expected major "
                        "version 8"));
  EXPECT_THAT(load(programText(8, 99)), HasSubstr("func.func @model"));
}

TEST(Program, InPlaceOperatorsAreRefused) {
  for (const char *callee :
       {"aten.relu_.default", "aten.__iand__.Tensor", "aten.add.out"})
    EXPECT_THAT(load(replaced(programText(), "aten.linear.default", callee)),
                HasSubstr("node 'h': " + std::string(callee) +
                          " changes a tensor in place; make the program "
                          "functional before saving it: ep = "
                          "ep.run_decompositions({})"));
  EXPECT_THAT(load(replaced(programText(), "aten.linear.default",
                            "aten.__and__.Tensor")),
              HasSubstr("func.func"));
}

TEST(Program, OtherHigherOrderOpsAreOpaque) {
  std::string text = load(replaced(
      programText(), "higher_order.wrap_with_autocast", "higher_order.cond"));
  EXPECT_THAT(text, HasSubstr("mp.aten effects \"higher_order.cond\""));
  EXPECT_THAT(text, HasSubstr("arg4 = \"@body\""));
}

TEST(Program, UnknownOperatorsHaveEffects) {
  EXPECT_THAT(load(replaced(programText(), "aten.linear.default",
                            "mylib.scale.default")),
              HasSubstr("mp.aten effects \"mylib.scale.default\""));
}

TEST(Program, MistakesAreNamed) {
  std::string good = programText();
  EXPECT_THAT(
      load(replaced(good, "{\"name\": \"b\"}}],\n", "{\"name\": \"c\"}}],\n")),
      HasSubstr("value 'b' is used before it is defined"));
  EXPECT_THAT(load(replaced(good, "\"dtype\": 13", "\"dtype\": 77")),
              HasSubstr("unknown dtype number 77"));
  EXPECT_THAT(load(replaced(good, "{\"as_int\": 2}", "{\"as_int\": -2}")),
              HasSubstr("a size that is no natural number"));
  EXPECT_THAT(
      load(replaced(good, "\"graph\":", "\"graf\":")),
      HasSubstr("input: malformed program: expected an object 'graph'"));
  EXPECT_THAT(
      load(replaced(good, "\"outputs\": [{\"as_tensor\": {\"name\": \"y\"}}, ",
                    "\"outputs\": [{\"as_tensor\": {\"name\": \"z\"}}, ")),
      HasSubstr("output 'z' is not defined"));
  EXPECT_THAT(load(replaced(good, "as_float", "as_riddle")),
              HasSubstr("unknown kind of argument 'as_riddle'"));
}

TEST(Program, DeepJsonIsRefused) {
  EXPECT_THAT(load("{\"a\": " + std::string(2000000, '[')),
              HasSubstr("nested 2000001 levels deep"));
}

//===----------------------------------------------------------------------===//
// Archives
//===----------------------------------------------------------------------===//

TEST(Archive, IsImported) {
  EXPECT_EQ(load(archiveText(), "net.pt2"), load(programText()));
}

TEST(Archive, SharedStorageIsOneRangeAndPicklesAreOpaque) {
  std::string bytes = archiveText();
  auto archive = PT2Archive::open(llvm::MemoryBuffer::getMemBuffer(
      bytes, "net.pt2", /*RequiresNullTerminator=*/false));
  ASSERT_TRUE(bool(archive));
  auto payloads = archive->payloads("model");
  ASSERT_TRUE(bool(payloads));
  ASSERT_EQ(payloads->size(), 3u);
  const PT2Payload &fc = (*payloads)[0], &packed = (*payloads)[1],
                   &tied = (*payloads)[2];
  EXPECT_EQ(fc.name, "fc.weight");
  EXPECT_EQ(fc.bytes, std::string(32, '\1'));
  EXPECT_GE(fc.bytes.data(), bytes.data()); // mapped, not copied
  EXPECT_EQ(fc.bytes.data(), tied.bytes.data());
  EXPECT_TRUE(packed.isOpaque);
  EXPECT_TRUE(packed.bytes.empty());
}

TEST(Archive, SeveralProgramsNeedAName) {
  std::string zip = makeZip({{"r/archive_format", "pt2"},
                             {"r/models/a.json", programText()},
                             {"r/models/b.json", programText()}});
  EXPECT_EQ(load(zip, "two.pt2"), "error: two.pt2: holds several programs: a, "
                                  "b; name one with --model");
  EXPECT_THAT(load(zip, "two.pt2", "b"), HasSubstr("func.func @b"));
  EXPECT_THAT(load(zip, "two.pt2", "c"),
              HasSubstr("no program 'c', only: a, b"));
}

TEST(Archive, Zip64IsRead) {
  EXPECT_THAT(load(makeZip({{"r/archive_format", "pt2"},
                            {"r/models/model.json", programText()}},
                           /*zip64=*/true)),
              HasSubstr("func.func @model"));
}

TEST(Archive, OtherFilesAreNamed) {
  auto only = [](const char *member) {
    return load(makeZip({{member, "x"}}), "x.pt2");
  };
  EXPECT_THAT(only("m/constants.pkl"), HasSubstr("a TorchScript archive"));
  EXPECT_THAT(only("m/data.pkl"), HasSubstr("a torch.save file"));
  EXPECT_THAT(only("serialized_exported_program.json"),
              HasSubstr("before PyTorch 2.7"));
  EXPECT_THAT(only("m/else"), HasSubstr("no member 'archive_format'"));
  EXPECT_THAT(load(makeZip({{"m/archive_format", "zip"}})),
              HasSubstr("archive format is 'zip', expected 'pt2'"));
  EXPECT_THAT(load(makeZip({{"m/archive_format", "pt2"},
                            {"m/data/aotinductor/model/x.so", ""}})),
              HasSubstr("holds no program"));
  EXPECT_EQ(load("", "x.pt2"), "error: x.pt2: not a zip archive");
}

TEST(Archive, CompressedMembersAreRefused) {
  EXPECT_THAT(load(makeZip({{"r/archive_format", "pt2"},
                            {"r/models/model.json", programText(), 8}})),
              HasSubstr("member 'r/models/model.json' is compressed"));
}

TEST(Archive, DamagedMembersAreFound) {
  EXPECT_THAT(load(replaced(archiveText(), "wrap_with", "wrap_wish")),
              HasSubstr("do not match their CRC-32"));
}
