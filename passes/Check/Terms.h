//===- Terms.h - normal forms of values ------------------------*- C++ -*-===//
//
// A value is a term over the inputs of its function. Terms are hash-consed: two
// values have one normal form if and only if they have one number. The rules:
//
// convert(x : T, T) = x
// convert(convert(x : A, B), C) = convert(x, C), if A to B is exact
// convert(op(x, y, ...), C) = op(convert(x, C), convert(y, C), ...), between
//   float types, if op moves elements or changes signs and each constant among
//   its arguments is a value of both types
// op(x, y, ...) = convert(op(convert(x, C), convert(y, C), ...), A), if op
// picks
//   one of its operands by order (relu, max) and all of them hold values of C
//   only, the narrowest such type
// convert(dropped(x, B), C) = convert(x, C), if C holds every value of x
//
// Rounding does not commute with relu: f16 rounds -1e-9 to -0, which relu
// keeps, and relu of -1e-9 is +0.
//
// Each rule keeps every bit but the last one, which is what the contract
// `precise` allows and what only a verified record brings in.
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

/// Which conversions go through an operator whose float operands are all of the
/// type of its result.
enum class Transparency : uint8_t {
  None,
  Exact, ///< those that change no operand's value
  All,   ///< roundings as well
};

struct Term {
  TermKind kind = TermKind::Apply;
  Transparency transparency = Transparency::None;
  /// One bit for each well-known float format that holds every value of it.
  uint8_t formats = 0;
  uint32_t index = 0;
  /// Number of an operator with effects; 0 for a pure one.
  uint32_t serial = 0;
  Type type;
  Attribute name;    ///< operator
  Attribute attrs;   ///< its other arguments
  Attribute results; ///< types of all results, if there are several
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
  TermId apply(const Term &term, ArrayRef<TermId> args);

  const Term &operator[](TermId id) const { return terms[id]; }
  Type elementType(TermId id) const;
  /// True if `element` holds every value of the term.
  bool isHeldBy(TermId id, Type element) const;

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
  TermId applyIn(Term term, Type element, ArrayRef<TermId> args);
  FloatType narrowestFormat(const Term &term, ArrayRef<TermId> args) const;
  bool passesThrough(const Term &term, Type element) const;
  uint8_t formatsOf(const Term &term);
  uint8_t commonFormats(const Term &term, ArrayRef<TermId> args) const;
  uint8_t formatsHolding(Type type);
  uint8_t formatsOfFillers(Attribute attrs) const;
  /// What must be converted before `request`; empty when it can be answered.
  void collectNeeded(Request request, SmallVectorImpl<Request> &needed) const;
  TermId answer(Request request, Operation *op);

  std::deque<Term> terms; ///< stable addresses
  std::deque<SmallVector<TermId, 4>> argStorage;
  llvm::DenseMap<uint64_t, SmallVector<TermId, 1>> byHash;
  llvm::DenseMap<std::pair<TermId, Type>, TermId> converted;
  /// Formats that hold every value of a type, every constant in an attribute.
  llvm::DenseMap<Type, uint8_t> typeFormats;
  mutable llvm::DenseMap<Attribute, uint8_t> fillerFormats;
  size_t limit = 1 << 18;
};

} // namespace mlir::mp::check

#endif // MP_PASSES_CHECK_TERMS_H
