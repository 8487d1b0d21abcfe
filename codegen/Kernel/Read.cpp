//===- Read.cpp - kernels from text ---------------------------------------===//

#include "codegen/Kernel/Read.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace mlir::mp;

KernelText::KernelText(StringRef text)
    : text(text), context(MLIRContext::Threading::DISABLED) {
  context.loadDialect<arith::ArithDialect, cf::ControlFlowDialect,
                      func::FuncDialect, linalg::LinalgDialect,
                      LLVM::LLVMDialect, math::MathDialect, scf::SCFDialect,
                      tensor::TensorDialect, vector::VectorDialect>();
  context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
      messages += (messages.empty() ? "" : "\n") + diagnostic.str();
  });
}

KernelText::~KernelText() = default;

llvm::Expected<Kernel> KernelText::parse() {
  module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return llvm::createStringError("cannot read a kernel: " + messages);
  FailureOr<Kernel> kernel = parseKernel(*module);
  if (failed(kernel))
    return llvm::createStringError(messages);
  return *kernel;
}
