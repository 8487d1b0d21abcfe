//===- CpuRowsFixture.cpp - row kernels on this machine -------------------===//

#include "CpuRowsFixture.h"
#include "RowsReference.h"
#include "RowsText.h"
#include "codegen/CPU/Jit.h"
#include "codegen/Reference/KernelInterpreter.h"
#include "runtime/Numerics.h"
#include <cmath>
#include <random>

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::test;
using ::mp::runtime::CpuKernel;

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static size_t bytesOf(Type type) {
  return llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
}

static uint64_t bitsOf(const Tensor &tensor, int64_t i) {
  if (tensor.element.isF16())
    return mpopt::f64ToF16(tensor.floats[i]);
  if (tensor.element.isBF16())
    return mpopt::f64ToBF16(tensor.floats[i]);
  if (tensor.element.isF32())
    return mpopt::bitsOf(mpopt::f64ToF32(tensor.floats[i]));
  return uint64_t(tensor.ints[i]);
}

static void setBits(Tensor &tensor, int64_t i, uint64_t bits) {
  if (tensor.element.isF16())
    tensor.floats[i] = mpopt::f16ToF64(uint16_t(bits));
  else if (tensor.element.isBF16())
    tensor.floats[i] = mpopt::bf16ToF64(uint16_t(bits));
  else if (tensor.element.isF32())
    tensor.floats[i] = mpopt::f32ToF64(mpopt::floatOf(uint32_t(bits)));
  else
    tensor.ints[i] = llvm::SignExtend64(
        bits, std::max(8u, unsigned(bytesOf(tensor.element)) * 8));
}

namespace {
/// A tensor in memory, at an address that is aligned for one element only,
/// between bytes that must stay.
class Memory {
public:
  explicit Memory(const Tensor &tensor)
      : size(bytesOf(tensor.element)),
        bytes(2 * kGuard + size_t(tensor.numElements()) * size, kMark) {
    for (int64_t i = 0, e = tensor.numElements(); i != e; ++i) {
      uint64_t bits = bitsOf(tensor, i);
      std::memcpy(data() + i * int64_t(size), &bits, size);
    }
  }
  char *data() { return bytes.data() + kGuard + size; }
  void read(Tensor &tensor) {
    for (int64_t i = 0, e = tensor.numElements(); i != e; ++i) {
      uint64_t bits = 0;
      std::memcpy(&bits, data() + i * int64_t(size), size);
      setBits(tensor, i, bits);
    }
  }
  bool isIntact(int64_t elements) {
    auto isMark = [](char c) { return c == kMark; };
    return std::all_of(bytes.data(), data(), isMark) &&
           std::all_of(data() + elements * int64_t(size),
                       bytes.data() + bytes.size(), isMark);
  }

private:
  static constexpr size_t kGuard = 128;
  static constexpr char kMark = '\x5a';

  size_t size;
  std::vector<char> bytes;
};
} // namespace

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

void CpuRows::parse(const std::string &given) {
  text = given;
  source = std::make_unique<KernelText>(text);
  llvm::Expected<Kernel> parsed = source->parse();
  ASSERT_TRUE(bool(parsed)) << llvm::toString(parsed.takeError());
  kernel = std::get<RowKernel>(*parsed);
  columns = kernel.columns;
}

void CpuRows::parse(StringRef family, StringRef element, int64_t columns) {
  std::string found = rowsText(family, element, columns);
  ASSERT_FALSE(found.empty()) << family.str();
  parse(found);
}

std::vector<std::string> CpuRows::isas() {
  llvm::Expected<cpu::Jit &> jit = cpu::Jit::get();
  EXPECT_TRUE(bool(jit));
  std::vector<std::string> found;
  for (const char *isa : {"portable", "avx2", "avx512"})
    if (jit->findTarget(isa))
      found.emplace_back(isa);
  return found;
}

static Tensor zeros(Type type, int64_t rows) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  for (int64_t &extent : shape)
    extent = ShapedType::isDynamic(extent) ? rows : extent;
  return Tensor(tensor.getElementType(), shape);
}

Tensors CpuRows::makeInputs(int64_t rows, Data data) {
  std::mt19937 random(uint32_t(rows * 31 + columns));
  Tensors inputs;
  for (Type type : kernel.func.getArgumentTypes()) {
    Tensor &input = inputs.emplace_back(zeros(type, rows));
    auto tensor = cast<RankedTensorType>(type);
    bool isOfRow = tensor.getRank() == 1 && tensor.isDynamicDim(0);
    for (int64_t i = 0, e = input.numElements(); i != e; ++i) {
      double unit = (random() >> 8) * 0x1p-24;
      double value = isOfRow ? 1 + 2 * unit : 4 * unit - 2;
      if (data == Data::Integer)
        value = std::floor(value * 2);
      if (input.isFloat())
        input.set(i, value);
      else
        input.setInt(i, int64_t(random() % uint64_t(columns)));
    }
  }
  return inputs;
}

