//===- PinRules.cpp - the tables behind mp-pin ----------------------------===//

#include "passes/Pins/PinRules.h"
#include "llvm/ADT/StringMap.h"

#include <cmath>

using namespace mlir;
using namespace mlir::mp;

//===----------------------------------------------------------------------===//
// Formats
//===----------------------------------------------------------------------===//

double HalfFormat::stepAt(double magnitude) const {
  return std::exp2(std::floor(std::log2(magnitude)) - (precision - 1.0));
}

bool HalfFormat::overflows(double number) const {
  return std::isfinite(number) && std::abs(number) >= overflow;
}

const HalfFormat &mlir::mp::halfFormat(bool isF16) {
  static const HalfFormat f16 = {"f16", 65504, 65520, 0x1p-14, 11};
  static const HalfFormat bf16 = {"bf16", 0x1.fep127, 0x1.ffp127, 0x1p-126, 8};
  return isF16 ? f16 : bf16;
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

namespace {
struct RuleRow {
  StringRef name, text;
  Halves halves;
};
} // namespace

static const RuleRow &row(PinRule rule) {
  static const RuleRow rows[] = {
#define MP_PIN_RULE(ID, NAME, HALVES, TEXT) {NAME, TEXT, Halves::HALVES},
#include "passes/Pins/PinRules.def"
  };
  return rows[static_cast<int>(rule)];
}

StringRef mlir::mp::pinRuleName(PinRule rule) { return row(rule).name; }
StringRef mlir::mp::pinRuleText(PinRule rule) { return row(rule).text; }

bool mlir::mp::guards(PinRule rule, const HalfFormat &half) {
  Halves one = half.isF16() ? Halves::F16 : Halves::BF16;
  return (static_cast<int>(row(rule).halves) & static_cast<int>(one)) != 0;
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

ArrayRef<PinOpRow> mlir::mp::pinRowsOf(StringRef callee) {
  static const llvm::StringMap<SmallVector<PinOpRow, 1>> index = [] {
    const PinOpRow rows[] = {
#define MP_PIN_OP(NAME, RULE, WHERE, AT, ...)                                  \
  {NAME, PinRule::RULE, PinPart::WHERE, AT, {__VA_ARGS__}},
#include "passes/Pins/PinOps.def"
    };
    llvm::StringMap<SmallVector<PinOpRow, 1>> map;
    for (const PinOpRow &row : rows)
      map[row.name].push_back(row);
    return map;
  }();
  auto it = index.find(stripOverload(callee));
  return it == index.end() ? ArrayRef<PinOpRow>() : it->second;
}

PinRole mlir::mp::pinRoleOf(Operation *op) {
  static const llvm::StringMap<PinRole> index = {
#define MP_PIN_ROLE(NAME, ROLE) {NAME, PinRole::ROLE},
#include "passes/Pins/PinPatterns.def"
  };
  StringRef callee = frameworkCallee(op);
  if (callee.empty())
    return PinRole::None;
  // max over a dimension returns an index, max of all elements does not.
  if (auto it = index.find(callee); it != index.end())
    return it->second;
  return index.lookup(stripOverload(callee));
}
