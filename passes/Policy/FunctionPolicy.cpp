//===- FunctionPolicy.cpp - a policy as attributes of a function ----------===//

#include "passes/Policy/FunctionPolicy.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::mp;

static StringRef textIn(DictionaryAttr dict, StringRef key) {
  auto text = dict ? dict.getAs<StringAttr>(key) : StringAttr();
  return text ? text.getValue() : StringRef();
}

static DictionaryAttr attributeOf(func::FuncOp func) {
  return dyn_cast_if_present<DictionaryAttr>(
      func->getDiscardableAttr(MPDialect::kPolicyAttrName));
}

llvm::Expected<std::optional<Policy>> mlir::mp::policyOf(func::FuncOp func) {
  if (!func->hasAttr(MPDialect::kPolicyAttrName))
    return std::nullopt;
  DictionaryAttr dict = attributeOf(func);
  if (!dict || !dict.getAs<StringAttr>("text"))
    return llvm::createStringError(
        "'mp.policy' must be a dictionary with a 'text'");
  StringRef file = textIn(dict, "file");
  llvm::Expected<Policy> policy =
      parsePolicy(textIn(dict, "text"), file.empty() ? "<policy>" : file);
  if (!policy)
    return policy.takeError();
  StringRef digest = textIn(dict, "sha256");
  if (!digest.empty() && digest != policy->digest())
    return llvm::createStringError("'mp.policy' has a text whose sha256 is " +
                                   policy->digest() + ", not " + digest);
  return std::optional(std::move(*policy));
}

void mlir::mp::setPolicy(func::FuncOp func, const Policy &policy) {
  Builder builder(func.getContext());
  func->setDiscardableAttr(
      MPDialect::kPolicyAttrName,
      builder.getDictionaryAttr(
          {builder.getNamedAttr("file", builder.getStringAttr(policy.name)),
           builder.getNamedAttr("sha256",
                                builder.getStringAttr(policy.digest())),
           builder.getNamedAttr("text", builder.getStringAttr(policy.text))}));
}

void mlir::mp::setOpRows(func::FuncOp func, const Policy &policy) {
  func->removeDiscardableAttr(MPDialect::kOpRowsAttrName);
  if (policy.ops.empty())
    return;
  Builder builder(func.getContext());
  NamedAttrList rows;
  for (const PolicyOpRow &row : policy.ops)
    rows.append(row.name, builder.getStringAttr(stringifyOpKind(row.kind)));
  func->setDiscardableAttr(MPDialect::kOpRowsAttrName,
                           rows.getDictionary(func.getContext()));
}

std::string mlir::mp::policyLabel(func::FuncOp func) {
  DictionaryAttr dict = attributeOf(func);
  if (!dict)
    return {};
  return (llvm::sys::path::filename(textIn(dict, "file")) + " (sha256 " +
          textIn(dict, "sha256").take_front(12) + ")")
      .str();
}
