// What `mpopt explain` says of storage types: of a graph whose passes run now,
// and of a bundle.
// RUN: mpopt explain %s --numerics=relaxed --epsilon=0.2 | FileCheck %s --check-prefix=TEXT
// RUN: mpopt explain %s --numerics=relaxed --epsilon=0 | FileCheck %s --check-prefix=NONE
// RUN: mpopt explain %s --numerics=relaxed --epsilon=0.03 --format=json -o %t.json
// RUN: FileCheck %s --check-prefix=JSON < %t.json
// RUN: mpopt explain %s --numerics=relaxed --format=html -o %t.html
// RUN: FileCheck %s --check-prefix=HTML < %t.html
// RUN: mpopt explain %s | FileCheck %s --check-prefix=PRECISE

// RUN: mkdir -p %t.bundle
// RUN: cp %s %t.bundle/00_import.mlir
// RUN: mpopt %s --mp-partitioned=numerics=relaxed --mlir-print-debuginfo -o %t.bundle/after.mlir
// RUN: echo '{"pipeline": "mp-partitioned{numerics=relaxed epsilon=0.03}"}' > %t.bundle/meta.json
// RUN: mpopt explain %t.bundle | FileCheck %s --check-prefix=BUNDLE
// RUN: echo '{"pipeline": "func.func(mp-normalize,mp-pin,mp-assign-precision{numerics=relaxed min-elements=1000000},mp-apply-precision)"}' > %t.bundle/meta.json
// RUN: mpopt explain %t.bundle | FileCheck %s --check-prefix=LARGE
// RUN: echo '{"pipeline": "mp-partitioned{numerics=relaxed ranges=nothing.json}"}' > %t.bundle/meta.json
// RUN: mpopt explain %t.bundle | FileCheck %s --check-prefix=LOST

// PRECISE: numerics precise
// PRECISE-NOT: storage types
// PRECISE-NOT: stored

// Two products, two tanh and two exp are stored, and of the exp one is pinned
// without need: to round it adds less to the error than epsilon leaves.
// TEXT: numerics relaxed
// TEXT: storage types of joint: f32 or bf16, by a minimum cut over 16 values and 25 reads
// TEXT-NEXT: 13.8 MiB moved and kept, 1.5 MiB of it saved for backward
// TEXT-NEXT: error x 1.{{[0-9]+}} of x 1.200 allowed (epsilon 0.2); value of the cut with the price of error: 13.8 MiB
// TEXT: epsilon {{ *}}moved and kept {{ *}}saved for backward {{ *}}error
// TEXT-NEXT: 0 {{ *}}15.3 MiB {{ *}}100.0 % {{ *}}2.0 MiB {{ *}}100.0 % {{ *}}x 1.000{{$}}
// TEXT: 0.1 {{ *}}13.8 MiB {{ *}}90.2 % {{ *}}1.5 MiB {{ *}}75.0 % {{ *}}x 1.{{[0-9]+}}{{$}}
// TEXT-NEXT: 0.2 {{ *}}13.8 MiB {{ *}}90.2 % {{ *}}1.5 MiB {{ *}}75.0 % {{ *}}x 1.{{[0-9]+}}  chosen
// TEXT: no limit {{ *}}13.8 MiB
// TEXT: without the pins of a rule, each solved again within the same epsilon
// TEXT-NEXT: exponential (2 pins): 768.0 KiB less, 256.0 KiB of it saved for backward, error x 1.{{[0-9]+}}
// TEXT: without one pin
// TEXT-NEXT: exponential, aten.exp.default of layers.1.mlp: 768.0 KiB less
// TEXT: exponential, aten.exp.default of layers.0.mlp: 256.0 KiB less
// TEXT: layers.0.mlp
// TEXT: 2 stored bf16, 512x256 aten.mm.default, 512.0 KiB: aten.mm.default computes it in bf16, as
// TEXT: 1 stored f32, 512x256 aten.exp.default, 512.0 KiB: pinned by exponential (its own result),
// TEXT-NEXT: saved for backward; bf16 would save 1.0 MiB [net.py:7]
// TEXT-NEXT: 1 stored f32, 512x256 aten.add.Tensor in backward, 512.0 KiB: a result of the graph, which its
// TEXT-NEXT: caller gets in f32
// TEXT-NEXT: 1 stored bf16, 512x256 aten.tanh.default, 256.0 KiB: saved for backward, error x 1.{{[0-9]+}}, saves
// TEXT-NEXT: 768.0 KiB [net.py:7]
// TEXT-NEXT: 1 stored bf16, 512x256 aten.add.Tensor, 256.0 KiB: rounded as traced

