//===- Kernel.cpp - frame of the kernels without a source -----------------===//

#include "codegen/CUDA/Update/Kernel.h"
#include "codegen/CUDA/Rows/Exchange.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace mlir::mp;
using namespace mlir::mp::cuda;
using mpopt::update::Format;

static constexpr unsigned kGlobalSpace = 1;

Type cuda::globalPointer(Builder &b) {
  return LLVM::LLVMPointerType::get(b.getContext(), kGlobalSpace);
}

Type cuda::typeOf(Builder &b, Format format) {
  switch (format) {
  case Format::F32:
    return b.getF32Type();
  case Format::F16:
    return b.getF16Type();
  case Format::BF16:
    return b.getBF16Type();
  }
  llvm_unreachable("all formats are handled");
}

SmallVector<Value> cuda::startKernel(ImplicitLocOpBuilder &b, ModuleOp module,
                                     StringRef name, TypeRange parameters,
                                     int32_t threads, int64_t shared) {
  module->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                  b.getUnitAttr());
  b.setInsertionPointToStart(module.getBody());
  auto gpuModule = gpu::GPUModuleOp::create(b, "kernels");
  b.setInsertionPointToStart(gpuModule.getBody());
  if (shared != 0)
    declareShared(b, b.getLoc(), kSlots, b.getI64Type(), shared);
  auto func =
      gpu::GPUFuncOp::create(b, name, b.getFunctionType(parameters, {}));
  func->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
  func.setKnownBlockSizeAttr(b.getDenseI32ArrayAttr({threads, 1, 1}));
  b.setInsertionPointToStart(&func.getBody().front());
  return llvm::to_vector_of<Value>(func.getArguments());
}

static Value fieldAddress(ImplicitLocOpBuilder &b, Value table, Value index,
                          int64_t rowBytes, int64_t offset) {
  Value at = constantOf(b, offset);
  if (index)
    at = scaled(b, index, rowBytes, at);
  return LLVM::GEPOp::create(b, globalPointer(b), b.getI8Type(), table,
                             ArrayRef<LLVM::GEPArg>{at});
}

static unsigned alignmentOf(Type type) {
  bool isWide =
      isa<LLVM::LLVMPointerType>(type) || type.isInteger(64) || type.isF64();
  return isWide ? 8 : 4;
}

Value cuda::loadField(ImplicitLocOpBuilder &b, Value table, Value index,
                      int64_t rowBytes, int64_t offset, Type type) {
  return LLVM::LoadOp::create(b, type,
                              fieldAddress(b, table, index, rowBytes, offset),
                              alignmentOf(type));
}

void cuda::storeField(ImplicitLocOpBuilder &b, Value value, Value table,
                      Value index, int64_t rowBytes, int64_t offset) {
  LLVM::StoreOp::create(b, value,
                        fieldAddress(b, table, index, rowBytes, offset),
                        alignmentOf(value.getType()));
}

static Value asInteger(ImplicitLocOpBuilder &b, Value index) {
  return arith::IndexCastOp::create(b, b.getI64Type(), index);
}

Value cuda::threadNumber(ImplicitLocOpBuilder &b) {
  return asInteger(b, gpu::ThreadIdOp::create(b, gpu::Dimension::x, nullptr));
}

Value cuda::blockNumber(ImplicitLocOpBuilder &b) {
  return asInteger(b, gpu::BlockIdOp::create(b, gpu::Dimension::x, nullptr));
}
