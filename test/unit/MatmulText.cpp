//===- MatmulText.cpp - matmul kernels as text, for tests -----------------===//

#include "MatmulText.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;
using namespace mlir::mp::test;

namespace {
struct Operand {
  std::string name, dims, element;
};

class Writer {
public:
  explicit Writer(const MatmulShape &shape) : shape(shape) {}
  std::string write();

private:
  std::string tensor(StringRef dims, StringRef element) const;
  std::string map(StringRef dims, bool hasK) const;
  void addOperands();
  std::string empty(StringRef name, StringRef element) const;
  std::string contraction() const;
  std::string epilogue() const;
  std::string body() const;
  SmallVector<std::string> resultElements() const;

  const MatmulShape &shape;
  std::string lhsDims, rhsDims;
  SmallVector<Operand> operands; // of the epilogue
  std::string batch() const { return shape.batch == 1 ? "" : "b"; }
};
} // namespace

std::string Writer::tensor(StringRef dims, StringRef element) const {
  std::string text = "tensor<";
  for (char dim : dims) {
    int64_t size = dim == 'm'   ? shape.m
                   : dim == 'n' ? shape.n
                   : dim == 'k' ? shape.k
                                : shape.batch;
    text += dim == shape.dynamic ? "?" : std::to_string(size);
    text += "x";
  }
  return text + element.str() + ">";
}

/// "affine_map<(m, n) -> (n)>".
std::string Writer::map(StringRef dims, bool hasK) const {
  auto list = [](StringRef names) {
    SmallVector<std::string> parts;
    for (char name : names)
      parts.push_back(std::string(1, name));
    return join(parts, ", ");
  };
  return formatv("affine_map<({0}) -> ({1})>",
                 list(batch() + (hasK ? "mnk" : "mn")), list(dims));
}

void Writer::addOperands() {
  lhsDims = batch() + (shape.lhsTransposed ? "km" : "mk");
  rhsDims = batch() + (shape.rhsTransposed ? "nk" : "kn");
  std::string element = shape.element.str();
  if (shape.tail == Tail::Gelu || shape.tail == Tail::Residual)
    operands.push_back({"bias", "n", "f32"});
  if (shape.tail == Tail::Residual) {
    operands.push_back({"scale", "m", "f32"});
    operands.push_back({"residual", batch() + "mn", element});
  }
  if (shape.tail == Tail::Mask)
    operands.push_back({"mask", batch() + "mn", "i1"});
}

SmallVector<std::string> Writer::resultElements() const {
  std::string element = shape.element.str();
  if (shape.tail == Tail::None)
    return {"f32"};
  if (shape.tail == Tail::Gelu)
    return {element, "f32"};
  return {element};
}

std::string Writer::empty(StringRef name, StringRef element) const {
  std::string dims = batch() + "mn";
  bool isDynamic = StringRef(dims).contains(shape.dynamic) && shape.dynamic;
  return formatv("  %{0} = tensor.empty({1}) : {2}\n", name,
                 isDynamic ? "%size" : "", tensor(dims, element));
}

std::string Writer::contraction() const {
  std::string loops = shape.batch == 1 ? "" : "\"parallel\", ";
  std::string acc = tensor(batch() + "mn", "f32");
  return formatv(
      "{0}  %init = linalg.fill ins(%zero : f32) outs(%e : {1}) -> {1}\n"
      "  %acc = linalg.generic {{indexing_maps = [{2}, {3}, {4}], "
      "iterator_types = [{5}\"parallel\", \"parallel\", \"reduction\"]}\n"
      "      ins(%lhs, %rhs : {6}, {7}) outs(%init : {1}) {{\n"
      "  ^bb0(%a: {8}, %b: {8}, %c: f32):\n"
      "    %wa = arith.extf %a : {8} to f32\n"
      "    %wb = arith.extf %b : {8} to f32\n"
      "    %p = arith.mulf %wa, %wb : f32\n"
      "    %s = arith.addf %c, %p : f32\n"
      "    linalg.yield %s : f32\n  } -> {1}\n",
      empty("e", "f32"), acc, map(lhsDims, true), map(rhsDims, true),
      map(batch() + "mn", true), loops, tensor(lhsDims, shape.element),
      tensor(rhsDims, shape.element), shape.element);
}

static constexpr char kCastBody[] = R"(
    %t = arith.truncf %x : f32 to {0}
    linalg.yield %t : {0})";
static constexpr char kResidualBody[] = R"(
    %s = arith.addf %x, %bias : f32
    %t = arith.truncf %s : f32 to {0}
    %w = arith.extf %t : {0} to f32
    %r = arith.extf %residual : {0} to f32
    %p = arith.mulf %w, %scale : f32
    %y = arith.addf %p, %r : f32
    %o = arith.truncf %y : f32 to {0}
    linalg.yield %o : {0})";
