//===- Target.cpp - the table of targets ----------------------------------===//

#include "dialect/IR/Target.h"
#include "dialect/IR/MPDialect.h"

using namespace mlir;
using namespace mlir::mp;

static const Target kTargets[] = {
    {"cpu", /*hasHalfMatmulWithF32Result=*/false, /*mixesReductions=*/false,
     /*costModel=*/""},
    {"cuda", /*hasHalfMatmulWithF32Result=*/true, /*mixesReductions=*/true,
     /*costModel=*/"sm_80"},
};

const Target *mlir::mp::lookupTarget(llvm::StringRef name) {
  for (const Target &target : kTargets)
    if (target.name == name)
      return &target;
  return nullptr;
}

const Target &mlir::mp::targetOf(func::FuncOp func) {
  auto name = func->getAttrOfType<StringAttr>(MPDialect::kTargetAttrName);
  const Target *target = name ? lookupTarget(name.getValue()) : nullptr;
  return target ? *target : kTargets[0];
}
