//===- Fiber.cpp - stacks that take turns on one host thread --------------===//

#include "test/emulator/Fiber.h"
#include "llvm/Support/ErrorHandling.h"

#include <cstdint>
#include <sys/mman.h>

using namespace mlir::mp::emulator;

static constexpr size_t stackBytes = 256 << 10;
static constexpr size_t guardBytes = 16 << 10;

//===----------------------------------------------------------------------===//
// Switching
//===----------------------------------------------------------------------===//

#if defined(__x86_64__)

// Saves the callee-saved registers on this stack, changes stacks and restores.
// ucontext would make a system call for each switch, 20 times the cost.
extern "C" void mpEmulatorSwitch(void **saved, void *next);
extern "C" void mpEmulatorEnter();
__asm__(R"(
.text
.hidden mpEmulatorSwitch
.globl mpEmulatorSwitch
mpEmulatorSwitch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.hidden mpEmulatorEnter
.globl mpEmulatorEnter
mpEmulatorEnter:
  andq $-16, %rsp
  movq %r12, %rdi
  callq *%rbx
  ud2
)");

void Fiber::prepare(char *stack, size_t size, Function function,
                    void *context) {
  this->stack = stack;
  this->size = size;
  // What the first switch pops: r15, r14, r13, r12, rbx, rbp, return address.
  auto top = reinterpret_cast<uintptr_t>(stack + size) & ~uintptr_t(15);
  auto *frame = reinterpret_cast<void **>(top) - 8;
  frame[0] = frame[1] = frame[2] = frame[5] = nullptr;
  frame[3] = context;
  frame[4] = reinterpret_cast<void *>(function);
  frame[6] = reinterpret_cast<void *>(&mpEmulatorEnter);
  frame[7] = nullptr;
  own = frame;
}

void Fiber::resume() { mpEmulatorSwitch(&scheduler, own); }
void Fiber::pause() { mpEmulatorSwitch(&own, scheduler); }

#else

void Fiber::enter(unsigned high, unsigned low) {
  auto address = uintptr_t(uint64_t(high) << 32 | low);
  auto *fiber = reinterpret_cast<Fiber *>(address);
  fiber->function(fiber->context);
  llvm_unreachable("a fiber ends with a pause");
}

void Fiber::prepare(char *stack, size_t size, Function function,
                    void *context) {
  this->stack = stack;
  this->size = size;
  this->function = function;
  this->context = context;
  getcontext(&own);
  own.uc_stack.ss_sp = stack;
  own.uc_stack.ss_size = size;
  own.uc_link = nullptr;
  auto address = uint64_t(reinterpret_cast<uintptr_t>(this));
  makecontext(&own, reinterpret_cast<void (*)()>(&Fiber::enter), 2,
              unsigned(address >> 32), unsigned(address));
}

void Fiber::resume() { swapcontext(&scheduler, &own); }
void Fiber::pause() { swapcontext(&own, &scheduler); }

#endif

//===----------------------------------------------------------------------===//
// Stacks
//===----------------------------------------------------------------------===//

size_t Stacks::size() { return stackBytes; }

Stacks::~Stacks() { release(); }

void Stacks::release() {
  if (memory)
    munmap(memory, count * (stackBytes + guardBytes));
  memory = nullptr;
  count = 0;
}

void Stacks::reserve(size_t wanted) {
  if (wanted <= count)
    return;
  release();
  size_t bytes = wanted * (stackBytes + guardBytes);
  void *mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    llvm::report_fatal_error("emulator: no memory for the threads' stacks");
  memory = static_cast<char *>(mapped);
  count = wanted;
  for (size_t i = 0; i != count; ++i)
    mprotect(memory + i * (stackBytes + guardBytes), guardBytes, PROT_NONE);
}

char *Stacks::stack(size_t i) const {
  return memory + i * (stackBytes + guardBytes) + guardBytes;
}
