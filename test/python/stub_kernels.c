// Kernels by hand, as the code generator would make them: for tests of the
// launch path that must not depend on it. See runtime/Kernel.h.
#include <stdint.h>
#include <string.h>

typedef struct {
  int32_t phases;
  int64_t (*scratchBytes)(const int64_t *sizes, int32_t threads);
  int64_t (*tasks)(int32_t phase, const int64_t *sizes, int32_t threads);
  void (*run)(int32_t phase, int64_t begin, int64_t end, void *const *buffers,
              const int64_t *sizes, void *scratch, int32_t threads);
} CpuKernel;

enum { kColumns = 5 };

static int64_t noScratch(const int64_t *sizes, int32_t threads) {
  (void)sizes, (void)threads;
  return 0;
}

// scaled: (x: ?x5, w: 5) -> (x * w: ?x5). A task is a row.
static int64_t rows(int32_t phase, const int64_t *sizes, int32_t threads) {
  (void)phase, (void)threads;
  return sizes[0];
}

static void scale(int32_t phase, int64_t begin, int64_t end,
                  void *const *buffers, const int64_t *sizes, void *scratch,
                  int32_t threads) {
  (void)phase, (void)sizes, (void)scratch, (void)threads;
  const float *x = buffers[0], *w = buffers[1];
  float *y = buffers[2];
  for (int64_t r = begin; r != end; ++r)
    for (int c = 0; c != kColumns; ++c)
      y[r * kColumns + c] = x[r * kColumns + c] * w[c];
}

CpuKernel scaled = {1, noScratch, rows, scale};

// summed: (x: ?x5) -> (row sums: ?, sum of them: f32 without dimensions), in two
// phases: row sums to a result and to scratch memory, then their sum.
static int64_t rowScratch(const int64_t *sizes, int32_t threads) {
  (void)threads;
  return sizes[0] * (int64_t)sizeof(double);
}

static int64_t rowsThenOne(int32_t phase, const int64_t *sizes,
                           int32_t threads) {
  (void)threads;
  return phase == 0 ? sizes[0] : 1;
}

static void sum(int32_t phase, int64_t begin, int64_t end, void *const *buffers,
                const int64_t *sizes, void *scratch, int32_t threads) {
  (void)threads;
  const float *x = buffers[0];
  double *partial = scratch, total = 0;
  if (phase == 0) {
    for (int64_t r = begin; r != end; ++r) {
      partial[r] = 0;
      for (int c = 0; c != kColumns; ++c)
        partial[r] += x[r * kColumns + c];
      ((float *)buffers[1])[r] = (float)partial[r];
    }
    return;
  }
  for (int64_t r = 0; r != sizes[0]; ++r)
    total += partial[r];
  *(float *)buffers[2] = (float)total;
}

CpuKernel summed = {2, rowScratch, rowsThenOne, sum};
