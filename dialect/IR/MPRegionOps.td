//===- MPRegionOps.td - what a kernel of our own computes -----------------===//

#ifndef MP_REGION_OPS_TD
#define MP_REGION_OPS_TD

include "dialect/IR/MPBase.td"

def MP_KernelKind : I32EnumAttr<"KernelKind", "what a kernel is built around", [
    I32EnumAttrCase<"matmul", 0>,
    I32EnumAttrCase<"rows", 1>]> {
  let cppNamespace = "::mlir::mp";
}

def MP_RegionOp : MP_Op<"region", [Pure, IsolatedFromAbove, SingleBlock,
    MP_PrecisionOpInterface]> {
  let summary = "Compute a hot region of the graph in one kernel";
  let description = [{
    Operations of the traced graph that one kernel of our own computes: a matrix
    product with what comes after it (`matmul`), or stages over the rows of a
    matrix (`rows`). The body is the traced program, so that each operation in
    it rounds as it does outside, up to the order of sums; `mp-inline-regions`
    gives the graph back as it was. `name` says in short what it holds; `kernel`
    is the text of the kernel's module once `mp-lower-regions-to-linalg` has
    run.

    Legal:

    ```mlir
    %y = mp.region matmul "linear_relu" (%x, %w) : (tensor<4x8xbf16>, tensor<8x2xbf16>)
        -> tensor<4x2xbf16> {
    ^bb0(%a: tensor<4x8xbf16>, %b: tensor<8x2xbf16>):
      %0 = mp.matmul %a, %b : (tensor<4x8xbf16>, tensor<8x2xbf16>) -> tensor<4x2xbf16>
      %1 = mp.aten "aten.relu.default"(%0) : (tensor<4x2xbf16>) -> tensor<4x2xbf16>
      mp.yield %1 : tensor<4x2xbf16>
    }
    ```

    Illegal: a region of kind `matmul` without a matrix product (region_c4).
  }];
  let arguments = (ins MP_KernelKind:$kind, StrAttr:$name,
                       OptionalAttr<StrAttr>:$kernel,
                       Variadic<AnyType>:$operands);
  let results = (outs Variadic<AnyRankedTensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $kind $name ` ` `(` $operands `)` attr-dict `:`
    functional-type($operands, $outputs) $body
  }];
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    OpKind getOpKind() { return OpKind::Unknown; }
    /// The values that the body gives, in the order of the results.
    OperandRange getYielded() {
      return getBody().front().getTerminator()->getOperands();
    }
  }];
}

#endif // MP_REGION_OPS_TD
