//===- RowsFixture.cpp - row kernels in the emulator ----------------------===//

#include "RowsFixture.h"
#include "RowsText.h"
#include "codegen/CUDA/Lowering.h"
#include "mlir/Parser/Parser.h"
#include "runtime/Numerics.h"
#include "test/emulator/Emulator.h"
#include <cmath>
#include <random>

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::test;

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

namespace {
/// Elements in memory and as numbers.
struct Elements {
  Type type;
  Numbers numbers;
  std::vector<char> bytes;
};
} // namespace

static size_t bytesOf(Type type) { return type.getIntOrFloatBitWidth() / 8; }

template <typename T>
static void put(Elements &elements, size_t i, T value) {
  std::memcpy(elements.bytes.data() + i * sizeof(T), &value, sizeof(T));
}

template <typename T>
static T get(const Elements &elements, size_t i) {
  T value;
  std::memcpy(&value, elements.bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

static void write(Elements &elements, size_t i) {
  double value = elements.numbers[i];
  if (elements.type.isF16())
    put(elements, i, mpopt::f64ToF16(value));
  else if (elements.type.isBF16())
    put(elements, i, mpopt::f64ToBF16(value));
  else if (elements.type.isF32())
    put(elements, i, float(value));
  else
    put(elements, i, int64_t(value));
}

static double read(const Elements &elements, size_t i) {
  if (elements.type.isF16())
    return mpopt::f16ToF64(get<uint16_t>(elements, i));
  if (elements.type.isBF16())
    return mpopt::bf16ToF64(get<uint16_t>(elements, i));
  return get<float>(elements, i);
}

static Elements makeElements(Type type, int64_t rows) {
  auto tensor = cast<RankedTensorType>(type);
  size_t size = 1;
  for (int64_t extent : tensor.getShape())
    size *= ShapedType::isDynamic(extent) ? rows : extent;
  Type element = tensor.getElementType();
  return {element, Numbers(size),
          std::vector<char>(size * bytesOf(element), '\xff')};
}

/// Labels are columns; a row's float is between 1 and 3, so that it can be a
/// statistic of any kind.
static void fill(Elements &elements, bool isOfRow, Data data, int64_t columns,
                 std::mt19937 &random) {
  for (size_t i = 0; i < elements.numbers.size(); ++i) {
    double unit = (random() >> 8) * 0x1p-24;
    double value = isOfRow ? 1 + 2 * unit : 4 * unit - 2;
    if (data == Data::Integer)
      value = std::floor(value * 2);
    if (isa<IntegerType>(elements.type))
      value = random() % columns;
    elements.numbers[i] = roundTo(elements.type, value);
    write(elements, i);
  }
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

RowsTest::RowsTest() {
  DialectRegistry registry;
  cuda::registerCudaDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  context.disableMultithreading();
}

void RowsTest::parse(StringRef family, StringRef element, int64_t columns) {
  std::string text = rowsText(family, element, columns);
  ASSERT_FALSE(text.empty());
  source = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(!!source);
  FailureOr<Kernel> parsed = parseKernel(*source);
  ASSERT_TRUE(succeeded(parsed));
  kernel = std::get<RowKernel>(*parsed);
}

cuda::RowSchedule RowsTest::defaultSchedule() {
  return cuda::chooseRowSchedule(kernel, *planRows(kernel));
}

static emulator::Launch launchOf(const ::mp::runtime::CudaKernel &kernel,
                                 int64_t rows) {
  emulator::Launch launch;
  auto blocks = [&](int i) {
    int64_t extent = kernel.grid.extent[i] < 0 ? rows : kernel.grid.extent[i];
    return unsigned(
        llvm::divideCeil(extent * kernel.grid.factor[i], kernel.grid.tile[i]));
  };
  launch.grid = {blocks(0), blocks(1), blocks(2)};
  launch.block = {kernel.block[0]};
  return launch;
}

/// The distance of neighbouring numbers of a type near `value`.
static double spacing(Type type, double value) {
  int bits = type.isBF16() ? 8 : type.isF16() ? 11 : 24;
  int least = type.isF16() ? -14 : -126;
  int exponent = value == 0 ? least : std::max(least, std::ilogb(value));
  return std::ldexp(1.0, exponent - bits + 1);
}

/// One place of the type, and of the largest result 2^-17 for what f32
/// arithmetic loses; nothing for integers.
static void compare(Elements &result, const Numbers &expected, Data data) {
  double largest = 0;
  for (double value : expected)
    largest = std::max(largest, std::fabs(value));
  int wrong = 0;
  for (size_t i = 0; i < expected.size() && wrong < 4; ++i) {
    double got = read(result, i), want = expected[i];
    double bound = spacing(result.type, want) + largest * 0x1p-17;
    if (data == Data::Integer) {
      want = roundTo(result.type, want);
      bound = 0;
    }
    if (!(std::fabs(got - want) <= bound)) {
      ADD_FAILURE() << "element " << i << ": " << got << ", not " << want;
      ++wrong;
    }
  }
}

void RowsTest::check(int64_t rows, const cuda::RowSchedule &schedule,
                     Data data) {
  auto emitted = cuda::emitRows(kernel, schedule);
  ASSERT_TRUE(succeeded(emitted));
  ASSERT_TRUE(
      succeeded(cuda::lowerToNVVM(*emitted->module, *cuda::findChip("sm_80"))));
  auto machine = emulator::Kernel::fromMLIR(emitted->module->getOperation());
  ASSERT_TRUE(!!machine) << llvm::toString(machine.takeError());

  std::mt19937 random(rows * 31 + kernel.columns);
  std::vector<Elements> arguments, results;
  std::vector<Numbers> numbers;
  for (Type type : kernel.func.getArgumentTypes()) {
    arguments.push_back(makeElements(type, rows));
    auto tensor = cast<RankedTensorType>(type);
    bool isOfRow = tensor.getRank() == 1 && tensor.isDynamicDim(0);
    fill(arguments.back(), isOfRow, data, kernel.columns, random);
    numbers.push_back(arguments.back().numbers);
  }
  for (Type type : kernel.func.getResultTypes())
    results.push_back(makeElements(type, rows));

  emulator::Launch launch = launchOf(emitted->launch, rows);
  for (Elements &argument : arguments)
    launch.args.push_back(emulator::Argument::input(argument.bytes));
  for (Elements &result : results)
    launch.args.push_back(emulator::Argument::output(result.bytes));
  launch.args.push_back(emulator::Argument::scalar(rows));
  std::vector<char> workspace(emitted->launch.workspacePerBlock *
                              launch.grid.count());
  if (!workspace.empty())
    launch.args.push_back(emulator::Argument::output(workspace));
  emulator::Report report = (*machine)->run(launch);
  EXPECT_TRUE(report.clean()) << report.text();
  EXPECT_TRUE(report.conflicts().empty()) << report.text();

  std::vector<Numbers> expected = runReference(kernel, rows, numbers);
  for (auto [i, result] : llvm::enumerate(results)) {
    SCOPED_TRACE(testing::Message() << "result " << i);
    compare(result, expected[i], data);
  }
}

std::string RowsTest::ptxOf(StringRef chip) {
  auto emitted = cuda::emitRows(kernel);
  if (failed(emitted))
    return "";
  cuda::LoweringOptions options;
  if (StringRef(MPOPT_LIBDEVICE) != "")
    options.libdevice.push_back(MPOPT_LIBDEVICE);
  return cuda::compileToPTX(*emitted->module, *cuda::findChip(chip), options)
      .value_or("");
}
