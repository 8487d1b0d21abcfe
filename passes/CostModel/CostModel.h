//===- CostModel.h - what work costs on one target -------------*- C++ -*-===//
//
// Figures of one machine, as data: a JSON file per target in targets/, or one
// that `mpopt calibrate` wrote. docs/CostModel.md describes the file and the
// arithmetic. Times are in seconds, sizes in bytes, work in multiplications and
// additions (2 * m * n * k of them in a product).
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_COSTMODEL_COSTMODEL_H
#define MP_PASSES_COSTMODEL_COSTMODEL_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

#include <array>
#include <limits>
#include <optional>
#include <string>

namespace mlir::mp {

/// Products of matrices that reach one rate. The limits all hold.
struct ShapeClass {
  static constexpr double kNoLimit = std::numeric_limits<double>::infinity();

  std::string name;
  double least = kNoLimit; ///< the smallest of m, n and k is at most this
  /// The work is at most this: of each product if `batch` asks for several at
  /// once, else of all together.
  double flops = kNoLimit;
  int64_t batch = 1; ///< at least so many products at once

  bool holds(int64_t batch, int64_t m, int64_t n, int64_t k) const;
};

/// How fast one type of operands is multiplied.
struct MatmulRates {
  std::string type;
  double launch;         ///< seconds per call, beside the work
  int64_t multiple = 1;  ///< where n or k is no multiple of this, ...
  double misaligned = 1; ///< ... a product reaches this share of its rate
  /// The hardware multiplies blocks: m, n and k are filled up to these.
  std::array<int64_t, 3> tile{1, 1, 1};
  /// Work per second that a class reaches, one for each of the model's classes.
  llvm::SmallVector<double> rates;
};

/// Memory near the processor: data that fit are read at its rate.
struct Cache {
  double bytes;
  double bandwidth; ///< bytes per second
};

/// What a product waits for.
enum class Bound { Launch, Memory, Compute };
llvm::StringRef stringifyBound(Bound bound);

struct MatmulCost {
  double seconds;
  Bound bound;
  const ShapeClass *shape; ///< the first class whose limits hold
};

/// Whether operands of a half type make a product faster.
struct HalfVerdict {
  bool pays;
  double gain;      ///< seconds in the wide type / seconds in the half type
  std::string text; ///< "bf16 0.8 x f32 at 1x768x768: recurrent, launch bound"
};

struct CostModel {
  /// A product is not narrowed for less: the model is not that exact.
  static constexpr double kLeastGain = 1.05;

  std::string name;
  std::string device; ///< "cpu" or "cuda"
  double bandwidth;   ///< bytes per second that a sweep over memory reaches
  double launch;      ///< seconds per kernel
  llvm::SmallVector<Cache>
      caches; ///< the nearest first; each is larger, slower
  llvm::SmallVector<ShapeClass> classes;
  llvm::SmallVector<MatmulRates> types;
  /// Bytes per second of a kernel that only converts, by "f32-bf16" and the
  /// like; other pairs reach `bandwidth`.
  llvm::StringMap<double> casts;

  /// The rates of `type`; null where the target has no such products.
  const MatmulRates *ratesOf(llvm::StringRef type) const;

  /// Seconds of a kernel that reads and writes `bytes`.
  double sweepSeconds(double bytes) const { return bytes / bandwidth + launch; }

  /// Seconds of a kernel that only converts.
  double castSeconds(llvm::StringRef from, llvm::StringRef to,
                     int64_t elements) const;

  /// What `batch` products of m x k by k x n cost; none where the target has
  /// no products of `type`. Grows with every size, but where a size meets or
  /// misses the multiple that the hardware wants.
  std::optional<MatmulCost> matmulCost(llvm::StringRef type, int64_t batch,
                                       int64_t m, int64_t n, int64_t k) const;

  /// Seconds of matmulCost; infinity where the target has no such products.
  double matmulSeconds(llvm::StringRef type, int64_t batch, int64_t m,
                       int64_t n, int64_t k) const;

  /// Work per byte from which on a product of `type` can reach its best rate.
  double intensityLimit(llvm::StringRef type) const;

  /// Compares a product in `half` with the same one in `wide`.
  HalfVerdict halfPays(llvm::StringRef half, llvm::StringRef wide,
                       int64_t batch, int64_t m, int64_t n, int64_t k) const;
};

/// Names of the built-in models, sorted.
llvm::ArrayRef<llvm::StringRef> builtinCostModels();

/// The text of a built-in model's file; none for an unknown name.
std::optional<llvm::StringRef> builtinCostModelText(llvm::StringRef name);

/// A built-in model by name, or one of a file. An error names the file and the
/// key, or the nearest name.
llvm::Expected<CostModel> loadCostModel(llvm::StringRef nameOrPath);

/// A model from the text of a file. `file` is for errors.
llvm::Expected<CostModel> parseCostModel(llvm::StringRef text,
                                         llvm::StringRef file);

/// The built-in model for a CPU with these features, as LLVM names them.
llvm::StringRef cpuCostModel(const llvm::StringMap<bool> &features);

/// The built-in model for this machine's CPU.
llvm::StringRef hostCostModel();

/// The built-in model for a GPU of compute capability `capability`, such as 90:
/// the newest that is not newer. None for GPUs older than all.
std::optional<llvm::StringRef> cudaCostModel(unsigned capability);

} // namespace mlir::mp

#endif // MP_PASSES_COSTMODEL_COSTMODEL_H
