//===- RandomRegion.cpp - graphs that our kernels compute -----------------===//

#include "test/unit/RandomRegion.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

#include <random>
#include <vector>

using namespace mlir::mp;

namespace {
/// A value of the graph, told by its name.
struct Named {
  std::string name, shape, element;
  bool isRead = false;
  std::string type() const {
    return "tensor<" + shape + (shape.empty() ? "" : "x") + element + ">";
  }
};

class Generator {
public:
  Generator(uint64_t seed, bool isExact) : random(seed), isExact(isExact) {
    batch = 2;
    length = 2 + below(3);
    columns = below(2) ? 4 : 8;
    half = below(2) ? "bf16" : "f16";
  }

  std::string product();
  std::string rows();

private:
  unsigned below(unsigned end) { return random() % end; }
  std::string matrix() const {
    return std::to_string(batch * length) + "x" + std::to_string(columns);
  }
  std::string cube() const {
    return std::to_string(batch) + "x" + std::to_string(length) + "x" +
           std::to_string(columns);
  }
  std::string rowShape(const std::string &of) const {
    std::string all =
        of == matrix() ? std::to_string(batch * length)
                       : std::to_string(batch) + "x" + std::to_string(length);
    return all + "x1";
  }
  std::string floatType() { return below(3) == 0 ? "f32" : half; }
  Named argument(const std::string &shape, const std::string &element);
  Named op(const std::string &text, const std::string &shape,
           const std::string &element);
  Named aten(const std::string &callee, const std::vector<Named> &operands,
             const std::string &shape, const std::string &element,
             const std::string &args = "");
  Named any();
  Named inShape(const Named &value, const std::string &shape);
  Named cast(const Named &value, const std::string &element);
  std::string wider(const Named &a, const Named &b) const;
  void addStep();
  void addRowStep();
  void addChoice(const Named &value);
  std::string finish();

  std::mt19937_64 random;
  bool isExact;
  int batch, length, columns, numArguments = 0, numOps = 0;
  std::string half, arguments, body;
  std::vector<Named> pool, side; ///< elements; sums
};
} // namespace

Named Generator::argument(const std::string &shape,
                          const std::string &element) {
  Named value{"%a" + std::to_string(numArguments++), shape, element};
  arguments +=
      (arguments.empty() ? "" : ", ") + value.name + ": " + value.type();
  return value;
}

Named Generator::op(const std::string &text, const std::string &shape,
                    const std::string &element) {
  Named value{"%" + std::to_string(numOps++), shape, element};
  body += "  " + value.name + " = " + text + "\n";
  return value;
}

Named Generator::aten(const std::string &callee,
                      const std::vector<Named> &operands,
                      const std::string &shape, const std::string &element,
                      const std::string &args) {
  std::vector<std::string> names, types;
  for (const Named &operand : operands) {
    names.push_back(operand.name);
    types.push_back(operand.type());
  }
  Named result{"", shape, element};
  return op("mp.aten \"aten." + callee + "\"(" + llvm::join(names, ", ") + ")" +
                (args.empty() ? "" : " {args = {" + args + "}}") + " : (" +
                llvm::join(types, ", ") + ") -> " + result.type(),
            shape, element);
}

Named Generator::any() {
  Named &value = pool[below(3) ? pool.size() - 1 : below(pool.size())];
  value.isRead = true;
  return value;
}

Named Generator::inShape(const Named &value, const std::string &shape) {
  if (value.shape == shape)
    return value;
  std::string sizes = shape;
  for (size_t at; (at = sizes.find('x')) != std::string::npos;)
    sizes.replace(at, 1, ", ");
  return aten("view.default", {value}, shape, value.element,
              "size = [" + sizes + "]");
}

Named Generator::cast(const Named &value, const std::string &element) {
  if (value.element == element)
    return value;
  return op("mp.cast " + value.name + " origin(user) : " + value.type() +
                " to tensor<" + value.shape + "x" + element + ">",
            value.shape, element);
}

std::string Generator::wider(const Named &a, const Named &b) const {
  return a.element == b.element ? a.element : "f32";
}

/// A value where a mask, or a comparison, says so.
void Generator::addChoice(const Named &value) {
  Named mask =
      below(2) ? argument(value.shape, "i1")
               : aten("gt.Scalar", {value}, value.shape, "i1", "other = 0.5");
  Named other = aten("neg.default", {value}, value.shape, value.element);
  pool.push_back(
      aten("where.self", {mask, value, other}, value.shape, value.element));
}

