//===- Emulator.h - run a GPU kernel on the CPU ----------------*- C++ -*-===//
//
// Takes a kernel as it is before NVPTX code generation, compiles it for the
// host and runs it block by block, one fiber for each thread. Checks every
// access to global and shared memory. README.md says what is modelled and what
// is not.
//
//   auto kernel = Kernel::fromMLIR(gpuModule);            // Expected
//   Launch launch;
//   launch.grid = {4, 2};
//   launch.block = {128};
//   launch.dynamicSharedBytes = 65536;
//   launch.args = {Argument::input(a), Argument::output(c),
//   Argument::scalar(n)}; for (Copies copies : {Copies::Eager, Copies::Late}) {
//     Report report = (*kernel)->run(launch, copies);
//     EXPECT_TRUE(report.clean()) << report.text();
//     EXPECT_TRUE(report.conflicts().empty()) << report.text();
//   }
//
//===----------------------------------------------------------------------===//

#ifndef TEST_EMULATOR_EMULATOR_H
#define TEST_EMULATOR_EMULATOR_H

#include "test/emulator/Report.h"
#include "test/emulator/TensorMap.h"
#include "llvm/Support/Error.h"

#include <cstring>
#include <memory>
#include <type_traits>

namespace llvm {
class Module;
} // namespace llvm
namespace mlir {
class Operation;
} // namespace mlir

namespace mlir::mp::emulator {

/// One argument of a launch. Buffers stay the caller's; the kernel may access
/// exactly their bytes.
class Argument {
public:
  /// A buffer that the kernel may read (`input`), or read and write (`output`).
  /// `name` is what a fault calls it; default "argument N".
  template <typename T>
  static Argument input(const std::vector<T> &data, llvm::StringRef name = "") {
    return input(data.data(), data.size() * sizeof(T), name);
  }
  template <typename T>
  static Argument output(std::vector<T> &data, llvm::StringRef name = "") {
    return output(data.data(), data.size() * sizeof(T), name);
  }
  static Argument input(const void *data, size_t bytes,
                        llvm::StringRef name = "");
  static Argument output(void *data, size_t bytes, llvm::StringRef name = "");

  /// An address inside a buffer that another argument registers, or null.
  static Argument address(const void *data);

  /// A number; its size is that of the kernel's parameter.
  template <typename T>
  static Argument scalar(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    Argument argument;
    argument.bytes.resize(sizeof(T));
    std::memcpy(argument.bytes.data(), &value, sizeof(T));
    return argument;
  }

  /// A tensor map: by value (byval, grid constant) or by address, as the kernel
  /// declares. The tensor's buffer must be known by another argument or by
  /// `Launch::buffers`.
  static Argument tensorMap(const TensorMap &map);

private:
  friend class Machine;
  friend class Kernel;
  enum class Kind { Scalar, Buffer, TensorMap };
  Kind kind = Kind::Scalar;
  std::vector<char> bytes;
  void *data = nullptr;
  size_t size = 0;
  bool isWritable = false;
  std::string name;
};

struct Launch {
  Dim3 grid, block;
  size_t dynamicSharedBytes = 0;
  /// One for each parameter of the kernel.
  std::vector<Argument> args;
  /// Buffers that no parameter names, e.g. those behind tensor maps.
  std::vector<Argument> buffers;
  /// Blocks to run; all if empty.
  std::vector<Dim3> onlyBlocks;
};

/// When asynchronous copies move their data: at once, or as late as the program
/// allows. A correct kernel gives the same results in both.
enum class Copies { Eager, Late };

struct LoadOptions {
  /// Kernel to run; may stay empty if the module has one.
  std::string kernel;
  /// libdevice.10.bc to link. If empty, __nv_* functions are taken from libm.
  std::string libdevice;
};

/// A kernel compiled for the host. Not thread-safe.
class Kernel {
public:
  /// From LLVM IR for NVPTX. The module stays unchanged.
  static llvm::Expected<std::unique_ptr<Kernel>>
  fromLLVM(const llvm::Module &module, const LoadOptions &options = {});
  /// From a gpu.module or module in the NVVM and LLVM dialects, before
  /// convert-nvvm-to-llvm. The module stays unchanged.
  static llvm::Expected<std::unique_ptr<Kernel>>
  fromMLIR(Operation *module, const LoadOptions &options = {});
  /// From text in either form.
  static llvm::Expected<std::unique_ptr<Kernel>>
  fromText(llvm::StringRef text, const LoadOptions &options = {});
  ~Kernel();

  llvm::StringRef name() const;
  /// Bytes of shared memory that the kernel declares itself.
  size_t staticSharedBytes() const;

  /// Runs the launch. A wrong launch (number of arguments, block too large) is
  /// a fault BadOperand.
  Report run(const Launch &launch, Copies copies = Copies::Late);

private:
  struct Impl;
  explicit Kernel(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace mlir::mp::emulator

#endif // TEST_EMULATOR_EMULATOR_H
