// RUN: mpopt %s --mp-eliminate-casts=numerics=strict | FileCheck %s

// CHECK-LABEL: func.func @equal_casts
// CHECK: %[[C:.*]] = mp.cast %arg0 origin(autocast)
// CHECK-NOT: mp.cast %
// CHECK: mp.aten "aten.mm.default"(%[[C]], %[[C]])
func.func @equal_casts(%w: tensor<?x8xf32>) -> tensor<?x8xbf16> {
  %0 = mp.cast %w origin(autocast) : tensor<?x8xf32> to tensor<?x8xbf16>
  %1 = mp.cast %w origin(autocast) : tensor<?x8xf32> to tensor<?x8xbf16>
  %2 = mp.aten "aten.mm.default"(%0, %1) : (tensor<?x8xbf16>, tensor<?x8xbf16>) -> tensor<?x8xbf16>
  return %2 : tensor<?x8xbf16>
}

// What the user wrote stays what the user wrote, in either order.
// CHECK-LABEL: func.func @user_wins
// CHECK: mp.cast %arg0 origin(user)
// CHECK-NOT: mp.cast %
func.func @user_wins(%x: tensor<4xf32>) -> tensor<4xbf16> {
  %0 = mp.cast %x origin(autocast) : tensor<4xf32> to tensor<4xbf16>
  %1 = mp.cast %x origin(user) : tensor<4xf32> to tensor<4xbf16>
  %2 = mp.aten "aten.add.Tensor"(%0, %1) : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<4xbf16>
  return %2 : tensor<4xbf16>
}

// Integer to float is a conversion like another.
// CHECK-LABEL: func.func @integers
// CHECK-COUNT-1: mp.cast %
// CHECK-NOT: mp.cast %
func.func @integers(%i: tensor<4xi64>) -> tensor<4xf32> {
  %0 = mp.cast %i origin(user) : tensor<4xi64> to tensor<4xf32>
  %1 = mp.cast %i origin(user) : tensor<4xi64> to tensor<4xf32>
  %2 = mp.aten "aten.add.Tensor"(%0, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// CHECK-LABEL: func.func @not_shared_two_halves
// CHECK-COUNT-2: mp.cast %
func.func @not_shared_two_halves(%x: tensor<4xf32>) -> (tensor<4xbf16>, tensor<4xf16>) {
  %0 = mp.cast %x origin(autocast) : tensor<4xf32> to tensor<4xbf16>
  %1 = mp.cast %x origin(autocast) : tensor<4xf32> to tensor<4xf16>
  return %0, %1 : tensor<4xbf16>, tensor<4xf16>
}

// Forward would have to keep the copy for backward, though its source, here a
// weight, is alive anyway.
// CHECK-LABEL: func.func @not_shared_phases_differ
// CHECK: mp.cast %arg0 origin(autocast) : tensor<8x8xf32>
// CHECK: mp.cast %arg0 origin(autocast) {mp.backward} : tensor<8x8xf32>
func.func @not_shared_phases_differ(%w: tensor<8x8xf32> {mp.role = "parameter"}, %g: tensor<8x8xbf16>) -> (tensor<8x8xbf16>, tensor<8x8xbf16>) {
  %0 = mp.cast %w origin(autocast) : tensor<8x8xf32> to tensor<8x8xbf16>
  %1 = mp.aten "aten.mm.default"(%g, %0) : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  %2 = mp.cast %w origin(autocast) {mp.backward} : tensor<8x8xf32> to tensor<8x8xbf16>
  %3 = mp.aten "aten.mm.default"(%g, %2) {mp.backward} : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
  return %1, %3 : tensor<8x8xbf16>, tensor<8x8xbf16>
}

// A checkpointed region repeats its own conversions.
// CHECK-LABEL: func.func @not_shared_regions_differ
// CHECK-COUNT-3: mp.cast %
func.func @not_shared_regions_differ(%x: tensor<4xf32>) -> (tensor<4xbf16>, tensor<4xbf16>, tensor<4xbf16>) {
  %0 = mp.cast %x origin(autocast) : tensor<4xf32> to tensor<4xbf16>
  %1 = mp.cast %x origin(autocast) {mp.recompute = 0} : tensor<4xf32> to tensor<4xbf16>
  %2 = mp.cast %x origin(autocast) {mp.recompute = 1} : tensor<4xf32> to tensor<4xbf16>
  %3 = mp.aten "aten.exp.default"(%1) : (tensor<4xbf16>) -> tensor<4xbf16>
  %4 = mp.aten "aten.exp.default"(%2) : (tensor<4xbf16>) -> tensor<4xbf16>
  return %0, %3, %4 : tensor<4xbf16>, tensor<4xbf16>, tensor<4xbf16>
}

// Two outputs would be one tensor.
// CHECK-LABEL: func.func @not_shared_outputs
// CHECK-COUNT-2: mp.cast %
func.func @not_shared_outputs(%x: tensor<4xf32>) -> (tensor<4xbf16>, tensor<4xbf16>) {
  %0 = mp.cast %x origin(user) : tensor<4xf32> to tensor<4xbf16>
  %1 = mp.cast %x origin(user) : tensor<4xf32> to tensor<4xbf16>
  return %0, %1 : tensor<4xbf16>, tensor<4xbf16>
}

// An operator promotes by itself; a shared copy would be stored.
// CHECK-LABEL: func.func @not_shared_promotions
// CHECK-COUNT-2: mp.cast %
func.func @not_shared_promotions(%x: tensor<4xbf16>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mp.cast %x origin(promotion) {mp.implicit} : tensor<4xbf16> to tensor<4xf32>
  %1 = mp.aten "aten.add.Tensor"(%0, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = mp.cast %x origin(promotion) {mp.implicit} : tensor<4xbf16> to tensor<4xf32>
  %3 = mp.aten "aten.mul.Tensor"(%2, %1) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %3 : tensor<4xf32>
}
