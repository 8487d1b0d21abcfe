//===- Places.cpp - where in a matrix a value's elements belong -----------===//

#include "passes/Outline/Places.h"

using namespace mlir;
using namespace mlir::mp;

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

/// The product of extents; kDynamic if one of them is.
static int64_t product(ArrayRef<int64_t> extents) {
  int64_t product = 1;
  for (int64_t extent : extents) {
    if (ShapedType::isDynamic(extent))
      return ShapedType::kDynamic;
    product *= extent;
  }
  return product;
}

/// The number of leading dimensions that are rows, where the others are
/// `columns` elements; none if no cut gives that.
static std::optional<unsigned> cutBefore(ArrayRef<int64_t> shape,
                                         int64_t columns) {
  for (unsigned cut = shape.size(); cut-- > 0;)
    if (product(shape.drop_front(cut)) == columns)
      return cut;
  return std::nullopt;
}

bool mlir::mp::fits(ArrayRef<int64_t> shape, Place place, const Space &space) {
  int64_t elements = product(shape);
  switch (place) {
  case Place::Scalar:
    return true; // possibly spread over any shape
  case Place::Element: {
    std::optional<unsigned> cut = cutBefore(shape, space.columns);
    return cut && product(shape.take_front(*cut)) == space.allRows();
  }
  case Place::Row:
    return elements == space.allRows() ||
           fits(shape, Place::Element, space); // spread over the columns
  case Place::Column:
    return elements == space.columns || fits(shape, Place::Element, space);
  case Place::Transposed:
    return shape == ArrayRef<int64_t>{space.columns, space.rows} &&
           space.batch == 1;
  }
  llvm_unreachable("unknown place");
}

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

static Space matrixOf(ArrayRef<int64_t> shape, unsigned cut) {
  return {1, product(shape.take_front(cut)), product(shape.drop_front(cut))};
}

/// The first dimension of a row: of a norm it is told by the normalized shape.
static std::optional<unsigned> firstColumn(Operation *op) {
  int64_t rank = shapeOf(op->getOperand(0)).size();
  if (std::optional<SmallVector<int64_t>> normalized =
          integersOf(op, "normalized_shape"))
    return rank - int64_t(normalized->size());
  std::optional<double> dim = numberOf(op, "dim");
  if (dim && (*dim == -1 || *dim == double(rank - 1)))
    return rank - 1;
  return std::nullopt;
}

std::optional<Space> mlir::mp::spaceOf(Operation *op) {
  if (auto matmul = dyn_cast<MatmulOp>(op)) {
    ArrayRef<int64_t> shape = matmul.getOutput().getType().getShape();
    Space space = shape.size() == 2 ? Space{1, shape[0], shape[1]}
                                    : Space{shape[0], shape[1], shape[2]};
    // Of one row or one column, rows and columns could not be told apart.
    if (space.rows < 2 && !ShapedType::isDynamic(space.rows))
      return std::nullopt;
    return space.columns < 2 ? std::nullopt : std::optional<Space>(space);
  }
  ArrayRef<int64_t> shape = shapeOf(op->getOperand(0));
  std::optional<unsigned> cut;
  if (regionRoleOf(op) == RegionRole::Reduction) {
    SmallVector<int64_t> dims = reducedDims(op);
    // The last dimensions, without a gap.
    if (reducesColumns(op))
      cut = dims.front();
  } else {
    cut = firstColumn(op);
  }
  if (!cut || *cut == 0 || *cut >= shape.size())
    return std::nullopt;
  Space space = matrixOf(shape, *cut);
  if (ShapedType::isDynamic(space.columns) || space.columns < 2 ||
      space.rows == 1 || space.rows == 0)
    return std::nullopt;
  return space;
}

bool mlir::mp::reducesColumns(Operation *op) {
  int64_t rank = shapeOf(op->getOperand(0)).size();
  SmallVector<int64_t> dims = reducedDims(op);
  return dims.back() == rank - 1 &&
         dims.back() - dims.front() == int64_t(dims.size()) - 1;
}