static constexpr char kGeluBody[] = R"(
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %root = arith.constant 0.707106769 : f32
    %s = arith.addf %x, %bias : f32
    %i = arith.mulf %s, %root : f32
    %f = math.erf %i : f32
    %g = arith.addf %f, %one : f32
    %h = arith.mulf %s, %half : f32
    %y = arith.mulf %h, %g : f32
    %o = arith.truncf %y : f32 to {0}
    linalg.yield %o, %s : {0}, f32)";
static constexpr char kMaskBody[] = R"(
    %none = arith.constant 0.0 : {0}
    %row = linalg.index {1} : index
    %column = linalg.index {2} : index
    %ri = arith.index_cast %row : index to i32
    %ci = arith.index_cast %column : index to i32
    %d = arith.subi %ri, %ci : i32
    %df = arith.sitofp %d : i32 to f32
    %s = arith.addf %x, %df : f32
    %t = arith.truncf %s : f32 to {0}
    %o = arith.select %mask, %t, %none : {0}
    linalg.yield %o : {0})";

std::string Writer::body() const {
  int rows = shape.batch == 1 ? 0 : 1;
  switch (shape.tail) {
  case Tail::None:
    return "";
  case Tail::Cast:
    return formatv(kCastBody, shape.element);
  case Tail::Residual:
    return formatv(kResidualBody, shape.element);
  case Tail::Gelu:
    return formatv(kGeluBody, shape.element);
  case Tail::Mask:
    return formatv(kMaskBody, shape.element, rows, rows + 1);
  }
  return "";
}

std::string Writer::epilogue() const {
  std::string full = batch() + "mn";
  SmallVector<std::string> maps{map(full, false)}, names{"%acc"},
      types{tensor(full, "f32")}, arguments{"%x: f32"}, outs, results;
  for (const Operand &operand : operands) {
    maps.push_back(map(operand.dims, false));
    names.push_back("%" + operand.name + "s");
    types.push_back(tensor(operand.dims, operand.element));
    arguments.push_back("%" + operand.name + ": " + operand.element);
  }
  std::string text;
  for (auto [i, element] : llvm::enumerate(resultElements())) {
    maps.push_back(map(full, false));
    outs.push_back("%e" + std::to_string(i));
    results.push_back(tensor(full, element));
    arguments.push_back("%out" + std::to_string(i) + ": " + element);
    text += empty(outs.back().substr(1), element);
  }
  std::string loops = shape.batch == 1 ? "" : "\"parallel\", ";
  return text +
         formatv("  %y{0} = linalg.generic {{indexing_maps = [{1}], "
                 "iterator_types = [{2}\"parallel\", \"parallel\"]}\n"
                 "      ins({3} : {4}) outs({5} : {6}) {{\n  ^bb0({7}):{8}\n"
                 "  } -> ({6})\n",
                 outs.size() > 1 ? ":2" : "", join(maps, ", "), loops,
                 join(names, ", "), join(types, ", "), join(outs, ", "),
                 join(results, ", "), join(arguments, ", "), body())
             .str();
}

std::string Writer::write() {
  addOperands();
  SmallVector<std::string> arguments{"%lhs: " + tensor(lhsDims, shape.element),
                                     "%rhs: " + tensor(rhsDims, shape.element)};
  for (const Operand &operand : operands)
    arguments.push_back("%" + operand.name +
                        "s: " + tensor(operand.dims, operand.element));
  SmallVector<std::string> results;
  for (const std::string &element : resultElements())
    results.push_back(tensor(batch() + "mn", element));
  std::string text = formatv("func.func @kernel({0}) -> ({1}) {{\n"
                             "  %c0 = arith.constant 0 : index\n"
                             "  %zero = arith.constant 0.0 : f32\n",
                             join(arguments, ", "), join(results, ", "));
  if (shape.dynamic)
    text += formatv("  %size = tensor.dim %lhs, %c0 : {0}\n",
                    tensor(lhsDims, shape.element));
  text += contraction();
  if (shape.tail != Tail::None)
    text += epilogue();
  StringRef returned = shape.tail == Tail::None   ? "%acc"
                       : shape.tail == Tail::Gelu ? "%y#0, %y#1"
                                                  : "%y";
  return text +
         formatv("  return {0} : {1}\n}\n", returned, join(results, ", "))
             .str();
}

std::string mlir::mp::test::matmulText(const MatmulShape &shape) {
  return Writer(shape).write();
}
