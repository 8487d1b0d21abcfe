//===- OpTable.cpp - lookup in the operator table -------------------------===//

#include "dialect/IR/OpTable.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

#include <vector>

using namespace mlir::mp;

static const OpRow kRows[] = {
#define MP_OP_ROW(NAME, KIND) {NAME, OpKind::KIND},
#include "dialect/IR/OpTable.def"
};

llvm::StringRef mlir::mp::stripOverload(llvm::StringRef callee) {
  auto [ns, rest] = callee.split('.');
  if (rest.empty())
    return callee;
  size_t dot = rest.find('.');
  return dot == llvm::StringRef::npos ? callee
                                      : callee.take_front(ns.size() + 1 + dot);
}

const OpRow *mlir::mp::lookupOpRow(llvm::StringRef callee) {
  static const llvm::StringMap<const OpRow *> index = [] {
    llvm::StringMap<const OpRow *> map;
    for (const OpRow &row : kRows)
      map[row.name] = &row;
    return map;
  }();
  // A row may name one overload when overloads differ in kind: aten.max.dim
  // returns an index, aten.max.other does not.
  if (const OpRow *row = index.lookup(callee))
    return row;
  return index.lookup(stripOverload(callee));
}

llvm::StringRef mlir::mp::stringifyOpKind(OpKind kind) {
  switch (kind) {
  case OpKind::Unknown:
    return "unknown";
  case OpKind::View:
    return "view";
  case OpKind::Reshape:
    return "reshape";
  case OpKind::Movement:
    return "movement";
  case OpKind::Gather:
    return "gather";
  case OpKind::Sign:
    return "sign";
  case OpKind::Monotone:
    return "monotone";
  case OpKind::Pointwise:
    return "pointwise";
  case OpKind::Reduction:
    return "reduction";
  case OpKind::Scatter:
    return "scatter";
  case OpKind::Norm:
    return "norm";
  case OpKind::Softmax:
    return "softmax";
  case OpKind::Activation:
    return "activation";
  case OpKind::Loss:
    return "loss";
  case OpKind::Matmul:
    return "matmul";
  case OpKind::Convolution:
    return "convolution";
  case OpKind::Attention:
    return "attention";
  case OpKind::Compare:
    return "compare";
  case OpKind::Index:
    return "index";
  case OpKind::Rounding:
    return "rounding";
  case OpKind::Creation:
    return "creation";
  case OpKind::Random:
    return "random";
  case OpKind::Bitcast:
    return "bitcast";
  case OpKind::Shape:
    return "shape";
  case OpKind::Effect:
    return "effect";
  }
  llvm_unreachable("all kinds are named");
}

llvm::ArrayRef<OpKind> mlir::mp::allOpKinds() {
  static const std::vector<OpKind> kinds = [] {
    std::vector<OpKind> all;
    for (int i = 0; i <= static_cast<int>(OpKind::Effect); ++i)
      all.push_back(static_cast<OpKind>(i));
    return all;
  }();
  return kinds;
}

std::optional<OpKind> mlir::mp::symbolizeOpKind(llvm::StringRef name) {
  for (OpKind kind : allOpKinds())
    if (stringifyOpKind(kind) == name)
      return kind;
  return std::nullopt;
}
