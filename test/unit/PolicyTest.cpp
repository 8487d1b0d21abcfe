//===- PolicyTest.cpp - patterns against a definition, reading ------------===//

#include "passes/Policy/Policy.h"
#include "gtest/gtest.h"

#include <random>

using namespace mlir::mp;

//===----------------------------------------------------------------------===//
// What a pattern means, as plainly as possible
//===----------------------------------------------------------------------===//

using Names = llvm::ArrayRef<llvm::StringRef>;

/// `*` and `?` over the letters of one segment.
static bool segmentMeans(llvm::StringRef glob, llvm::StringRef name) {
  if (glob.empty())
    return name.empty();
  if (glob[0] == '*')
    return segmentMeans(glob.drop_front(), name) ||
           (!name.empty() && segmentMeans(glob, name.drop_front()));
  return !name.empty() && (glob[0] == '?' || glob[0] == name[0]) &&
         segmentMeans(glob.drop_front(), name.drop_front());
}

/// `**` over segments.
static bool pathMeans(Names globs, Names names) {
  if (globs.empty())
    return names.empty();
  if (globs[0] == "**")
    return pathMeans(globs.drop_front(), names) ||
           (!names.empty() && pathMeans(globs, names.drop_front()));
  return !names.empty() && segmentMeans(globs[0], names[0]) &&
         pathMeans(globs.drop_front(), names.drop_front());
}

namespace {
/// Short paths and patterns over few letters, so that many match.
class RandomPath {
public:
  explicit RandomPath(unsigned seed) : engine(seed) {}

  std::string path() { return join("ab", 1, 5, false); }
  std::string glob() { return join("ab*?", 1, 5, true); }

private:
  size_t below(size_t bound) { return engine() % bound; }

  std::string join(llvm::StringRef letters, size_t least, size_t most,
                   bool hasStars) {
    std::string text;
    for (size_t i = 0, end = least + below(most - least + 1); i != end; ++i) {
      text += i ? "." : "";
      if (hasStars && below(3) == 0)
        text += "**";
      else
        text += segment(letters);
    }
    return text;
  }

  /// Without two stars in a row, which is no segment.
  std::string segment(llvm::StringRef letters) {
    std::string text(1, letters[below(letters.size())]);
    while (below(2)) {
      char letter = letters[below(letters.size())];
      if (letter != '*' || text.back() != '*')
        text += letter;
    }
    return text;
  }

  std::mt19937 engine;
};
} // namespace

static llvm::SmallVector<llvm::StringRef> split(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, '.');
  return parts;
}

TEST(ModuleGlob, MeansWhatItsDefinitionSays) {
  RandomPath random(1);
  int matches = 0, misses = 0;
  for (int i = 0; i != 20000; ++i) {
    std::string glob = random.glob(), path = random.path();
    llvm::Expected<ModuleGlob> parsed = ModuleGlob::create(glob);
    ASSERT_TRUE(bool(parsed)) << glob;
    bool expected = pathMeans(split(glob), split(path));
    ASSERT_EQ(parsed->match(path), expected) << glob << " on " << path;
    ++(expected ? matches : misses);
  }
  EXPECT_GT(matches, 2000);
  EXPECT_GT(misses, 2000);
}

TEST(ModuleGlob, TakesTimeThatGrowsSlowly) {
  // Trying every split at every `**` would take 2^60 steps.
  std::string glob, path;
  for (int i = 0; i != 60; ++i) {
    glob += "**.a.";
    path += "a.a.";
  }
  llvm::Expected<ModuleGlob> parsed = ModuleGlob::create(glob + "b");
  ASSERT_TRUE(bool(parsed));
  EXPECT_FALSE(parsed->match(path + "c"));
  EXPECT_TRUE(parsed->match(path + "b"));
}

TEST(ModuleGlob, SurvivesItsSource) {
  auto make = [] {
    std::string text = "layers.*.mlp";
    return llvm::cantFail(ModuleGlob::create(text));
  };
  ModuleGlob copy = make(), moved = std::move(copy);
  EXPECT_TRUE(moved.match("layers.10.mlp"));
  EXPECT_FALSE(moved.match("layers.10.mlp.fc"));
  EXPECT_EQ(moved.text(), "layers.*.mlp");
}

