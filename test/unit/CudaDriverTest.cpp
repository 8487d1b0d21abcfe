//===- CudaDriverTest.cpp - loading and launching without a GPU -----------===//

#include "runtime/CUDA/Program.h"
#include "gtest/gtest.h"
#include <dlfcn.h>

using namespace mp::runtime;
using namespace mp::runtime::cuda;

namespace {
class CudaDriverTest : public testing::Test {
protected:
  void SetUp() override {
    library = dlopen(FAKE_CUDA_DRIVER, RTLD_NOW);
    ASSERT_TRUE(library) << dlerror();
    driver = openDriver(FAKE_CUDA_DRIVER, error);
    ASSERT_TRUE(driver) << error;
    function<void()>("fakeClear")();
  }

  template <typename T>
  T *function(const char *name) {
    return reinterpret_cast<T *>(dlsym(library, name));
  }

  void fail(const char *name, int result) {
    function<void(const char *, int)>("fakeFail")(name, result);
  }

  std::string log() { return function<const char *()>("fakeLog")(); }

  std::unique_ptr<Program> load(const CudaKernel &kernel,
                                const char *image = ".version 8.0") {
    CudaImage loaded{kernel, image};
    return Program::load(*driver, 1, &loaded, 1, error);
  }

  void *library = nullptr;
  const Driver *driver = nullptr;
  std::string error;
};
} // namespace

static Stream streamOf(uintptr_t value) {
  return reinterpret_cast<Stream>(static_cast<char *>(nullptr) + value);
}

TEST(CudaGrid, RoundsUpAndTakesSizes) {
  int64_t sizes[] = {130};
  Blocks blocks =
      blocksOf({{-1, 256, 3}, {1, 1, 1}, {128, 128, 1}, false}, sizes);
  EXPECT_EQ(blocks.count[0], 2);
  EXPECT_EQ(blocks.count[1], 2);
  EXPECT_EQ(blocks.count[2], 3);
  blocks = blocksOf({{-1, 256, 3}, {1, 1, 1}, {128, 128, 1}, true}, sizes);
  EXPECT_EQ(blocks.count[0], 12);
  EXPECT_EQ(blocks.count[1], 1);
  EXPECT_EQ(blocks.total(), 12);
  blocks = blocksOf({{-1, 1, 1}, {8, 1, 1}, {128, 1, 1}, false}, sizes);
  EXPECT_EQ(blocks.count[0], 9); // 1040 rows
}

TEST_F(CudaDriverTest, LoadsOnTheDevicesOwnContext) {
  CudaKernel kernel{"k", {}, {128, 1, 1}, 0};
  ASSERT_TRUE(load(kernel)) << error;
  EXPECT_EQ(log(), "cuDeviceGet 1\n"
                   "cuDevicePrimaryCtxRetain 1\n"
                   "cuCtxSetCurrent 0x101\n"
                   "cuModuleLoadDataEx .version 8.0\n"
                   "cuModuleGetFunction k\n"
                   "cuCtxSetCurrent (nil)\n"
                   "cuCtxSetCurrent 0x101\n"
                   "cuModuleUnload\n"
                   "cuCtxSetCurrent (nil)\n");
}

TEST_F(CudaDriverTest, AsksForSharedMemoryBeyondTheStaticLimit) {
  ASSERT_TRUE(load({"k", {}, {128, 1, 1}, 48 << 10})) << error;
  EXPECT_EQ(log().find("cuFuncSetAttribute"), std::string::npos);
  ASSERT_TRUE(load({"k", {}, {128, 1, 1}, 96 << 10})) << error;
  EXPECT_NE(log().find("cuFuncSetAttribute 8 = 98304"), std::string::npos);
}

