//===- MPAtenOps.td - operators of the framework, as they are -------------===//

#ifndef MP_ATEN_OPS_TD
#define MP_ATEN_OPS_TD

include "dialect/IR/MPBase.td"

def MP_AtenOp : MP_Op<"aten", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    DeclareOpInterfaceMethods<MP_PrecisionOpInterface>]> {
  let summary = "Call a framework operator by its overload name";
  let description = [{
    The carrier of every operator that has no operation of its own. Operands
    are the tensors and symbolic numbers among the arguments, in schema order.
    `args` names all other arguments; in it, the string `"%k"` stands for
    operand k, so that lists and optional arguments keep their places. With
    `effects` the operation may do anything and is never moved or erased.

    Legal:

    ```mlir
    %1 = mp.aten "aten.sum.dim_IntList"(%0) {args = {dim = [1], keepdim = true}}
        : (tensor<4x8xf32>) -> tensor<4x1xf32>
    %2 = mp.aten "aten.view.default"(%1, %s) {args = {size = ["%1", 1]}}
        : (tensor<4x1xf32>, index) -> tensor<?x1xf32>
    ```

    Illegal, because the callee has no overload (aten_c1):

    ```mlir
    %1 = mp.aten "relu"(%0) : (tensor<4xf32>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins StrAttr:$callee, Variadic<AnyType>:$operands,
                       OptionalAttr<DictionaryAttr>:$args, UnitAttr:$effects);
  let results = (outs Variadic<AnyType>:$outputs);
  let assemblyFormat = [{
    (`effects` $effects^)? $callee `(` $operands `)` attr-dict
    `:` functional-type($operands, $outputs)
  }];
  let hasVerifier = 1;
}

#endif // MP_ATEN_OPS_TD
