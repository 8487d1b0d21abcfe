//===- CudaMatmulFixture.cpp - matmul kernels in the emulator -------------===//

#include "CudaMatmulFixture.h"
#include "codegen/CUDA/Hopper/Emit.h"
#include "codegen/CUDA/Lowering.h"
#include "codegen/CUDA/Matmul/Matmul.h"
#include "mlir/Parser/Parser.h"
#include "runtime/Numerics.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::test;

static size_t bytesOf(StringRef element) {
  return element == "f32" ? 4 : element == "i1" ? 1 : 2;
}

Buffer::Buffer(StringRef element, size_t size)
    : element(element), bytes(size * bytesOf(element), '\xff'), values(size) {}

double Buffer::round(double value) const {
  if (element == "f16")
    return mpopt::f16ToF64(mpopt::f64ToF16(value));
  if (element == "bf16")
    return mpopt::bf16ToF64(mpopt::f64ToBF16(value));
  return element == "f32" ? mpopt::f64ToF32(value) : value;
}

void Buffer::write(size_t i, double value) {
  char *at = bytes.data() + i * bytesOf(element);
  if (element == "i1") {
    *at = value != 0;
  } else if (element == "f32") {
    float number = static_cast<float>(value);
    std::memcpy(at, &number, sizeof number);
  } else {
    uint16_t bits =
        element == "f16" ? mpopt::f64ToF16(value) : mpopt::f64ToBF16(value);
    std::memcpy(at, &bits, sizeof bits);
  }
}

void Buffer::fill(unsigned &seed) {
  for (size_t i = 0; i < values.size(); ++i) {
    seed = seed * 1664525u + 1013904223u;
    unsigned random = seed >> 16;
    values[i] = element == "i1" ? random % 2 : int(random % 7) - 3;
    write(i, values[i]);
  }
}

void Buffer::read() {
  for (size_t i = 0; i < values.size(); ++i) {
    const char *at = bytes.data() + i * bytesOf(element);
    if (element == "f32") {
      float number;
      std::memcpy(&number, at, sizeof number);
      values[i] = number;
      continue;
    }
    uint16_t bits;
    std::memcpy(&bits, at, sizeof bits);
    values[i] =
        element == "f16" ? mpopt::f16ToF64(bits) : mpopt::bf16ToF64(bits);
  }
}

CudaMatmulTest::CudaMatmulTest() {
  DialectRegistry registry;
  cuda::registerCudaDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  context.disableMultithreading();
}

static FailureOr<cuda::EmittedKernel> emit(const MatmulKernel &kernel,
                                           StringRef schedule) {
  Location location = cuda::functionOf(kernel).getLoc();
  if (schedule.consume_front("wgmma ")) {
    std::string whyNot;
    const auto &found = *cuda::hopper::findSchedule(schedule);
    auto emitted = cuda::hopper::emit(kernel, found, whyNot);
    if (!emitted)
      return emitError(location) << whyNot;
    return std::move(*emitted);
  }
  auto parsed = cuda::parseSchedule(schedule, location);
  if (failed(parsed))
    return failure();
  return cuda::emitMatmul(kernel, *parsed);
}

bool CudaMatmulTest::compile(StringRef text, StringRef schedule) {
  source = parseSourceString<ModuleOp>(text, &context);
  if (!source)
    return false;
  FailureOr<Kernel> kernel = parseKernel(*source);
  if (failed(kernel))
    return false;
  auto emitted = emit(std::get<MatmulKernel>(*kernel), schedule);
  if (failed(emitted))
    return false;
  module = std::move(emitted->module);
  launch = emitted->launch;
  maps = std::move(emitted->maps);
  return succeeded(cuda::lowerToNVVM(*module, *cuda::findChip("sm_90a")));
}

/// The map as the emulator reads it.
static emulator::TensorMap encode(const ::mp::runtime::TensorMap &map,
                                  void *base, int64_t size) {
  emulator::TensorMap encoded;
  encoded.base = base;
  encoded.rank = map.rank;
  encoded.elementBytes = map.elementBytes();
  encoded.swizzle = emulator::TensorMap::B128;
  uint64_t bytes = map.elementBytes();
  for (int i = 0; i < map.rank; ++i) {
    encoded.sizes[i] = map.extents[i].value(&size);
    encoded.box[i] = map.box[i];
    bytes *= encoded.sizes[i];
    encoded.strides[i] = bytes;
  }
  return encoded;
}