/// What an operand of shape `from` has for each element of shape `to`, when the
/// framework spreads it.
static std::optional<Place>
spreadPlace(ArrayRef<int64_t> from, ArrayRef<int64_t> to, const Space &space) {
  std::optional<unsigned> cut = cutBefore(to, space.columns);
  if (!cut || from.size() > to.size())
    return std::nullopt;
  unsigned missing = to.size() - from.size();
  // Of rows and of columns: whether it varies, and whether it is the same.
  bool varies[2] = {false, false}, isSpread[2] = {false, false};
  for (unsigned dim = 0; dim != to.size(); ++dim) {
    int64_t extent = dim < missing ? 1 : from[dim - missing];
    if (to[dim] == 1 && extent == 1)
      continue;
    bool isSame = extent == to[dim];
    if (!isSame && extent != 1)
      return std::nullopt;
    (isSame ? varies : isSpread)[dim >= *cut] = true;
  }
  if ((varies[0] && isSpread[0]) || (varies[1] && isSpread[1]))
    return std::nullopt;
  if (varies[0])
    return varies[1] ? Place::Element : Place::Row;
  return varies[1] ? Place::Column : Place::Scalar;
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// Adds a place unless another one is known.
bool Places::set(Found &found, Value value, Place place) const {
  if (!fits(shapeOf(value), place, space))
    return false;
  if (std::optional<Place> other = lookup(value))
    return *other == place;
  for (auto [known, other] : found)
    if (known == value)
      return other == place;
  found.push_back({value, place});
  return true;
}

/// The place of an elementwise result, from what is known or from its shape.
std::optional<Place> Places::placeOfResult(Operation *op) const {
  if (std::optional<Place> place = lookup(op->getResult(0)))
    return place;
  ArrayRef<int64_t> shape = shapeOf(op->getResult(0));
  bool hasRow = false, hasColumn = false;
  for (Value operand : op->getOperands()) {
    std::optional<Place> place = lookup(operand);
    if (place == Place::Transposed)
      return place;
    bool isWhole = place && shapeOf(operand) == shape;
    hasRow |= isWhole && place == Place::Row;
    hasColumn |= isWhole && place == Place::Column;
  }
  if (fits(shape, Place::Element, space))
    return Place::Element;
  if (product(shape) == 1)
    return Place::Scalar;
  if (hasRow && fits(shape, Place::Row, space))
    return Place::Row;
  if (hasColumn && fits(shape, Place::Column, space))
    return Place::Column;
  bool isRow = fits(shape, Place::Row, space);
  bool isColumn = fits(shape, Place::Column, space);
  if (isRow == isColumn)
    return std::nullopt;
  return isRow ? Place::Row : Place::Column;
}

bool Places::placePointwise(Operation *op, Found &found) const {
  std::optional<Place> place = placeOfResult(op);
  if (!place || !set(found, op->getResult(0), *place))
    return false;
  ArrayRef<int64_t> shape = shapeOf(op->getResult(0));
  for (Value operand : op->getOperands()) {
    ArrayRef<int64_t> from = shapeOf(operand);
    std::optional<Place> known = lookup(operand), expected;
    if (known == Place::Scalar)
      continue;
    bool isWhole = from == shape;
    if (!isWhole && *place == Place::Element)
      expected = spreadPlace(from, shape, space);
    else if (isWhole)
      expected = place;
    else if (product(from) == 1)
      expected = Place::Scalar;
    if (!expected)
      return false;
    // A value that a view spread over its shape keeps its own place.
    bool wasSpread = isWhole && *place == Place::Element && known &&
                     *known != Place::Transposed;
    if (!wasSpread && !set(found, operand, *expected))
      return false;
  }
  return true;
}

/// Views keep the place, and spreading a value does.
bool Places::placeView(Operation *op, Found &found) const {
  Value input = op->getOperand(0), result = op->getResult(0);
  std::optional<Place> place = lookup(input);
  if (!place)
    place = lookup(result);
  if (!place || *place == Place::Transposed)
    return false;
  // Spread along the other dimensions only: [1, 1024] over 8 of them is neither
  // one for each row nor for each column.
  if (product(shapeOf(input)) != product(shapeOf(result)) &&
      *place != Place::Scalar &&
      spreadPlace(shapeOf(input), shapeOf(result), space) != place)
    return false;
  if (*place == Place::Scalar && product(shapeOf(input)) != 1 && !lookup(input))
    return false;
  return set(found, input, *place) && set(found, result, *place);
}

bool Places::placeTranspose(Operation *op, Found &found) const {
  Value input = op->getOperand(0), result = op->getResult(0);
  auto other = [](std::optional<Place> place) -> std::optional<Place> {
    if (place == Place::Element)
      return Place::Transposed;
    return place == Place::Transposed ? std::optional(Place::Element)
                                      : std::nullopt;
  };
  std::optional<Place> of = lookup(input), to = other(of);
  if (!of) {
    to = lookup(result);
    of = other(to);
  }
  return of && to && shapeOf(result).size() == 2 && set(found, input, *of) &&
         set(found, result, *to);
}

/// Factors have no place: their elements belong to rows or columns of sums.
bool Places::placeMatmul(MatmulOp op, Found &found) const {
  if (spaceOf(op) != space || !set(found, op.getOutput(), Place::Element))
    return false;
  if (!op.getBias())
    return true;
  std::optional<Place> place = spreadPlace(
      shapeOf(op.getBias()), op.getOutput().getType().getShape(), space);
  return place && set(found, op.getBias(), *place);
}

/// Over all columns, or over all rows.
bool Places::placeReduction(Operation *op, Found &found) const {
  ArrayRef<int64_t> shape = shapeOf(op->getOperand(0));
  std::optional<unsigned> cut = cutBefore(shape, space.columns);
  SmallVector<int64_t> dims = reducedDims(op);
  if (!cut || !set(found, op->getOperand(0), Place::Element))
    return false;
  bool isOfRows = reducesColumns(op);
  auto expected = isOfRows
                      ? llvm::to_vector(llvm::seq<int64_t>(*cut, shape.size()))
                      : llvm::to_vector(llvm::seq<int64_t>(0, *cut));
  if (dims != expected || (!isOfRows && regionOpName(op) != "aten.sum"))
    return false;
  return llvm::all_of(op->getResults(), [&](Value result) {
    return set(found, result, isOfRows ? Place::Row : Place::Column);
  });
}

/// gather takes one element of each row; scatter puts one number into each.
bool Places::placeRowIndexed(Operation *op, Found &found) const {
  if (op->getNumOperands() != 2 ||
      firstColumn(op) != cutBefore(shapeOf(op->getOperand(0)), space.columns))
    return false;
  bool isGather = regionOpName(op) == "aten.gather";
  std::optional<Place> base = lookup(op->getOperand(0));
  bool isConstant = base == Place::Scalar && !isGather;
  if (shapeOf(op->getOperand(1)).back() != 1 ||
      (!isConstant && !set(found, op->getOperand(0), Place::Element)))
    return false;
  return set(found, op->getOperand(1), Place::Row) &&
         set(found, op->getResult(0), isGather ? Place::Row : Place::Element);
}

/// Elements, and what has one number for each row or for each column.
bool Places::placeRows(Operation *op, Found &found) const {
  if (spaceOf(op) != space)
    return false;
  auto place = [&](Value value) {
    if (fits(shapeOf(value), Place::Element, space))
      return set(found, value, Place::Element);
    bool isRow = product(shapeOf(value)) == space.allRows() &&
                 shapeOf(value).back() == 1;
    return set(found, value, isRow ? Place::Row : Place::Column);
  };
  return llvm::all_of(op->getOperands(), place) &&
         llvm::all_of(op->getResults(), place);
}

bool Places::placeSum(Operation *op, Place place) {
  Found found;
  if (!set(found, op->getResult(0), place))
    return false;
  known.insert(found.begin(), found.end());
  return true;
}

bool Places::add(Operation *op) {
  Found found;
  auto placed = [&]() {
    switch (regionRoleOf(op)) {
    case RegionRole::None:
      return false;
    case RegionRole::Matmul:
      return placeMatmul(cast<MatmulOp>(op), found);
    case RegionRole::Pointwise:
      return placePointwise(op, found);
    case RegionRole::Constant:
      return set(found, op->getResult(0), Place::Scalar);
    case RegionRole::View:
      return placeView(op, found);
    case RegionRole::Transpose:
      return placeTranspose(op, found);
    case RegionRole::Reduction:
      return placeReduction(op, found);
    case RegionRole::RowIndexed:
      return placeRowIndexed(op, found);
    case RegionRole::Rows:
      return placeRows(op, found);
    }
    llvm_unreachable("unknown role");
  };
  if (!placed())
    return false;
  known.insert(found.begin(), found.end());
  return true;
}
