//===- Plan.cpp - how a matmul becomes a wgmma kernel ---------------------===//

#include "codegen/CUDA/Hopper/Plan.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;
using namespace mlir::mp::cuda::hopper;
using ::mp::runtime::TensorMap;

/// What multiplies the dynamic first dimension of an operand: the dimensions
/// that are collapsed into it.
static int64_t dynamicFactor(Value value) {
  int64_t factor = 1;
  while (auto collapse = value.getDefiningOp<tensor::CollapseShapeOp>()) {
    ArrayRef<int64_t> shape = collapse.getSrcType().getShape();
    for (int64_t dim : collapse.getReassociationIndices().front())
      if (!ShapedType::isDynamic(shape[dim]))
        factor *= shape[dim];
    value = collapse.getSrc();
  }
  return factor;
}

/// The operands of the contraction, as they are collapsed.
static linalg::GenericOp contractionOf(const MatmulKernel &kernel) {
  func::FuncOp func = kernel.func;
  for (auto generic : func.getOps<linalg::GenericOp>())
    if (generic.getNumLoops() >= 3 && generic.getNumReductionLoops() == 1)
      return generic;
  llvm_unreachable("a matmul kernel has a contraction");
}

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
  Extent extent(int64_t size) const;
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

Extent Planner::extent(int64_t size) const {
  if (!ShapedType::isDynamic(size))
    return {size, -1};
  linalg::GenericOp contraction = contractionOf(kernel);
  for (Value input : contraction.getDpsInputs())
    if (cast<RankedTensorType>(input.getType()).isDynamicDim(0))
      return {dynamicFactor(input), 0};
  llvm_unreachable("a dynamic extent is that of an operand");
}

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
  int bytes = result.elementBytes();
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
  constexpr int kFewStages = 3;
  const Schedule &schedule = *plan.schedule;
  for (int buffers : {2, 1}) {
    plan.stagingBuffers = buffers;
    int left = schedule.availableBytes() - plan.stagingBytes();
    int fitting = left / (schedule.stageBytes() + 2 * 8);
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
  plan.batch = extent(kernel.batch);
  plan.m = extent(kernel.m);
  plan.n = extent(kernel.n);
  plan.k = extent(kernel.k);
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
