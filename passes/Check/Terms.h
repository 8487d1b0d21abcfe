//===- Terms.h - normal forms of values ------------------------*- C++ -*-===//
//
// A value is a term over the inputs of its function. Terms are hash-consed: two
// values have one normal form if and only if they have one number. The rules:
//
//   convert(x : T, T)                          = x
//   convert(convert(x : A, B), C)              = convert(x, C)   if A to B is
//   exact convert(op(x, y, ...), C)                  = op(convert(x, C),
//   convert(y, C), ...)
//       if op moves data or is monotone, between float types, and each filler
//       constant is a value of both types
//   dropped(x : A, B) converted to C           = convert(x, C)   if A to C is
//   exact
//
// Each rule keeps every bit but the last, which is the one that the contract
// `precise` allows and that only a verified record brings in. Rounding is
// monotone and odd, so it commutes with max, min, relu, abs and neg.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_CHECK_TERMS_H
#define MP_PASSES_CHECK_TERMS_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

#include <deque>

namespace mlir::mp::check {

using TermId = uint32_t;

enum class TermKind : uint8_t {
  Input,   ///< argument `index` of the function
  Convert, ///< its argument in another element type
  Dropped, ///< a conversion whose rounding a record drops
  Apply,   ///< result `index` of an operator
};

struct Term {
  TermKind kind = TermKind::Apply;
  /// The operator moves data or is monotone, and all its float operands are of
  /// the type of its result: conversions go through it.
  bool isTransparent = false;
  uint32_t index = 0;
  /// Number of an operator with effects; 0 for a pure one.
  uint32_t serial = 0;
  Type type;
  Attribute name;    ///< operator
  Attribute attrs;   ///< its other arguments
  Attribute results; ///< types of all results
  ArrayRef<TermId> args;
  Operation *op = nullptr; ///< where the term was seen first; no part of it
};

class TermTable {
public:
  TermId input(unsigned index, Type type);
  /// The value of `term` in another element type.
  TermId convert(TermId term, Type element, Operation *op);
  /// The same, of which a record says that its rounding is dropped.
  TermId dropped(TermId term, Type element, Operation *op);
  /// `term` is the operator without its arguments.
  TermId apply(Term term, ArrayRef<TermId> args);

  const Term &operator[](TermId id) const { return terms[id]; }
  Type elementType(TermId id) const;

  /// True once more terms were made than `limit`, which only a graph of
  /// thousands of roundings in one chain does: then nothing can be said.
  bool isExhausted() const { return terms.size() > limit; }
  void allow(size_t more) { limit += more; }

private:
  struct Request {
    TermId term;
    Type element;
  };

  TermId intern(Term term);
  TermId find(TermId term, Type element) const;
  TermId applyConverted(TermId id, Type element, Operation *op);
  bool passesThrough(const Term &term, Type element) const;
  /// What must be converted before `request`; empty when it can be answered.
  void collectNeeded(Request request, SmallVectorImpl<Request> &needed) const;
  TermId answer(Request request, Operation *op);

  std::deque<Term> terms; ///< stable addresses
  std::deque<SmallVector<TermId, 4>> argStorage;
  llvm::DenseMap<uint64_t, SmallVector<TermId, 1>> byHash;
  llvm::DenseMap<std::pair<TermId, Type>, TermId> converted;
  size_t limit = 1 << 20;
};

} // namespace mlir::mp::check

#endif // MP_PASSES_CHECK_TERMS_H
