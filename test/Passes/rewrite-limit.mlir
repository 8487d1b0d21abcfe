// mp.rewrite_limit applies the first n rewrites, over all passes together.
// RUN: sed 's/LIMIT/0/' %s | mpopt --mp-default | FileCheck %s --check-prefix=ZERO
// RUN: sed 's/LIMIT/1/' %s | mpopt --mp-default | FileCheck %s --check-prefix=ONE
// RUN: sed 's/LIMIT/2/' %s | mpopt --mp-default | FileCheck %s --check-prefix=TWO
// RUN: sed 's/LIMIT/9/' %s | mpopt --mp-default | FileCheck %s --check-prefix=ALL
// A second run counts what the first one applied.
// RUN: sed 's/LIMIT/1/' %s | mpopt --mp-default --mp-default | FileCheck %s --check-prefix=ONE

// ZERO-NOT: status = "applied"
// ZERO-COUNT-6: mp.cast %
// ONE-COUNT-1: status = "applied"
// ONE-NOT: status = "applied"
// TWO-COUNT-2: status = "applied"
// TWO-NOT: status = "applied"
// ALL-COUNT-3: status = "applied"
// ALL-NOT: status = "applied"
// ALL-NOT: mp.cast %
func.func @three_round_trips(%x: tensor<4xbf16>) -> tensor<4xbf16> attributes {mp.rewrite_limit = LIMIT : i64} {
  %0 = mp.cast %x origin(user) : tensor<4xbf16> to tensor<4xf32>
  %1 = mp.cast %0 origin(user) : tensor<4xf32> to tensor<4xbf16>
  %2 = mp.aten "aten.exp.default"(%1) : (tensor<4xbf16>) -> tensor<4xbf16>
  %3 = mp.cast %2 origin(user) : tensor<4xbf16> to tensor<4xf32>
  %4 = mp.cast %3 origin(user) : tensor<4xf32> to tensor<4xbf16>
  %5 = mp.aten "aten.sin.default"(%4) : (tensor<4xbf16>) -> tensor<4xbf16>
  %6 = mp.cast %5 origin(user) : tensor<4xbf16> to tensor<4xf32>
  %7 = mp.cast %6 origin(user) : tensor<4xf32> to tensor<4xbf16>
  %8 = mp.aten "aten.cos.default"(%7) : (tensor<4xbf16>) -> tensor<4xbf16>
  return %8 : tensor<4xbf16>
}
