//===- MPCastOps.td - dtype conversions -----------------------------------===//

#ifndef MP_CAST_OPS_TD
#define MP_CAST_OPS_TD

include "dialect/IR/MPBase.td"

def MP_CastOp : MP_Op<"cast", [Pure, SameOperandsAndResultShape,
    MP_PrecisionOpInterface]> {
  let summary = "Convert every element to another element type";
  let description = [{
    The only dtype conversion. `origin` says who asked for it; a pass may drop
    a rounding of `autocast`, `promotion` or `decomposition` under the contract
    `precise`, and one of `user` never.

    Legal:

    ```mlir
    %1 = mp.cast %0 origin(autocast) : tensor<4x?xf32> to tensor<4x?xbf16>
    ```

    Illegal, because the shapes differ (cast_c1):

    ```mlir
    %1 = mp.cast %0 origin(user) : tensor<4xf32> to tensor<8xbf16>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input, MP_CastOriginAttr:$origin);
  let results = (outs AnyRankedTensor:$output);
  let assemblyFormat = [{
    $input `origin` `` custom<Origin>($origin) attr-dict
    `:` type($input) `to` type($output)
  }];
  let builders = [OpBuilder<(ins "Value":$input, "Type":$elementType,
                                 "CastOrigin":$origin)>];
  let hasFolder = 1;
  let hasCanonicalizer = 1;
  let extraClassDeclaration = [{
    OpKind getOpKind() { return OpKind::Pointwise; }
    bool observesRounding(unsigned operand);
    /// Element type of the input or output.
    Type getFrom() { return getInput().getType().getElementType(); }
    Type getTo() { return getOutput().getType().getElementType(); }
    /// True if no value changes: every input value is an output value.
    bool isExact() { return isExactConversion(getFrom(), getTo()); }
  }];
}

def MP_RoundOp : MP_Op<"round", [Pure, AllTypesMatch<["input", "output"]>,
    MP_PrecisionOpInterface]> {
  let summary = "Round every element to a narrower format, keep the type";
  let description = [{
    What a narrowing and a widening conversion mean together. As one operation
    it cannot be taken for two conversions that cancel.

    Legal:

    ```mlir
    %1 = mp.round %0 to bf16 origin(user) : tensor<4xf32>
    ```

    Illegal, because every f16 value is an f32 value already (round_c1):

    ```mlir
    %1 = mp.round %0 to f32 origin(user) : tensor<4xf16>
    ```
  }];
  let arguments = (ins MP_FloatTensor:$input, TypeAttr:$format,
                       MP_CastOriginAttr:$origin);
  let results = (outs MP_FloatTensor:$output);
  let assemblyFormat = [{
    $input `to` $format `origin` `` custom<Origin>($origin) attr-dict
    `:` type($input)
  }];
  let hasFolder = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    OpKind getOpKind() { return OpKind::Pointwise; }
    bool observesRounding(unsigned operand);
  }];
}

def MP_MaterializeOp : MP_Op<"materialize", [Pure,
    AllTypesMatch<["input", "output"]>, MP_PrecisionOpInterface]> {
  let summary = "Store a value in its own shape before it is read";
  let description = [{
    The identity, and a wish about memory: the value is to be stored here, in
    this shape, so that the conversion that makes it joins the kernel of its
    producer. A fuser that reads it through a reshape would otherwise compute it
    in the reader's shape, in a kernel of its own.

    Legal:

    ```mlir
    %1 = mp.materialize %0 : tensor<4x256x768xbf16>
    ```

    Illegal, because a wish changes no type (materialize_c1):

    ```mlir
    %1 = "mp.materialize"(%0) : (tensor<4xf32>) -> tensor<4xbf16>
    ```
  }];
  let arguments = (ins AnyTensor:$input);
  let results = (outs AnyTensor:$output);
  let assemblyFormat = "$input attr-dict `:` type($input)";
  let hasFolder = 1;
  let extraClassDeclaration = [{
    OpKind getOpKind() { return OpKind::Reshape; }
  }];
}

#endif // MP_CAST_OPS_TD