TEST_F(CudaDriverTest, LaunchesOnTheGivenStream) {
  auto program =
      load({"k", {{-1, 512, 1}, {1, 1, 1}, {128, 128, 1}}, {256, 1, 1}, 65536});
  ASSERT_TRUE(program) << error;
  int64_t sizes[] = {300};
  void *buffers[] = {nullptr, nullptr};
  EXPECT_EQ(program->workspaceBytes(sizes), 0);
  ASSERT_TRUE(
      program->launch({buffers, 2, sizes, 1, nullptr, streamOf(0x77)}, error))
      << error;
  EXPECT_NE(
      log().find("cuLaunchKernel 3x4x1 of 256x1x1 shared 65536 on 0x77\n"),
      std::string::npos)
      << log();
}

// The device has four multiprocessors.
TEST_F(CudaDriverTest, LaunchesNoMoreBlocksThanRunAtOnce) {
  CudaKernel kernel{"k",
                    {{-1, 512, 1}, {1, 1, 1}, {128, 128, 1}, true, 2},
                    {384, 1, 1},
                    1024};
  auto program = load(kernel);
  ASSERT_TRUE(program) << error;
  int64_t few[] = {128}, many[] = {300};
  void *buffers[] = {nullptr, nullptr};
  auto launch = [&](const int64_t *sizes) {
    EXPECT_TRUE(
        program->launch({buffers, 2, sizes, 1, nullptr, streamOf(0x77)}, error))
        << error;
    return log();
  };
  EXPECT_NE(launch(many).find("cuLaunchKernel 8x1x1 of 384x1x1"),
            std::string::npos);
  EXPECT_NE(launch(few).find("cuLaunchKernel 4x1x1 of 384x1x1"),
            std::string::npos);
}

/// What a kernel on the host saw.
struct Seen {
  unsigned blocks;
  void *first, *second;
  int64_t size;
  uint8_t workspace[8];
};
static Seen seen;

static void hostKernel(const unsigned grid[3], void **parameters) {
  seen.blocks = grid[0];
  seen.first = *static_cast<void **>(parameters[0]);
  seen.second = *static_cast<void **>(parameters[1]);
  seen.size = *static_cast<int64_t *>(parameters[2]);
  auto *workspace = *static_cast<uint8_t **>(parameters[3]);
  std::copy(workspace, workspace + 8, seen.workspace);
}

TEST_F(CudaDriverTest, PassesBuffersSizesAndZeroedWorkspace) {
  char image[32];
  std::snprintf(image, sizeof image, "host:%llx",
                (unsigned long long)(uintptr_t)&hostKernel);
  CudaKernel kernel{
      "k", {{-1, 2, 1}, {1, 1, 1}, {4, 1, 1}, true}, {32, 1, 1}, 0};
  kernel.workspacePerBlock = 1;
  kernel.workspaceBytes = 2;
  auto program = load(kernel, image);
  ASSERT_TRUE(program) << error;
  int64_t sizes[] = {9};
  int a, b;
  void *buffers[] = {&a, &b};
  uint8_t workspace[9];
  std::fill(std::begin(workspace), std::end(workspace), 0xAA);
  ASSERT_EQ(program->workspaceBytes(sizes), 8); // 3 x 2 blocks, and 2
  ASSERT_TRUE(
      program->launch({buffers, 2, sizes, 1, workspace, streamOf(1)}, error))
      << error;
  EXPECT_EQ(seen.blocks, 6u);
  EXPECT_EQ(seen.first, &a);
  EXPECT_EQ(seen.second, &b);
  EXPECT_EQ(seen.size, 9);
  for (uint8_t byte : seen.workspace)
    EXPECT_EQ(byte, 0);
  EXPECT_EQ(workspace[8], 0xAA);
}

static uint64_t seenAddress;

static void mappedKernel(const unsigned grid[3], void **parameters) {
  seenAddress = *static_cast<uint64_t *>(parameters[0]);
  seen.first = *static_cast<void **>(parameters[1]);
}

