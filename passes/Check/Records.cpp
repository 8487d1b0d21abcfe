//===- Records.cpp - what a module claims to have changed -----------------===//

#include "passes/Check/Records.h"
#include "dialect/IR/MPOps.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::check;

static ArrayRef<Attribute> recordOf(func::FuncOp func) {
  auto record = func->getAttrOfType<ArrayAttr>(MPDialect::kRewritesAttrName);
  return record ? record.getValue() : ArrayRef<Attribute>();
}

static StringRef textOf(DictionaryAttr entry, StringRef name) {
  auto value = entry.getAs<StringAttr>(name);
  return value ? value.getValue() : StringRef();
}

FailureOr<SmallVector<Record>> mlir::mp::check::newRecords(func::FuncOp before,
                                                           func::FuncOp after) {
  ArrayRef<Attribute> entries = recordOf(after), old = recordOf(before);
  if (entries.take_front(old.size()) == old)
    entries = entries.drop_front(old.size());
  SmallVector<Record> records;
  for (Attribute attr : entries) {
    auto entry = dyn_cast<DictionaryAttr>(attr);
    auto node = entry ? entry.getAs<IntegerAttr>("node") : IntegerAttr();
    if (!node || textOf(entry, "rule").empty() ||
        textOf(entry, "status").empty())
      return after.emitError("malformed entry in mp.rewrites: ") << attr;
    if (textOf(entry, "status") != "applied")
      continue;
    auto operand = entry.getAs<IntegerAttr>("operand");
    auto half = entry.getAs<TypeAttr>("half");
    auto kept = entry.getAs<TypeAttr>("result");
    auto unrounded = entry.getAs<DenseI64ArrayAttr>("unrounded");
    auto format = half ? dyn_cast<FloatType>(half.getValue()) : FloatType();
    records.push_back(
        {textOf(entry, "rule"), textOf(entry, "contract"), node.getInt(),
         operand ? operand.getInt() : -1,
         format && isHalf(format) ? format : FloatType(),
         kept && kept.getValue().isF32(),
         unrounded ? unrounded.asArrayRef() : ArrayRef<int64_t>()});
  }
  return records;
}

StringRef mlir::mp::check::contractFor(StringRef rule) {
  return llvm::StringSwitch<StringRef>(rule)
      .Cases({"drop-autocast-rounding", "matmul-half-operands", "wide-result"},
             "precise")
      .Cases({"round-store", "half-call"}, "relaxed")
      .Default("strict");
}
