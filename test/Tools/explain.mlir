// What `mpopt explain` says of a graph, in its three formats.
// RUN: mpopt explain %s | FileCheck %s --check-prefix=TEXT
// RUN: mpopt explain %s --numerics=strict --format=json -o %t.json
// RUN: FileCheck %s --check-prefix=JSON < %t.json
// RUN: mpopt explain %s --format=html | FileCheck %s --check-prefix=HTML

// Of a bundle, the contract is that of the passes of the backend, which meta.json names.
// RUN: mkdir -p %t.bundle
// RUN: cp %s %t.bundle/00_import.mlir
// RUN: mpopt %s --mp-default --mlir-print-debuginfo -o %t.bundle/after.mlir
// RUN: echo '{"pipeline": "mp-default{numerics=strict}"}' > %t.bundle/meta.json
// RUN: mpopt explain %t.bundle | FileCheck %s --check-prefix=STRICT
// RUN: mpopt explain %t.bundle --format=json | FileCheck %s --check-prefix=JSON
// RUN: echo '{"pipeline": "func.func(mp-place-stores)"}' > %t.bundle/meta.json
// RUN: mpopt explain %t.bundle | FileCheck %s --check-prefix=STRICT
// RUN: echo '{"pipeline": ""}' > %t.bundle/meta.json
// RUN: mpopt explain %t.bundle | FileCheck %s --check-prefix=STRICT
// RUN: echo '{"pipeline": "mp-default"}' > %t.bundle/meta.json
// RUN: mpopt explain %t.bundle | FileCheck %s --check-prefix=TEXT
// RUN: echo '{"pipeline": "mp-update,func.func(mp-remove-loss-scale)"}' > %t.bundle/meta.json
// RUN: mpopt explain %t.bundle | FileCheck %s --check-prefix=RELAXED
// RUN: not mpopt explain %t.bundle --numerics=strict 2>&1 | FileCheck %s --check-prefix=GIVEN
// RUN: rm %t.bundle/meta.json
// RUN: mpopt explain %t.bundle | FileCheck %s --check-prefix=UNKNOWN

// STRICT: 8 operations, target cpu, numerics strict
// RELAXED: 8 operations, target cpu, numerics relaxed
// GIVEN: mpopt: error: --numerics: the passes of a bundle have run; leave it out, or name its file '00_import.mlir'
// UNKNOWN: 8 operations, target cpu{{$}}

// Widening and narrowing back cancels in both layers; the weight's conversion
// and the output's stay. Equal layers are told once.
// TEXT: 8 operations, target cpu, numerics precise
// TEXT: all {{ *}}6 {{ *}}1.3 KiB {{ *}}2 {{ *}}576 B
// TEXT: weight {{ *}}1
// TEXT: layers.[0,1] (2 regions)
// TEXT-NEXT: 4 -> 0 conversions, 768 B -> -
// TEXT-NEXT: 2 x fold-exact-round-trip (strict): bf16 to f32 is exact
// TEXT: head
// TEXT: 1 left f32 -> bf16, 8x8 weight, 384 B: autocast asked for
// TEXT: 1 left bf16 -> f32, 4x8 activation, 192 B: user asked for
// TEXT: [net.py:9]
// TEXT: note: no rule for: mylib.scale.default (1)

// JSON: "schema": 1
// JSON: "numerics": "strict"
// JSON: "total":
// JSON-NEXT: "before":
// JSON-NEXT: "casts": 6,
// JSON-NEXT: "bytes": 1344,
// JSON: "unknown_operators": {
// JSON-NEXT: "mylib.scale.default": 1
// JSON: "path": "layers.0"
// JSON: "rule": "fold-exact-round-trip"

// HTML: <!doctype html>
// HTML-NOT: {{(src|href)=}}
// HTML-NOT: <script
// HTML: <h1>Conversions in
// HTML: <caption>By phase and role</caption>
// HTML: <th scope="row">weight</th><td class="n">1</td><td class="n">384 B</td>
// HTML: <summary><code>layers.[0,1]</code><span>2 regions, 4 → 0 conversions
// HTML: </html>

#l0 = loc("layers.0"("net.py":3:0))
#l1 = loc("layers.1"("net.py":3:0))
#head = loc("head"("net.py":9:0))
module {
  func.func @f(%x: tensor<4x8xbf16>, %w: tensor<8x8xf32> {mp.role = "parameter"})
      -> tensor<4x8xf32> attributes {mp.target = "cpu"} {
    %a = mp.cast %x origin(autocast) : tensor<4x8xbf16> to tensor<4x8xf32> loc(#l0)
    %b = mp.cast %a origin(autocast) : tensor<4x8xf32> to tensor<4x8xbf16> loc(#l0)
    %p = mp.aten "mylib.scale.default"(%b) : (tensor<4x8xbf16>) -> tensor<4x8xbf16> loc(#head)
    %c = mp.cast %p origin(autocast) : tensor<4x8xbf16> to tensor<4x8xf32> loc(#l1)
    %d = mp.cast %c origin(autocast) : tensor<4x8xf32> to tensor<4x8xbf16> loc(#l1)
    %v = mp.cast %w origin(autocast) : tensor<8x8xf32> to tensor<8x8xbf16> loc(#head)
    %m = mp.aten "aten.mm.default"(%d, %v) : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16> loc(#head)
    %y = mp.cast %m origin(user) : tensor<4x8xbf16> to tensor<4x8xf32> loc(#head)
    return %y : tensor<4x8xf32>
  }
}
