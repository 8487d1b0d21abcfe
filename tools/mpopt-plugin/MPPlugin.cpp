//===- MPPlugin.cpp - our dialect and passes for a stock mlir-opt ---------===//
//
// mlir-opt --load-dialect-plugin=MPPlugin.so --load-pass-plugin=MPPlugin.so
//
//===----------------------------------------------------------------------===//

#include "codegen/Lower/Passes.h"
#include "dialect/IR/MPDialect.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "passes/Passes.h"
#include "passes/Pipelines.h"

using namespace mlir;

#define MP_EXPORT extern "C" __attribute__((visibility("default")))

static void registerDialects(DialectRegistry *registry) {
  registry->insert<mp::MPDialect>();
}

static void registerPasses() {
  mp::registerMPPasses();
  mp::registerMPCodegenPasses();
  mp::registerPipelines();
}

MP_EXPORT DialectPluginLibraryInfo mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "MPPlugin", LLVM_VERSION_STRING,
          registerDialects};
}

MP_EXPORT PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "MPPlugin", LLVM_VERSION_STRING,
          registerPasses};
}