// NONE: error x 1.000 of x 1.000 allowed (epsilon 0);
// NONE-NEXT: one more percent of error would save about
// NONE: 0 {{ *}}15.3 MiB {{.*}}chosen
// NONE: exponential (2 pins): 1.8 MiB less, {{.*}}, error x {{[0-9.]+}}, which
// NONE-NEXT: epsilon does not allow
// NONE: stored f32, 512x256 aten.tanh.default, 512.0 KiB: its rounding reaches the results, saved for
// NONE-NEXT: backward; bf16 would save 768.0 KiB at an error x 1.{{[0-9]+}}, which the price of error does
// NONE-NEXT: not allow [net.py:7]

// JSON: "placements": [
// JSON-NEXT: {
// JSON-NEXT: "function": "joint",
// JSON-NEXT: "half": "bf16",
// JSON-NEXT: "epsilon": 0.02
// JSON-NEXT: "values": 16,
// JSON-NEXT: "reads": 25,
// JSON-NEXT: "cut_bytes": 16005025,
// JSON-NEXT: "bytes": 16005025,
// JSON-NEXT: "saved_bytes": 2097152,
// JSON-NEXT: "error": 1,
// JSON-NEXT: "error_allowed": 1.03,
// JSON-NEXT: "bytes_per_percent": {{[1-9]}}
// JSON-NEXT: "frontier": [
// JSON: "epsilon": 0.02
// JSON: "epsilon": 0.029
// JSON: "chosen": true
// JSON: "epsilon": null,
// JSON-NEXT: "bytes": 14432161,
// JSON-NEXT: "saved_bytes": 1572864,
// JSON-NEXT: "error": 1.{{[0-9]+}}
// JSON-NEXT: "chosen": false
// JSON: "without_rule": [
// JSON-NEXT: {
// JSON-NEXT: "rule": "exponential",
// JSON-NEXT: "pins": 2,
// JSON: "within": false
// JSON: "without_pin": [
// JSON: "within": false,
// JSON-NEXT: "region": "layers.
// JSON-NEXT: "op": "aten.exp.default",
// JSON-NEXT: "source": "net.py:7",
// JSON-NEXT: "reason": "aten.exp of 512x256: exponentials
// JSON: "path": "layers.0.mlp"
// JSON: "stored": [
// JSON: "op": "aten.tanh.default",
// JSON-NEXT: "shape": "512x256",
// JSON-NEXT: "types": "f32",
// JSON-NEXT: "bytes": 524288,
// JSON-NEXT: "phase": "forward",
// JSON-NEXT: "saved": true,
// JSON-NEXT: "why": "noise",
// JSON-NEXT: "rule": "",
// JSON-NEXT: "error": 1.{{[0-9]+}}
// JSON-NEXT: "saves": 786432,

// No script, no other file; colours come from the style sheet, which has both
// schemes.
// HTML-NOT: {{(src|href)=}}
// HTML-NOT: <script
// HTML: svg .moved { stroke: var(--old); }
// HTML: <h2>Storage types of <code>joint</code></h2>
// HTML: <svg viewBox="0 0 720 330" role="img" aria-label="
// HTML: >chosen</text>
// HTML: <polyline class="line moved" points="76.0,34.0
// HTML: <title>epsilon 0.1: 13.8 MiB moved and kept, error x 1.{{[0-9]+}}</title>
// HTML: <polyline class="line saved" points="76.0,34.0
// HTML: The axis begins at 70 %.
// HTML: <tr class="chosen"><th scope="row">0.05, chosen</th><td class="n">14.5 MiB</td>
// HTML: <caption>Without the pins of a rule
// HTML: x {{[0-9.]+}}, not allowed
// HTML: <caption>What is stored: the largest values</caption>

// BUNDLE: storage types of joint
// BUNDLE-NEXT: 15.3 MiB moved and kept
// BUNDLE-NEXT: epsilon 0.03

// LARGE: numerics relaxed
// LARGE-NOT: storage types

