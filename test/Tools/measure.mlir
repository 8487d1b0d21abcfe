// How far the passes move the results, by the reference interpreter.
// RUN: mpopt measure %s --pipeline='func.func(mp-normalize,mp-eliminate-casts{numerics=strict})' | FileCheck %s --check-prefix=STRICT
// RUN: mpopt measure %s --pipeline='func.func(mp-normalize,mp-eliminate-casts{numerics=precise})' | FileCheck %s --check-prefix=PRECISE
// RUN: mpopt measure %s --pipeline='func.func(mp-normalize,mp-eliminate-casts{numerics=precise})' --limit=1 --format=json | FileCheck %s --check-prefix=ONE
// RUN: mpopt measure %s --pipeline='func.func(mp-normalize,mp-eliminate-casts{numerics=precise})' --limit=0 --format=json | FileCheck %s --check-prefix=NONE
// RUN: mpopt measure %s --pipeline='func.func(mp-normalize)' | FileCheck %s --check-prefix=NOTHING
// RUN: mpopt measure %s --numerics=strict --limit=0 | FileCheck %s --check-prefix=NOTHING
// RUN: not mpopt measure %s --trials=0 2>&1 | FileCheck %s --check-prefix=TRIALS
// RUN: not mpopt measure %s --limit=-1 2>&1 | FileCheck %s --check-prefix=LIMIT
// RUN: not mpopt measure %s --pipeline=mp-nothing 2>&1 | FileCheck %s --check-prefix=PIPELINE
// RUN: echo 'module {}' > %t.mlir
// RUN: not mpopt measure %t.mlir 2>&1 | FileCheck %s --check-prefix=EMPTY

// 1/3 in bf16 is 0.333984375, which is 1/3 * (1 + 2^-9). The largest magnitude
// is 1/3, or its rounding where the graph before is the measure.
// STRICT: 1 rewrites, 3 inputs
// STRICT-NEXT: distance from the graph before {{ *}}0.000e+00
// STRICT-NEXT: error against f64, before {{ *}}1.953e-03
// STRICT-NEXT: error against f64, after {{ *}}1.953e-03

// PRECISE: 2 rewrites, 3 inputs
// PRECISE-NEXT: distance from the graph before {{ *}}1.949e-03
// PRECISE-NEXT: error against f64, before {{ *}}1.953e-03
// PRECISE-NEXT: error against f64, after {{ *}}0.000e+00

// ONE: "distance":
// ONE: "number": 1
// ONE-NEXT: "pass": "mp-eliminate-casts"
// ONE: "source": "net.py:{{[37]}}"
// ONE-NOT: "number": 2

// NONE: "distance": 0,
// NONE-NOT: "number"

// NOTHING: 0 rewrites
// NOTHING-NEXT: distance from the graph before {{ *}}0.000e+00

// TRIALS: mpopt: error: option '--trials' takes an integer from 1, not '0'
// LIMIT: mpopt: error: option '--limit' takes an integer from 0, not '-1'
// PIPELINE: mpopt: error: pipeline 'mp-nothing': {{.*}}mp-nothing
// EMPTY: mpopt: error: {{.*}}.mlir: has 0 functions; one is needed

#a = loc("layers.0"("net.py":3:0))
#b = loc("layers.1"("net.py":7:0))
func.func @f(%x: tensor<2xbf16>, %y: tensor<2xf32> {mp.value = dense<[0.333333343, 0.25]> : tensor<2xf32>}) -> (tensor<2xbf16>, tensor<2xf32>) {
  %0 = mp.cast %x origin(user) : tensor<2xbf16> to tensor<2xf32> loc(#a)
  %1 = mp.cast %0 origin(user) : tensor<2xf32> to tensor<2xbf16> loc(#a)
  %z = mp.aten "aten.neg.default"(%1) : (tensor<2xbf16>) -> tensor<2xbf16> loc(#a)
  %2 = mp.cast %y origin(autocast) : tensor<2xf32> to tensor<2xbf16> loc(#b)
  %3 = mp.cast %2 origin(autocast) : tensor<2xbf16> to tensor<2xf32> loc(#b)
  %4 = mp.aten "aten.neg.default"(%3) : (tensor<2xf32>) -> tensor<2xf32> loc(#b)
  return %z, %4 : tensor<2xbf16>, tensor<2xf32>
}
