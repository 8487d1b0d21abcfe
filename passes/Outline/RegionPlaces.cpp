//===- RegionPlaces.cpp - the places of a region's values -----------------===//

#include "passes/Outline/Places.h"

using namespace mlir;
using namespace mlir::mp;

/// The operation that tells the matrix: the product, or the first reduction.
static std::optional<Space> spaceOfRegion(RegionOp region) {
  for (Operation &op : region.getBody().front().without_terminator()) {
    RegionRole role = regionRoleOf(&op);
    bool isRoot =
        region.getKind() == KernelKind::matmul
            ? role == RegionRole::Matmul
            : role == RegionRole::Rows ||
                  (role == RegionRole::Reduction && reducesColumns(&op));
    if (isRoot)
      return spaceOf(&op);
  }
  return std::nullopt;
}

/// What stands in front of a factor has no place.
static bool isOfFactors(Operation *op, const Places &places) {
  return regionRoleOf(op) == RegionRole::Transpose &&
         !places.lookup(op->getOperand(0)) && !places.lookup(op->getResult(0));
}

/// A sum of a factor, told by the extents that are left.
static bool placeFactorSum(Operation *op, Places &places) {
  if (regionOpName(op) != "aten.sum" || places.lookup(op->getOperand(0)))
    return false;
  for (Operation *user : op->getOperand(0).getUsers()) {
    auto matmul = dyn_cast<MatmulOp>(user);
    bool isTransposed = !matmul && user->getNumResults() == 1 &&
                        regionRoleOf(user) == RegionRole::Transpose;
    Value factor = isTransposed ? user->getResult(0) : op->getOperand(0);
    for (Operation *reader : factor.getUsers())
      if (auto product = dyn_cast<MatmulOp>(reader)) {
        bool isLhs = product.getLhs() == factor;
        int64_t summed = isLhs != isTransposed ? 1 : 0;
        if (reducedDims(op) == SmallVector<int64_t>{summed})
          return places.placeSum(op, isLhs ? Place::Row : Place::Column);
      }
  }
  return false;
}

/// Which operations are placed first.
static unsigned rankOf(Operation *op) {
  switch (regionRoleOf(op)) {
  case RegionRole::Constant:
  case RegionRole::Matmul:
  case RegionRole::Rows:
    return 0;
  case RegionRole::Reduction:
    return 1;
  default:
    return 2;
  }
}

/// Each operation needs a neighbour whose place is known: rounds until all are
/// placed, or none is.
std::optional<Places> mlir::mp::placesOf(RegionOp region) {
  std::optional<Space> space = spaceOfRegion(region);
  if (!space)
    return std::nullopt;
  Places places(*space);
  // Roots and constants first: they need no neighbour.
  SmallVector<Operation *> left;
  for (unsigned rank = 0; rank != 3; ++rank)
    for (Operation &op : region.getBody().front().without_terminator())
      if (rankOf(&op) == rank)
        left.push_back(&op);
  while (!left.empty()) {
    size_t before = left.size();
    llvm::erase_if(left, [&](Operation *op) {
      return placeFactorSum(op, places) || places.add(op);
    });
    if (left.size() != before)
      continue;
    bool areFactors = llvm::all_of(
        left, [&](Operation *op) { return isOfFactors(op, places); });
    return areFactors ? std::optional<Places>(places) : std::nullopt;
  }
  return places;
}
