//===- Plan.cpp - how a matmul becomes a wgmma kernel ---------------------===//

#include "codegen/CUDA/Hopper/Plan.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;
using namespace mlir::mp::cuda::hopper;
using ::mp::runtime::TensorMap;

static TensorMap::Element mapElement(Type type) {
  if (type.isF16())
    return TensorMap::Element::F16;
  return type.isBF16() ? TensorMap::Element::BF16 : TensorMap::Element::F32;
}

namespace {
class Planner {
public:
  Planner(const MatmulKernel &kernel, const Schedule &schedule,
          std::string &whyNot)
      : kernel(kernel), whyNot(whyNot) {
    plan.schedule = &schedule;
  }

  FailureOr<Plan> run();

private:
  LogicalResult refuse(const Twine &reason) {
    whyNot = reason.str();
    return failure();
  }
  LogicalResult checkKernel();
  LogicalResult addOperand(const MatmulOperand &operand, bool isLhs);
  void addResult(unsigned result, std::optional<unsigned> yielded,
                 Type element);
  std::optional<unsigned> addResultMap(const ResultPlan &result);
  void addResults();
  LogicalResult shareMemory();

  const MatmulKernel &kernel;
  std::string &whyNot;
  Plan plan;
};
} // namespace

LogicalResult Planner::checkKernel() {
  if (!kernel.lhs.element.isF16() && !kernel.lhs.element.isBF16())
    return refuse("operands are not f16 or bf16");
  if (!kernel.sums.empty())
    return refuse("sums beside the contraction");
  for (int64_t size : {kernel.batch, kernel.m, kernel.n, kernel.k})
    if (size == 0 || size > INT32_MAX)
      return refuse("extents are zero or need more than 31 bits");
  if (ShapedType::isDynamic(kernel.n))
    return refuse("the number of columns is dynamic");
  return success();
}

LogicalResult Planner::addOperand(const MatmulOperand &operand, bool isLhs) {
  OperandPlan &layout = isLhs ? plan.lhs : plan.rhs;
  // lhs [m, k] and rhs [n, k] have k inside.
  layout.isKMajor = operand.transposed != isLhs;
  layout.isBatched = operand.batched;
  layout.tile = isLhs ? plan.schedule->blockM() : plan.schedule->blockN;
  Extent row = isLhs ? plan.m : plan.n;
  Extent inner = layout.isKMajor ? plan.k : row;
  if (inner.size >= 0)
    return refuse("the length of an operand's rows is dynamic");
  if (inner.factor * 2 % 16)
    return refuse(Twine("rows of ") + (isLhs ? "lhs" : "rhs") + " have " +
                  Twine(inner.factor * 2) +
                  " bytes, which is no multiple of 16");
  TensorMap map;
  map.buffer = operand.argument;
  map.element = mapElement(operand.element);
  map.rank = operand.batched ? 3 : 2;
  map.extents[0] = inner;
  map.extents[1] = layout.isKMajor ? row : plan.k;
  map.extents[2] = plan.batch;
  map.box[0] = kStep;
  map.box[1] = layout.isKMajor ? layout.tile : kStep;
  plan.maps.push_back(map);
  return success();
}

/// A map for a result whose rows a tensor map can describe.
std::optional<unsigned> Planner::addResultMap(const ResultPlan &result) {
  Type element = result.element;
  int64_t bytes = result.elementBytes();
  if (!isa<FloatType>(element) || plan.n.factor * bytes % 16)
    return std::nullopt;
  TensorMap map;
  func::FuncOp func = kernel.func;
  map.buffer = func.getNumArguments() + result.result;
  map.element = mapElement(element);
  map.rank = plan.isBatchedKernel() ? 3 : 2;
  map.extents[0] = plan.n;
  map.extents[1] = plan.m;
  map.extents[2] = plan.batch;
  map.box[0] = kSwizzleBytes / bytes;
  map.box[1] = kRowsOfWgmma;
  plan.stagedBytes += result.boxes() * kBoxBytes;
  plan.maps.push_back(map);
  return plan.maps.size() - 1;
}

void Planner::addResult(unsigned number, std::optional<unsigned> yielded,
                        Type element) {
  if (element.getIntOrFloatBitWidth() == 1)
    element = IntegerType::get(element.getContext(), 8);
  ResultPlan result{number, yielded, element, std::nullopt, plan.stagedBytes};
  result.map = addResultMap(result);
  plan.results.push_back(result);
}

void Planner::addResults() {
  func::FuncOp func = kernel.func;
  for (const KernelResult &result : kernel.results)
    addResult(result.result, result.yielded, result.element);
  if (kernel.accumulatorResult)
    addResult(*kernel.accumulatorResult, std::nullopt,
              Float32Type::get(func->getContext()));
}

/// Two staging buffers, so that one is stored while the next is filled, unless
/// that leaves too few stages.
LogicalResult Planner::shareMemory() {
  constexpr int64_t kFewStages = 3;
  const Schedule &schedule = *plan.schedule;
  for (int64_t buffers : {2, 1}) {
    plan.stagingBuffers = buffers;
    int64_t left = schedule.availableBytes() - plan.stagingBytes();
    int64_t fitting = left / (schedule.stageBytes() + 16);
    plan.stages = std::min(schedule.stages, fitting);
    if (plan.stages >= kFewStages)
      return success();
  }
  return plan.stages >= 2 ? success()
                          : refuse("results leave too little shared memory");
}

FailureOr<Plan> Planner::run() {
  if (failed(checkKernel()))
    return failure();
  plan.batch = kernel.extent(kernel.batch);
  plan.m = kernel.extent(kernel.m);
  plan.n = kernel.extent(kernel.n);
  plan.k = kernel.extent(kernel.k);
  if (failed(addOperand(kernel.lhs, true)) ||
      failed(addOperand(kernel.rhs, false)))
    return failure();
  addResults();
  if (failed(shareMemory()))
    return failure();
  return plan;
}

FailureOr<Plan> hopper::plan(const MatmulKernel &kernel,
                             const Schedule &schedule, std::string &whyNot) {
  return Planner(kernel, schedule, whyNot).run();
}
