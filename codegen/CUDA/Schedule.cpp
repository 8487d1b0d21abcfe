//===- Schedule.cpp - how a matmul is cut for a chip ----------------------===//

#include "codegen/CUDA/Schedule.h"
#include "codegen/CUDA/Matmul/Frame.h"
#include "codegen/CUDA/Matmul/SharedTile.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;

int64_t MatmulSchedule::registerLimit() const {
  int64_t limit = Chip::kRegistersPerSM / (threads() * resident);
  return std::min<int64_t>(255, limit / 8 * 8);
}

std::string MatmulSchedule::str() const {
  return llvm::formatv("{0}x{1}x{2} w{3}x{4} s{5} r{6} k{7} g{8}", blockM,
                       blockN, blockK, warpM, warpN, stages, resident, splitK,
                       group);
}

/// Reads "AxB" or "AxBxC" into `into`; false if it is none.
static bool parseSizes(StringRef text, ArrayRef<int64_t *> into) {
  SmallVector<StringRef> parts;
  text.split(parts, 'x');
  if (parts.size() != into.size())
    return false;
  for (auto [part, number] : llvm::zip(parts, into))
    if (part.getAsInteger(10, *number) || *number < 1)
      return false;
  return true;
}

static bool parsePart(StringRef part, MatmulSchedule &schedule) {
  StringRef rest = part.drop_front();
  switch (part.front()) {
  case 'w':
    return parseSizes(rest, {&schedule.warpM, &schedule.warpN});
  case 's':
    return parseSizes(rest, {&schedule.stages});
  case 'r':
    return parseSizes(rest, {&schedule.resident});
  case 'k':
    return parseSizes(rest, {&schedule.splitK});
  case 'g':
    return parseSizes(rest, {&schedule.group});
  default:
    return parseSizes(part,
                      {&schedule.blockM, &schedule.blockN, &schedule.blockK});
  }
}

FailureOr<MatmulSchedule> cuda::parseSchedule(StringRef text,
                                              Location location) {
  MatmulSchedule schedule{128, 128, 32, 64, 64, 4};
  SmallVector<StringRef> parts;
  text.split(parts, ' ', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts)
    if (!parsePart(part, schedule))
      return emitError(location)
             << "'" << part << "' of a schedule is not understood; it looks "
             << "like '" << MatmulSchedule{128, 128, 32, 64, 64, 4}.str()
             << "'";
  return schedule;
}

/// Why the sizes of a schedule do not go together; empty if they do.
static std::string whyUneven(const MatmulSchedule &s, int64_t elementBytes) {
  for (int64_t size : {s.blockM, s.blockN, s.blockK, s.warpM, s.warpN})
    if (!llvm::isPowerOf2_64(size))
      return "sizes must be powers of two";
  if (s.warpM < 16 || s.warpN < 16)
    return "a warp computes at least 16 x 16";
  if (s.blockM < s.warpM || s.blockN < s.warpN)
    return "a warp computes a part of its block's tile";
  if (s.blockK * elementBytes < 32)
    return "a step has at least 32 bytes along k";
  if (s.stages < 2)
    return "the ring needs two stages";
  if (s.threads() > 1024)
    return "a block has at most 1024 threads";
  return {};
}

/// The extent of an operand that is contiguous in memory.
static int64_t contiguousExtent(const MatmulKernel &kernel, bool isLhs) {
  bool alongK = isLhs ? !kernel.lhs.transposed : kernel.rhs.transposed;
  return alongK ? kernel.k : isLhs ? kernel.m : kernel.n;
}

std::string cuda::whyUnfit(const MatmulSchedule &schedule,
                           const MatmulKernel &kernel) {
  Type element = kernel.lhs.element;
  if (element.isF32()) {
    auto allowed = functionOf(kernel)->getAttrOfType<BoolAttr>("mp.tf32");
    if (!allowed || !allowed.getValue())
      return "f32 operands are multiplied as TF32 only where the kernel says "
             "mp.tf32 = true";
  } else if (!element.isF16() && !element.isBF16()) {
    return "tensor cores multiply f16, bf16 and (as TF32) f32";
  }
  for (bool isLhs : {true, false})
    if (ShapedType::isDynamic(contiguousExtent(kernel, isLhs)))
      return "the length of an operand's rows must be known";
  if (ShapedType::isDynamic(kernel.n))
    return "the length of the result's rows must be known";
  return whyUneven(schedule, bytesOf(element));
}