TEST(ModuleGlob, MatchesTheModelItself) {
  EXPECT_TRUE(llvm::cantFail(ModuleGlob::create("**")).match(""));
  EXPECT_FALSE(llvm::cantFail(ModuleGlob::create("*")).match(""));
  EXPECT_FALSE(llvm::cantFail(ModuleGlob::create("**.a")).match(""));
}

TEST(OperatorGlob, LooksAtTheNameWithAndWithoutOverload) {
  auto matches = [](llvm::StringRef glob, llvm::StringRef callee) {
    return llvm::cantFail(OperatorGlob::create(glob)).match(callee);
  };
  EXPECT_TRUE(matches("aten.sum", "aten.sum.dim_IntList"));
  EXPECT_TRUE(matches("aten.sum.dim_IntList", "aten.sum.dim_IntList"));
  EXPECT_FALSE(matches("aten.sum.default", "aten.sum.dim_IntList"));
  EXPECT_TRUE(matches("*mm", "aten.addmm.default"));
  EXPECT_FALSE(matches("aten.su", "aten.sum.default"));
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

TEST(Policy, ReadsEveryKey) {
  auto policy = parsePolicy(R"(
version = 1
level = "relaxed"
epsilon = 1
[groups]
enable = ["ffn", "residual"]
[[rule]]
module = "a.*"
op = "aten.mm"
line = "net.py:3-5"
dtype = "half_is_no_type"
precision = "fp32"
)",
                            "p.toml");
  EXPECT_FALSE(bool(policy));
  EXPECT_NE(toString(policy.takeError()).find("p.toml:11:9"),
            std::string::npos);

  policy = parsePolicy(R"(
version = 1
level = "relaxed"
epsilon = 1
[groups]
enable = ["ffn", "residual"]
[[rule]]
module = "a.*"
op = "aten.mm"
line = "net.py:3-5"
dtype = "bfloat16"
name = "mm$"
precision = "half"
where = "operands"
why = "fast"
[[op]]
name = "lib.f"
kind = "gather"
)",
                       "dir/p.toml");
  ASSERT_TRUE(bool(policy)) << toString(policy.takeError());
  EXPECT_EQ(policy->level, "relaxed");
  EXPECT_EQ(policy->epsilon, 1.0);
  EXPECT_TRUE(policy->isEnabled(Group::FFN));
  EXPECT_FALSE(policy->isEnabled(Group::Attention));
  ASSERT_EQ(policy->rules.size(), 1u);
  const PolicyRule &rule = policy->rules[0];
  EXPECT_EQ(rule.module->text(), "a.*");
  EXPECT_EQ(rule.file, "net.py");
  EXPECT_EQ(rule.firstLine, 3u);
  EXPECT_EQ(rule.lastLine, 5u);
  EXPECT_EQ(rule.dtype, "bf16");
  EXPECT_EQ(rule.precision, PinFormat::half);
  EXPECT_EQ(rule.where, PinWhere::operands);
  EXPECT_EQ(rule.why, "fast");
  EXPECT_EQ(policy->placeOf(rule.position), "p.toml:7");
  ASSERT_EQ(policy->ops.size(), 1u);
  EXPECT_EQ(policy->ops[0].kind, OpKind::Gather);
}

TEST(Policy, DigestIsThatOfTheText) {
  auto digest = [](llvm::StringRef text) {
    return llvm::cantFail(parsePolicy(text, "p")).digest();
  };
  // printf 'version = 1\n' | sha256sum
  EXPECT_EQ(digest("version = 1\n"),
            "dbab12665d98aef021ba64953c61b0ed8a908cfb56a1c01e2fcb4b052b71a2a1");
  EXPECT_NE(digest("version = 1\n"), digest("version = 1\n# \n"));
}

TEST(Policy, EveryTruncationIsReadOrRefused) {
  const std::string text = "version = 1\n[[rule]]\nmodule = \"a.**\"\n"
                           "line = 'f.py:1'\nprecision = 'fp32'\n"
                           "[groups]\nenable = ['ffn']\n";
  int good = 0;
  for (size_t size = 0; size <= text.size(); ++size) {
    auto policy = parsePolicy(llvm::StringRef(text).take_front(size), "p");
    good += bool(policy);
    if (!policy)
      EXPECT_EQ(toString(policy.takeError()).rfind("p:", 0), 0u);
  }
  EXPECT_GT(good, 3);
}