// LOST: note: the choice of storage types is not shown: pipeline
// LOST: nothing.json
func.func @joint(%x: tensor<512x256xf32>, %w: tensor<256x256xbf16>, %t: tensor<512x256xf32> {mp.role = "tangent"})
    -> (tensor<512x256xf32>, tensor<512x256xf32>) {
  %1 = mp.cast %x origin(autocast) : tensor<512x256xf32> to tensor<512x256xbf16> loc(#l0)
  %2 = mp.aten "aten.mm.default"(%1, %w) : (tensor<512x256xbf16>, tensor<256x256xbf16>) -> tensor<512x256xbf16> loc(#l0)
  %3 = mp.cast %2 origin(autocast) : tensor<512x256xbf16> to tensor<512x256xf32> loc(#l0)
  %4 = mp.aten "aten.tanh.default"(%3) : (tensor<512x256xf32>) -> tensor<512x256xf32> loc(#l0)
  %5 = mp.aten "aten.exp.default"(%4) : (tensor<512x256xf32>) -> tensor<512x256xf32> loc(#l0)
  %6 = mp.aten "aten.add.Tensor"(%x, %5) : (tensor<512x256xf32>, tensor<512x256xf32>) -> tensor<512x256xf32> loc(#l0)
  %7 = mp.cast %6 origin(autocast) : tensor<512x256xf32> to tensor<512x256xbf16> loc(#l1)
  %8 = mp.aten "aten.mm.default"(%7, %w) : (tensor<512x256xbf16>, tensor<256x256xbf16>) -> tensor<512x256xbf16> loc(#l1)
  %9 = mp.cast %8 origin(autocast) : tensor<512x256xbf16> to tensor<512x256xf32> loc(#l1)
  %10 = mp.aten "aten.tanh.default"(%9) : (tensor<512x256xf32>) -> tensor<512x256xf32> loc(#l1)
  %11 = mp.aten "aten.exp.default"(%10) : (tensor<512x256xf32>) -> tensor<512x256xf32> loc(#l1)
  %12 = mp.aten "aten.add.Tensor"(%6, %11) : (tensor<512x256xf32>, tensor<512x256xf32>) -> tensor<512x256xf32> loc(#l1)
  %13 = mp.aten "aten.mul.Tensor"(%t, %10) {mp.backward} : (tensor<512x256xf32>, tensor<512x256xf32>) -> tensor<512x256xf32> loc(#l1)
  %14 = mp.aten "aten.mul.Tensor"(%13, %11) {mp.backward} : (tensor<512x256xf32>, tensor<512x256xf32>) -> tensor<512x256xf32> loc(#l1)
  %15 = mp.cast %14 origin(autocast) {mp.backward} : tensor<512x256xf32> to tensor<512x256xbf16> loc(#l1)
  %16 = mp.aten "aten.mm.default"(%15, %w) {mp.backward} : (tensor<512x256xbf16>, tensor<256x256xbf16>) -> tensor<512x256xbf16> loc(#l1)
  %17 = mp.cast %16 origin(autocast) {mp.backward} : tensor<512x256xbf16> to tensor<512x256xf32> loc(#l1)
  %18 = mp.aten "aten.add.Tensor"(%17, %t) {mp.backward} : (tensor<512x256xf32>, tensor<512x256xf32>) -> tensor<512x256xf32> loc(#l1)
  %19 = mp.aten "aten.mul.Tensor"(%18, %4) {mp.backward} : (tensor<512x256xf32>, tensor<512x256xf32>) -> tensor<512x256xf32> loc(#l0)
  %20 = mp.aten "aten.mul.Tensor"(%19, %5) {mp.backward} : (tensor<512x256xf32>, tensor<512x256xf32>) -> tensor<512x256xf32> loc(#l0)
  %21 = mp.cast %20 origin(autocast) {mp.backward} : tensor<512x256xf32> to tensor<512x256xbf16> loc(#l0)
  %22 = mp.aten "aten.mm.default"(%21, %w) {mp.backward} : (tensor<512x256xbf16>, tensor<256x256xbf16>) -> tensor<512x256xbf16> loc(#l0)
  %23 = mp.cast %22 origin(autocast) {mp.backward} : tensor<512x256xbf16> to tensor<512x256xf32> loc(#l0)
  %24 = mp.aten "aten.add.Tensor"(%23, %18) {mp.backward} : (tensor<512x256xf32>, tensor<512x256xf32>) -> tensor<512x256xf32> loc(#l0)
  return %12, %24 : tensor<512x256xf32>, tensor<512x256xf32>
}
#l0 = loc("layers.0.mlp"("net.py":7:0))
#l1 = loc("layers.1.mlp"("net.py":7:0))
