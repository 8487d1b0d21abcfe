//===- Signature.h - types of a kernel's arguments and results --*- C++ -*-===//
//
// A compiled graph carries each kernel as the text of a module in the form of
// the backend contract. The launch path reads of it only the types of the
// function `@kernel`; it links no MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef RUNTIME_LAUNCH_SIGNATURE_H
#define RUNTIME_LAUNCH_SIGNATURE_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mp::runtime {

/// The element types of the contract, rule K1.
enum class Element : uint8_t { F16, BF16, F32, I1, I8, I32, I64 };

/// "bf16" and the like.
std::string_view stringifyElement(Element element);

/// A dense, row-major tensor.
struct TensorType {
  Element element;
  /// An extent that is known only at run time is kDynamic.
  std::vector<int64_t> dims;

  static constexpr int64_t kDynamic = -1;
};

struct Signature {
  std::vector<TensorType> arguments, results;

  /// How many dynamic extents a call gives, 0 or 1: all of them are equal.
  size_t sizeCount() const;
};

/// Reads the types of `@kernel`. On failure `error` says what is wrong.
std::optional<Signature> parseSignature(std::string_view text,
                                        std::string &error);

} // namespace mp::runtime

#endif // RUNTIME_LAUNCH_SIGNATURE_H
