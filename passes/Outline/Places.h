//===- Places.h - where in a matrix a value's elements belong --*- C++ -*-===//
//
// A region computes over a matrix of rows and columns. A value in it has an
// element for each place of the matrix, for each row, for each column, or one
// for all; views change the shape and not the place: of [8, 1024, 768] and of
// [8192, 768] the rows are the same, and an expanded row statistic is still one
// number a row.
//
//===----------------------------------------------------------------------===//

#ifndef MP_PASSES_OUTLINE_PLACES_H
#define MP_PASSES_OUTLINE_PLACES_H

#include "passes/Outline/RegionOps.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::mp {

/// The matrix that a region computes over. A batch of products is a matrix of
/// `batch` times `rows` rows. Dynamic extents are ShapedType::kDynamic.
struct Space {
  int64_t batch = 1, rows = 1, columns = 1;
  bool operator!=(const Space &other) const { return !(*this == other); }
  bool operator==(const Space &other) const {
    return batch == other.batch && rows == other.rows &&
           columns == other.columns;
  }
  /// Rows of all matrices of the batch.
  int64_t allRows() const {
    return ShapedType::isDynamic(rows) ? rows : batch * rows;
  }
};

enum class Place {
  Element,
  Row,
  Column,
  Scalar,
  Transposed ///< an element, of a matrix that is stored the other way round
};

/// Whether a shape can hold a value of that place.
bool fits(ArrayRef<int64_t> shape, Place place, const Space &space);

/// The matrix that an operation of the roles Reduction, RowIndexed and Rows is
/// about, or that a product makes; none if its dimensions are no such matrix.
std::optional<Space> spaceOf(Operation *op);

/// True for a reduction over columns: of each row.
bool reducesColumns(Operation *op);

/// The places of the values of a region.
class Places {
public:
  explicit Places(const Space &space) : space(space) {}

  /// Places the operands and results of `op`, given what is known. False, and
  /// nothing changes, if they do not fit together.
  bool add(Operation *op);

  /// Places the result of a sum of a product's factor, which has no place.
  bool placeSum(Operation *op, Place place);

  std::optional<Place> lookup(Value value) const {
    auto found = known.find(value);
    return found == known.end() ? std::nullopt
                                : std::optional<Place>(found->second);
  }
  const Space &getSpace() const { return space; }

private:
  using Found = SmallVector<std::pair<Value, Place>, 4>;

  bool set(Found &found, Value value, Place place) const;
  bool placePointwise(Operation *op, Found &found) const;
  bool placeView(Operation *op, Found &found) const;
  bool placeTranspose(Operation *op, Found &found) const;
  bool placeMatmul(MatmulOp op, Found &found) const;
  bool placeReduction(Operation *op, Found &found) const;
  bool placeRowIndexed(Operation *op, Found &found) const;
  bool placeRows(Operation *op, Found &found) const;
  std::optional<Place> placeOfResult(Operation *op) const;

  Space space;
  llvm::DenseMap<Value, Place> known;
};

/// The places of a region's values; none if they are not of one matrix.
std::optional<Places> placesOf(RegionOp region);

} // namespace mlir::mp

#endif // MP_PASSES_OUTLINE_PLACES_H
