//===- MPUpdateOps.td - the update of parameters --------------------------===//

#ifndef MP_UPDATE_OPS_TD
#define MP_UPDATE_OPS_TD

include "dialect/IR/MPBase.td"

def MP_ScaledUpdateOp : MP_Op<"scaled_update", [Pure, IsolatedFromAbove,
    SingleBlock, MP_PrecisionOpInterface]> {
  let summary = "Update a parameter in one sweep over memory";
  let description = [{
    All that is elementwise between a gradient and the new values of a parameter,
    its optimizer states and its half copy: unscaling, clipping, decay, the
    update itself and conversions. Each element of the results depends on the
    same element of the operands and on operands of no dimension, such as a loss
    scale, a clip factor or a learning rate. The body says how; it is the traced
    program, so that any elementwise optimizer fits.

    Legal:

    ```mlir
    %w1, %half = mp.scaled_update(%g, %inv, %w) : (tensor<8xf32>, tensor<f32>, tensor<8xf32>)
        -> (tensor<8xf32>, tensor<8xbf16>) {
    ^bb0(%a: tensor<8xf32>, %s: tensor<f32>, %b: tensor<8xf32>):
      %0 = mp.aten "aten.mul.Tensor"(%a, %s) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
      %1 = mp.aten "aten.add.Tensor"(%b, %0) {args = {alpha = -0.1}}
          : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      %2 = mp.cast %1 origin(user) : tensor<8xf32> to tensor<8xbf16>
      mp.yield %1, %2 : tensor<8xf32>, tensor<8xbf16>
    }
    ```

    Illegal: a sum over elements in the body (scaled_update_c3), for no sweep
    could do it on the way.
  }];
  let arguments = (ins Variadic<AnyType>:$operands);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `(` $operands `)` attr-dict `:` functional-type($operands, $outputs) $body
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    OpKind getOpKind() { return OpKind::Unknown; }
  }];
}

def MP_YieldOp : MP_Op<"yield", [Pure, Terminator,
    ParentOneOf<["RegionOp", "ScaledUpdateOp"]>]> {
  let summary = "End the body of a region or scaled_update with its results";
  let description = [{
    Legal, where the operation around it has these two results:

    ```mlir
    mp.yield %1, %2 : tensor<8xf32>, tensor<8xbf16>
    ```

    Illegal: another number of values, or other types, than the results of the
    operation around it (scaled_update_c2); outside of such an operation
    (yield_c1).
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$values);
  let assemblyFormat = "$values attr-dict `:` type($values)";
}

#endif // MP_UPDATE_OPS_TD