static void runTasks(const CpuKernel &compiled, int32_t phase,
                     void *const *buffers, int64_t rows, void *scratch,
                     Tasks order) {
  int64_t tasks = compiled.tasks(phase, &rows, 1);
  if (order == Tasks::AtOnce) {
    if (tasks != 0)
      compiled.run(phase, 0, tasks, buffers, &rows, scratch, 1);
    return;
  }
  EXPECT_EQ(compiled.tasks(phase, &rows, 7), tasks);
  for (int64_t task = tasks; task-- > 0;)
    compiled.run(phase, task, task + 1, buffers, &rows, scratch, 7);
}

Tensors CpuRows::run(const Tensors &inputs, int64_t rows, Tasks tasks) {
  llvm::Expected<const CpuKernel *> compiled =
      cpu::compileCpuKernel(text, options);
  EXPECT_TRUE(bool(compiled)) << llvm::toString(compiled.takeError());
  if (!compiled)
    return {};
  std::vector<Memory> memory(inputs.begin(), inputs.end());
  Tensors results;
  for (Type type : kernel.func.getResultTypes()) {
    results.push_back(zeros(type, rows));
    memory.emplace_back(results.back());
  }
  std::vector<void *> buffers;
  buffers.reserve(memory.size());
  for (Memory &each : memory)
    buffers.push_back(each.data());
  int64_t bytes = (*compiled)->scratchBytes(&rows, 1);
  std::unique_ptr<void, void (*)(void *)> scratch(
      std::aligned_alloc(64, size_t(bytes + 127) / 64 * 64), std::free);
  std::memset(scratch.get(), 0xff, size_t(bytes)); // NaN
  for (int32_t phase = 0; phase != (*compiled)->phases; ++phase)
    runTasks(**compiled, phase, buffers.data(), rows, scratch.get(), tasks);
  for (auto [i, input] : llvm::enumerate(inputs))
    EXPECT_TRUE(memory[i].isIntact(input.numElements())) << "argument " << i;
  for (auto [i, result] : llvm::enumerate(results)) {
    Memory &each = memory[inputs.size() + i];
    each.read(result);
    EXPECT_TRUE(each.isIntact(result.numElements())) << "result " << i;
  }
  return results;
}

Tensors CpuRows::interpret(const Tensors &inputs) {
  auto results = reference::evaluateKernel(kernel.func, inputs);
  EXPECT_TRUE(bool(results)) << llvm::toString(results.takeError());
  return results ? *results : Tensors();
}

//===----------------------------------------------------------------------===//
// Comparisons
//===----------------------------------------------------------------------===//

/// The distance of neighbouring numbers of a type near `value`.
static double spacing(Type type, double value) {
  int bits = type.isBF16() ? 8 : type.isF16() ? 11 : 24;
  int least = type.isF16() ? -14 : -126;
  int exponent = value == 0 ? least : std::max(least, std::ilogb(value));
  return std::ldexp(1.0, exponent - bits + 1);
}

static void compare(const Tensor &result, const Numbers &expected) {
  double largest = 0;
  for (double value : expected)
    largest = std::max(largest, std::fabs(value));
  ASSERT_EQ(size_t(result.numElements()), expected.size());
  for (size_t i = 0; i != expected.size(); ++i) {
    double bound = spacing(result.element, expected[i]) + largest * 0x1p-17;
    ASSERT_LE(std::fabs(result.floats[i] - expected[i]), bound)
        << "element " << i << ": " << result.floats[i] << ", not "
        << expected[i];
  }
}

void CpuRows::checkBound(const Tensors &inputs, const Tensors &results,
                         int64_t rows) {
  std::vector<Numbers> numbers;
  for (const Tensor &input : inputs) {
    Numbers &each = numbers.emplace_back();
    for (int64_t i = 0, e = input.numElements(); i != e; ++i)
      each.push_back(input.number(i));
  }
  std::vector<Numbers> expected = runReference(kernel, rows, numbers);
  ASSERT_EQ(results.size(), expected.size());
  for (auto [i, result] : llvm::enumerate(results)) {
    SCOPED_TRACE("result " + std::to_string(i));
    compare(result, expected[i]);
  }
}

void CpuRows::checkBound(int64_t rows) {
  Tensors inputs = makeInputs(rows, Data::Real);
  checkBound(inputs, run(inputs, rows), rows);
}

void CpuRows::checkExact(const Tensors &inputs, int64_t rows) {
  Tensors results = run(inputs, rows), expected = interpret(inputs);
  ASSERT_EQ(results.size(), expected.size());
  for (auto [i, result] : llvm::enumerate(results)) {
    int64_t at = reference::firstDifference(expected[i], result);
    EXPECT_LT(at, 0) << "result " << i << " at " << at << ": "
                     << result.number(at) << ", not " << expected[i].number(at);
  }
}
