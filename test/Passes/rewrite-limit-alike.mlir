// Rewrites whose records are alike, as in a file without node numbers, count one by one.
// RUN: sed 's/LIMIT/2/' %s | mpopt --pass-pipeline='builtin.module(func.func(mp-eliminate-casts))' | FileCheck %s --check-prefix=TWO
// RUN: sed 's/LIMIT/2/' %s | mpopt --pass-pipeline='builtin.module(func.func(mp-eliminate-casts,mp-eliminate-casts))' | FileCheck %s --check-prefix=TWO

// TWO-COUNT-2: status = "applied"
// TWO-NOT: status = "applied"
#loc = loc(unknown)
func.func @three_round_trips(%x: tensor<4xbf16>) -> tensor<4xbf16> attributes {mp.rewrite_limit = LIMIT : i64} {
  %0 = mp.cast %x origin(user) : tensor<4xbf16> to tensor<4xf32> loc(#loc)
  %1 = mp.cast %0 origin(user) : tensor<4xf32> to tensor<4xbf16> loc(#loc)
  %2 = mp.aten "aten.exp.default"(%1) : (tensor<4xbf16>) -> tensor<4xbf16> loc(#loc)
  %3 = mp.cast %2 origin(user) : tensor<4xbf16> to tensor<4xf32> loc(#loc)
  %4 = mp.cast %3 origin(user) : tensor<4xf32> to tensor<4xbf16> loc(#loc)
  %5 = mp.aten "aten.sin.default"(%4) : (tensor<4xbf16>) -> tensor<4xbf16> loc(#loc)
  %6 = mp.cast %5 origin(user) : tensor<4xbf16> to tensor<4xf32> loc(#loc)
  %7 = mp.cast %6 origin(user) : tensor<4xf32> to tensor<4xbf16> loc(#loc)
  return %7 : tensor<4xbf16>
}