emulator::Launch CudaMatmulTest::makeLaunch(std::vector<Buffer> &arguments,
                                            std::vector<Buffer> &results,
                                            int64_t size,
                                            std::vector<char> &workspace) {
  int64_t blocks = 1;
  for (int i = 0; i < 3; ++i) {
    int64_t extent = launch.grid.extent[i] < 0 ? size : launch.grid.extent[i];
    blocks *=
        llvm::divideCeil(extent * launch.grid.factor[i], launch.grid.tile[i]);
  }
  // Few blocks, so that each goes through several tiles.
  constexpr int64_t kResident = 3;
  if (launch.grid.blocksPerProcessor)
    blocks = std::min(blocks, kResident);
  emulator::Launch result;
  result.grid = {static_cast<unsigned>(blocks)};
  result.block = {launch.block[0]};
  result.dynamicSharedBytes = launch.dynamicSharedBytes;
  for (const ::mp::runtime::TensorMap &map : maps) {
    size_t i = map.buffer, inputs = arguments.size();
    Buffer &buffer = i < inputs ? arguments[i] : results[i - inputs];
    result.args.push_back(
        emulator::Argument::tensorMap(encode(map, buffer.bytes.data(), size)));
  }
  for (Buffer &buffer : arguments)
    result.args.push_back(emulator::Argument::input(buffer.bytes));
  for (Buffer &buffer : results)
    result.args.push_back(emulator::Argument::output(buffer.bytes));
  if (size)
    result.args.push_back(emulator::Argument::scalar(size));
  workspace.assign(launch.workspacePerBlock * blocks, 0);
  if (!workspace.empty())
    result.args.push_back(emulator::Argument::output(workspace));
  return result;
}

void CudaMatmulTest::run(std::vector<Buffer> &arguments,
                         std::vector<Buffer> &results, int64_t size) {
  auto kernel = emulator::Kernel::fromMLIR(module->getOperation());
  ASSERT_TRUE(!!kernel) << llvm::toString(kernel.takeError());
  std::vector<std::vector<char>> before;
  for (auto copies : {emulator::Copies::Late, emulator::Copies::Eager}) {
    for (Buffer &result : results)
      std::fill(result.bytes.begin(), result.bytes.end(), '\xff');
    std::vector<char> workspace;
    emulator::Report report =
        (*kernel)->run(makeLaunch(arguments, results, size, workspace), copies);
    EXPECT_TRUE(report.clean()) << report.text();
    for (const emulator::AccessCost &cost : report.conflicts())
      EXPECT_FALSE(StringRef(cost.location).contains("ldmatrix"))
          << report.text();
    for (size_t i = 0; i < results.size(); ++i) {
      if (before.size() == results.size())
        EXPECT_EQ(before[i], results[i].bytes) << "result " << i;
      else
        before.push_back(results[i].bytes);
      results[i].read();
    }
  }
}

/// What the tail makes of one accumulator, for element (row, column).
static double tailOf(const MatmulShape &shape,
                     const std::vector<Buffer> &arguments, const Buffer &result,
                     double acc, int64_t row, int64_t column, int64_t element) {
  switch (shape.tail) {
  case Tail::Residual: {
    double sum = result.round(acc + arguments[2].values[column]);
    return result.round(sum * arguments[3].values[row] +
                        arguments[4].values[element]);
  }
  case Tail::Mask:
    return arguments[2].values[element] ? result.round(acc + row - column) : 0;
  default:
    return result.round(acc);
  }
}

/// Element (i, j) of a stored matrix of `rows` x `columns`, or of its
/// transpose.
static double at(const Buffer &buffer, int64_t matrix, bool transposed,
                 int64_t i, int64_t j, int64_t rows, int64_t columns) {
  int64_t inMatrix = transposed ? j * rows + i : i * columns + j;
  return buffer.values[matrix * rows * columns + inMatrix];
}

static void compare(const MatmulShape &shape,
                    const std::vector<Buffer> &arguments,
                    const Buffer &result) {
  int64_t element = 0, wrong = 0;
  for (int64_t b = 0; b < shape.batch; ++b)
    for (int64_t i = 0; i < shape.m; ++i)
      for (int64_t j = 0; j < shape.n; ++j, ++element) {
        double acc = 0;
        for (int64_t p = 0; p < shape.k; ++p)
          acc +=
              at(arguments[0], b, shape.lhsTransposed, i, p, shape.m, shape.k) *
              at(arguments[1], b, shape.rhsTransposed, p, j, shape.k, shape.n);
        double expected = tailOf(shape, arguments, result, acc, i, j, element);
        if (expected != result.values[element] && ++wrong < 4)
          ADD_FAILURE() << "(" << b << ", " << i << ", " << j
                        << "): " << result.values[element] << ", not "
                        << expected;
      }
  EXPECT_EQ(wrong, 0);
}

void CudaMatmulTest::check(const MatmulShape &shape, StringRef schedule) {
  ASSERT_TRUE(compile(matmulText(shape), schedule));
  unsigned seed = 7;
  std::vector<Buffer> arguments;
  auto add = [&](StringRef element, int64_t size) {
    arguments.emplace_back(element, size);
    arguments.back().fill(seed);
  };
  int64_t full = shape.batch * shape.m * shape.n;
  add(shape.element, shape.batch * shape.m * shape.k);
  add(shape.element, shape.batch * shape.k * shape.n);
  if (shape.tail == Tail::Residual) {
    add("f32", shape.n);
    add("f32", shape.m);
    add(shape.element, full);
  }
  if (shape.tail == Tail::Mask)
    add("i1", full);
  std::vector<Buffer> results;
  results.emplace_back(shape.tail == Tail::None ? "f32" : shape.element, full);
  int64_t size = shape.dynamic == 'm'   ? shape.m
                 : shape.dynamic == 'k' ? shape.k
                 : shape.dynamic == 'b' ? shape.batch
                                        : 0;
  run(arguments, results, size);
  compare(shape, arguments, results.front());
}