TEST_F(CudaDriverTest, PassesTensorMapsOfTheBuffersFirst) {
  char image[32];
  std::snprintf(image, sizeof image, "host:%llx",
                (unsigned long long)(uintptr_t)&mappedKernel);
  CudaKernel kernel{"k", {}, {128, 1, 1}, 0};
  std::unique_ptr<Program> program;
  {
    TensorMap map;
    map.buffer = 1;
    map.element = TensorMap::Element::BF16;
    map.extents[0] = {72, -1};
    map.extents[1] = {16, 0};
    map.box[0] = 64;
    map.box[1] = 128;
    kernel.maps = &map;
    kernel.mapCount = 1;
    program = load(kernel, image);
    ASSERT_TRUE(program) << error;
    map = {}; // the program keeps its own
  }
  int64_t sizes[] = {3};
  int a, b;
  void *buffers[] = {&a, &b};
  ASSERT_TRUE(program->launch({buffers, 2, sizes, 1, nullptr, nullptr}, error))
      << error;
  EXPECT_NE(log().find("cuTensorMapEncodeTiled 1 x 48x72 rows of 144 bytes, "
                       "box 128x64, 9 0 3 0\n"),
            std::string::npos)
      << log();
  EXPECT_EQ(seenAddress, reinterpret_cast<uint64_t>(&b));
  EXPECT_EQ(seen.first, &a);
}

TEST_F(CudaDriverTest, SaysWhatTheDriverSays) {
  fail("cuModuleLoadDataEx", 218);
  EXPECT_FALSE(load({"k", {}}));
  EXPECT_EQ(error, "cuModuleLoadDataEx failed: CUDA_ERROR_FAKE (218) as the "
                   "test wants it\nptxas: line 1: bad");
  fail("cuFuncSetAttribute", 1);
  EXPECT_FALSE(load({"k", {}, {32, 1, 1}, 300 << 10}));
  EXPECT_NE(error.find("setting the shared memory of k to 307200 bytes failed"),
            std::string::npos)
      << error;
  auto program = load({"k", {}});
  fail("cuLaunchKernel", 700);
  EXPECT_FALSE(
      program->launch({nullptr, 0, nullptr, 0, nullptr, nullptr}, error));
  EXPECT_NE(error.find("cuLaunchKernel of k failed"), std::string::npos);
}

TEST_F(CudaDriverTest, RefusesGridsThatDoNotExist) {
  auto program =
      load({"k", {{1, 65536, 1}, {1, 1, 1}, {1, 1, 1}}, {32, 1, 1}, 0});
  EXPECT_FALSE(
      program->launch({nullptr, 0, nullptr, 0, nullptr, nullptr}, error));
  EXPECT_EQ(error, "kernel k needs more blocks than a grid may have");
}

TEST_F(CudaDriverTest, RefusesEmptyTiles) {
  EXPECT_FALSE(load({"k", {{1, 1, 1}, {1, 1, 1}, {8, 8, 0}}, {32, 1, 1}, 0}));
  EXPECT_EQ(error, "kernel k has a tile of no extent");
}

TEST_F(CudaDriverTest, KnowsWhenThereIsNothingToCompute) {
  auto program = load({"k", {{-1, 4, 1}, {1, 1, 1}, {8, 1, 1}}, {32, 1, 1}, 0});
  int64_t none[] = {0}, some[] = {1};
  EXPECT_TRUE(program->isEmpty(none));
  EXPECT_FALSE(program->isEmpty(some));
}

TEST_F(CudaDriverTest, NamesTheArchitecture) {
  EXPECT_EQ(architectureOf(*driver, 0, error), "sm_90");
}

TEST(CudaDriver, IsMissedWithAHint) {
  std::string error;
  EXPECT_FALSE(openDriver("libthere-is-none.so", error));
  EXPECT_NE(error.find("cannot open the CUDA driver"), std::string::npos);
  EXPECT_NE(error.find("install the NVIDIA driver"), std::string::npos);
  // A library that is no driver.
  EXPECT_FALSE(openDriver("libm.so.6", error));
  EXPECT_EQ(error, "the CUDA driver has no cuInit; update the NVIDIA driver");
}
