//===- Fiber.h - stacks that take turns on one host thread -----*- C++ -*-===//

#ifndef TEST_EMULATOR_FIBER_H
#define TEST_EMULATOR_FIBER_H

#include <cstddef>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace mlir::mp::emulator {

/// A function with a stack of its own. The scheduler resumes it; it pauses
/// itself. A fiber may be dropped while it is paused: what lies on its stack is
/// then never destroyed.
class Fiber {
public:
  using Function = void (*)(void *context);

  /// Prepares the fiber to run function(context) on [stack, stack + size).
  /// The function must end with `pause`, not with a return.
  void prepare(char *stack, size_t size, Function function, void *context);
  /// Called by the scheduler: runs the fiber until it pauses.
  void resume();
  /// Called on the fiber: back to the scheduler.
  void pause();

  bool owns(const void *address) const {
    return address >= stack && address < stack + size;
  }

private:
  char *stack = nullptr;
  size_t size = 0;
#if defined(__x86_64__)
  void *own = nullptr, *scheduler = nullptr;
#else
  static void enter(unsigned high, unsigned low);
  ucontext_t own, scheduler;
  Function function;
  void *context;
#endif
};

/// The memory of `count` stacks, each with a page below that faults when the
/// stack overflows.
class Stacks {
public:
  ~Stacks();
  /// Makes room for `count` stacks; keeps what is there if that suffices.
  void reserve(size_t count);
  char *stack(size_t i) const;
  static size_t size();

private:
  void release();
  char *memory = nullptr;
  size_t count = 0;
};

} // namespace mlir::mp::emulator

#endif // TEST_EMULATOR_FIBER_H
