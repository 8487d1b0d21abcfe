//===- HopperFixture.h - from a matmul's text to PTX ------------*- C++ -*-===//

#ifndef TEST_UNIT_HOPPERFIXTURE_H
#define TEST_UNIT_HOPPERFIXTURE_H

#include "MatmulText.h"
#include "codegen/CUDA/Hopper/Emit.h"
#include "codegen/CUDA/Lowering.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

namespace mlir::mp::test {

class HopperTest : public ::testing::Test {
protected:
  HopperTest() {
    DialectRegistry registry;
    cuda::registerCudaDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.disableMultithreading();
  }

  /// The kernel for this shape; none if it is refused, for `whyNot`.
  std::optional<cuda::EmittedKernel> emit(const MatmulShape &shape,
                                          StringRef schedule) {
    source = parseSourceString<ModuleOp>(matmulText(shape), &context);
    if (!source)
      return std::nullopt;
    FailureOr<Kernel> kernel = parseKernel(*source);
    if (failed(kernel))
      return std::nullopt;
    return cuda::hopper::emit(std::get<MatmulKernel>(*kernel),
                              *cuda::hopper::findSchedule(schedule), whyNot);
  }

  std::string toPTX(ModuleOp module) {
    cuda::LoweringOptions options;
    if (const char *folder = std::getenv("MPOPT_DUMP")) {
      options.dumpFolder = folder;
      static int number = 0;
      options.dumpName = "hopper" + std::to_string(number++);
    }
    return cuda::compileToPTX(module, *cuda::findChip("sm_90a"), options)
        .value_or("");
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> source;
  std::string whyNot;
};

} // namespace mlir::mp::test

#endif // TEST_UNIT_HOPPERFIXTURE_H