void Generator::addStep() {
  Named value = any();
  switch (below(isExact ? 9 : 12)) {
  case 0:
    pool.push_back(cast(value, floatType()));
    return;
  case 1:
    pool.push_back(inShape(value, below(2) ? matrix() : cube()));
    return;
  case 2: { // residual
    Named other = argument(value.shape, floatType());
    pool.push_back(
        aten("add.Tensor", {value, other}, value.shape, wider(value, other)));
    return;
  }
  case 3: { // bias
    Named other = argument(std::to_string(columns), floatType());
    pool.push_back(
        aten("sub.Tensor", {value, other}, value.shape, wider(value, other)));
    return;
  }
  case 4: { // scale of rows
    Named other = argument(rowShape(value.shape), floatType());
    pool.push_back(
        aten("mul.Tensor", {value, other}, value.shape, wider(value, other)));
    return;
  }
  case 5: {
    Named other = inShape(any(), value.shape);
    pool.push_back(aten("maximum.default", {value, other}, value.shape,
                        wider(value, other)));
    return;
  }
  case 6:
    return addChoice(value);
  case 7:
    if (value.element == "f32") {
      pool.push_back(op("mp.round " + value.name + " to " + half +
                            " origin(user) : " + value.type(),
                        value.shape, "f32"));
      return;
    }
    pool.push_back(aten("relu.default", {value}, value.shape, value.element));
    return;
  case 8: { // gradient of a bias
    std::string dims = value.shape == matrix() ? "[0]" : "[0, 1]";
    side.push_back(aten("sum.dim_IntList", {value}, std::to_string(columns),
                        value.element, "dim = " + dims));
    return;
  }
  default: {
    static const char *functions[] = {"gelu",    "silu", "tanh",
                                      "sigmoid", "erf",  "cos"};
    Named input = cast(value, below(2) ? "f32" : value.element);
    pool.push_back(aten(std::string(functions[below(6)]) + ".default", {input},
                        input.shape, input.element));
    return;
  }
  }
}

std::string Generator::finish() {
  std::vector<std::string> names, types;
  auto give = [&](const Named &value) {
    names.push_back(value.name);
    types.push_back(value.type());
  };
  for (const Named &value : pool)
    if ((!value.isRead || below(5) == 0) && value.name[1] != 'a')
      give(value);
  for (const Named &value : side)
    give(value);
  if (names.empty())
    give(pool.back());
  return "func.func @f(" + arguments + ") -> (" + llvm::join(types, ", ") +
         ") {\n" + body + "  return " + llvm::join(names, ", ") + " : " +
         llvm::join(types, ", ") + "\n}\n";
}

std::string Generator::product() {
  std::string depth = std::to_string(3 + below(4));
  std::string element = floatType();
  std::string rows = std::to_string(batch * length);
  bool isLhsTurned = below(3) == 0, isRhsTurned = below(2);
  auto factor = [&](const std::string &outer, const std::string &inner,
                    bool isTurned) {
    Named value =
        argument(isTurned ? inner + "x" + outer : outer + "x" + inner, element);
    return isTurned ? aten("permute.default", {value}, outer + "x" + inner,
                           element, "dims = [1, 0]")
                    : value;
  };
  Named lhs = factor(rows, depth, isLhsTurned);
  Named rhs = factor(depth, std::to_string(columns), isRhsTurned);
  Named result{"", matrix(), below(3) ? element : "f32"};
  std::string bias;
  if (below(2)) {
    Named value = argument(std::to_string(columns), element);
    bias = " bias(" + value.name + " : " + value.type() + ")";
  }
  pool.push_back(op("mp.matmul " + lhs.name + ", " + rhs.name + bias + " : (" +
                        lhs.type() + ", " + rhs.type() + ") -> " +
                        result.type(),
                    result.shape, result.element));
  if (below(3) == 0)
    side.push_back(aten("sum.dim_IntList", {rhs}, std::to_string(columns),
                        element, "dim = [0]"));
  for (unsigned i = 0, end = below(9); i != end; ++i)
    addStep();
  return finish();
}

/// A number for each row, and what it does to the elements.
void Generator::addRowStep() {
  Named value = any();
  std::string last = value.shape == matrix() ? "[1]" : "[2]";
  std::string row = rowShape(value.shape);
  std::string args = "dim = " + last + ", keepdim = true";
  Named number =
      below(2)   ? aten("amax.default", {value}, row, value.element, args)
      : below(2) ? aten("sum.dim_IntList", {value}, row, value.element, args)
                 : aten("mean.dim", {value}, row, value.element, args);
  if (below(4) == 0)
    side.push_back(number);
  if (!isExact && below(4) == 0) {
    Named wide = cast(value, "f32");
    pool.push_back(op("mp.softmax(" + wide.name +
                          ") {args = {dim = -1, half_to_float = false}} : (" +
                          wide.type() + ") -> " + wide.type(),
                      wide.shape, "f32"));
    return;
  }
  pool.push_back(
      aten("sub.Tensor", {value, number}, value.shape, value.element));
}

std::string Generator::rows() {
  pool.push_back(argument(below(2) ? matrix() : cube(), floatType()));
  for (unsigned i = 0, end = below(3); i != end; ++i)
    addStep();
  addRowStep();
  for (unsigned i = 0, end = below(8); i != end; ++i)
    below(3) ? addStep() : addRowStep();
  return finish();
}

std::string mlir::mp::randomProduct(uint64_t seed, bool isExact) {
  return Generator(seed, isExact).product();
}

std::string mlir::mp::randomRows(uint64_t seed, bool isExact) {
  return Generator(seed, isExact).rows();
}
