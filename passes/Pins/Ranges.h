//===- Ranges.h - measured ranges of values ---------------------*- C++ -*-===//
//
// What `mpopt.calibrate` measured, and which value of a graph each row is
// about. A key is the same in every trace of a model: module path, framework
// operator, the number of the operation among those of equal path, operator and
// phase, in graph order, and the number of the result. Conversions and data
// movement have no rows: their range is their operand's.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_PINS_RANGES_H
#define MP_PASSES_PINS_RANGES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

#include <map>
#include <string>
#include <vector>

namespace mlir::mp {

/// What is known of one value, over all batches. Infs and NaNs are counted and
/// left out of everything else.
struct Range {
  double absmax = 0, rms = 0;
  int64_t elements = 0, nonzero = 0, infs = 0, nans = 0;
  /// Shares of the nonzero elements below the smallest normal and the smallest
  /// subnormal number.
  double belowNormalF16 = 0, belowSubnormalF16 = 0;
  double belowNormalBF16 = 0, belowSubnormalBF16 = 0;
  /// For each head, the largest logit that enters the softmax of attention.
  std::vector<double> headLogits;

  /// log2 of how much larger the values could be before the float type `type`
  /// overflows, negative if it does; infinity for zeros.
  double headroom(FloatType type) const;

  /// How many nonzero elements lie in [2^e, 2^(e+1)), by e.
  std::map<int64_t, int64_t> exponents;
  /// Share of the nonzero elements whose magnitude is below 2^exponent: of
  /// gradients times a loss scale 2^k, ask for `exponent - k`.
  double below(int64_t exponent) const;
};

struct RangeKey {
  llvm::StringRef module; ///< or the name of an input of the graph
  llvm::StringRef callee; ///< "aten.mm.default", or the role of an input
  unsigned ordinal = 0;
  bool isBackward = false;
  unsigned result = 0;
};

/// The rows of one file.
class Ranges {
public:
  /// Null if the value was not measured.
  const Range *find(const RangeKey &key) const;
  const Range *find(llvm::StringRef module, llvm::StringRef callee,
                    unsigned ordinal, bool isBackward = false,
                    unsigned result = 0) const {
    return find({module, callee, ordinal, isBackward, result});
  }
  /// False, and nothing is changed, if there is a row of this key.
  [[nodiscard]] bool insert(const RangeKey &key, Range range);

  size_t size() const { return rows.size(); }
  /// The suggested loss scale for f16, a power of two; 1 without gradients.
  double lossScale() const { return scale; }
  /// Digest of what the file says, whatever its layout.
  llvm::StringRef digest() const { return contentDigest; }

private:
  friend llvm::Expected<Ranges> parseRanges(llvm::StringRef text,
                                            llvm::StringRef name);
  llvm::StringMap<Range> rows;
  double scale = 1;
  std::string contentDigest;
};

/// Errors name `path` and what is wrong in it: no file, no JSON, a foreign
/// schema or version, a row that lacks something.
llvm::Expected<Ranges> loadRanges(llvm::StringRef path);
/// The same for the text of a file that errors call `name`.
llvm::Expected<Ranges> parseRanges(llvm::StringRef text, llvm::StringRef name);

/// The measured values of one function.
///
/// An operation says its key in the attribute `mp.measured` (module, operator,
/// ordinal, phase), so that it has it still where the graph was partitioned or
/// operators were expanded. If none does, operations are counted: then the
/// function must be as it was traced, but for conversions and raising.
class MeasuredValues {
public:
  MeasuredValues(func::FuncOp function, const Ranges &ranges);

  /// Range of `value`, or of what it was converted or moved from; null if
  /// neither was measured.
  const Range *find(Value value) const;
  /// How many values of the function have a row.
  size_t size() const { return known.size(); }

private:
  llvm::DenseMap<Value, const Range *> known;
};

} // namespace mlir::mp

#endif // MP_PASSES_PINS_RANGES_H
