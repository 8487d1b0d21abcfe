//===- MPRaisedOps.td - operators that precision turns on -----------------===//
//
// Each raises exactly one framework operator (RaisedOps.def) and lowers back to
// it unchanged. `args` holds the operator's other arguments, verbatim.
//
//===----------------------------------------------------------------------===//

#ifndef MP_RAISED_OPS_TD
#define MP_RAISED_OPS_TD

include "dialect/IR/MPBase.td"

class MP_RaisedOp<string mnemonic, string kind>
    : MP_Op<mnemonic, [Pure,
        MP_PrecisionOpInterface]> {
  let arguments = (ins Variadic<AnyType>:$operands,
                       OptionalAttr<DictionaryAttr>:$args);
  let results = (outs Variadic<AnyType>:$outputs);
  let assemblyFormat = [{
    `(` $operands `)` attr-dict `:` functional-type($operands, $outputs)
  }];
  let extraClassDeclaration = [{
    OpKind getOpKind() { return OpKind::}] # kind # [{; }
  }];
}

def MP_MatmulOp : MP_Op<"matmul", [Pure,
    MP_PrecisionOpInterface]> {
  let summary = "Multiply matrices with an f32 accumulator";
  let description = [{
    `mm`, `bmm`, `addmm` and `baddbmm` with float operands. Products are summed
    in f32 (f64 for f64), `bias` is added to the accumulator and the sum is
    rounded once to the result type, which may be wider than the operands'.

    Legal:

    ```mlir
    %1 = mp.matmul %a, %b : (tensor<4x8xbf16>, tensor<8x2xbf16>) -> tensor<4x2xf32>
    ```

    Illegal, because the operand types differ (matmul_c1): PyTorch refuses it
    too, and a silent fix would hide a bug of the model.

    ```mlir
    %1 = mp.matmul %a, %b : (tensor<4x8xf16>, tensor<8x2xf32>) -> tensor<4x2xf32>
    ```
  }];
  let arguments = (ins MP_FloatTensor:$lhs, MP_FloatTensor:$rhs,
                       Optional<MP_FloatTensor>:$bias,
                       OptionalAttr<DictionaryAttr>:$args);
  let results = (outs MP_FloatTensor:$output);
  let assemblyFormat = [{
    $lhs `,` $rhs (`bias` `(` $bias^ `:` type($bias) `)`)? attr-dict
    `:` `(` type($lhs) `,` type($rhs) `)` `->` type($output)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    OpKind getOpKind() { return OpKind::Matmul; }
  }];
}

def MP_LayerNormOp : MP_RaisedOp<"layer_norm", "Norm"> {
  let summary = "Normalize over the last dimensions, statistics in f32";
  let description = [{
    `native_layer_norm`: the normalized tensor, mean and reciprocal deviation.

    Legal:

    ```mlir
    %y, %m, %r = mp.layer_norm(%x, %w, %b) {args = {eps = 1.0e-5, normalized_shape = [8]}}
        : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
        -> (tensor<4x8xf32>, tensor<4x1xf32>, tensor<4x1xf32>)
    ```

    Illegal, because a result is missing (raised_c1):

    ```mlir
    %y = mp.layer_norm(%x, %w, %b) : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    ```
  }];
  let hasVerifier = 1;
}

def MP_LayerNormBackwardOp : MP_RaisedOp<"layer_norm_backward", "Norm"> {
  let summary = "Gradients of layer_norm, sums in f32";
  let description = [{
    `native_layer_norm_backward`. Legal: three results, of which PyTorch leaves
    out those that `output_mask` refuses. Illegal: fewer results (raised_c1).
  }];
  let hasVerifier = 1;
}

def MP_GroupNormOp : MP_RaisedOp<"group_norm", "Norm"> {
  let summary = "Normalize over channel groups, statistics in f32";
  let description = [{
    `native_group_norm`: normalized tensor, mean and reciprocal deviation.
    Illegal: fewer than three results (raised_c1).
  }];
  let hasVerifier = 1;
}

def MP_RMSNormOp : MP_RaisedOp<"rms_norm", "Norm"> {
  let summary = "Scale by the reciprocal root mean square, in f32";
  let description = [{
    `_fused_rms_norm`: the scaled tensor and the reciprocal root mean square.
    Illegal: fewer than two results (raised_c1).
  }];
  let hasVerifier = 1;
}

def MP_SoftmaxOp : MP_RaisedOp<"softmax", "Softmax"> {
  let summary = "Exponentials divided by their sum, computed in f32";
  let description = [{
    `_softmax`. Legal:

    ```mlir
    %y = mp.softmax(%x) {args = {dim = -1, half_to_float = false}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    ```

    Illegal: two results (raised_c1).
  }];
  let hasVerifier = 1;
}

def MP_LogSoftmaxOp : MP_RaisedOp<"log_softmax", "Softmax"> {
  let summary = "Logarithm of softmax, computed in f32";
  let description = [{
    `_log_softmax`; the first half of a cross entropy that PyTorch keeps whole.
    Illegal: two results (raised_c1).
  }];
  let hasVerifier = 1;
}

def MP_NLLLossOp : MP_RaisedOp<"nll_loss", "Loss"> {
  let summary = "Negative log likelihood, summed in f32";
  let description = [{
    `nll_loss_forward`: the loss and the total weight; the second half of a
    cross entropy. Illegal: fewer than two results (raised_c1).
  }];
  let hasVerifier = 1;
}

def MP_GeluOp : MP_RaisedOp<"gelu", "Activation"> {
  let summary = "Gaussian error linear unit";
  let description = [{
    `gelu`, exact or by tanh as `args.approximate` says. Legal:

    ```mlir
    %y = mp.gelu(%x) {args = {approximate = "tanh"}} : (tensor<4xbf16>) -> tensor<4xbf16>
    ```

    Illegal: two results (raised_c1).
  }];
  let hasVerifier = 1;
}

def MP_SiluOp : MP_RaisedOp<"silu", "Activation"> {
  let summary = "Sigmoid linear unit";
  let description = [{
    `silu`. Illegal: two results (raised_c1).
  }];
  let hasVerifier = 1;
}

#endif // MP_RAISED_OPS_TD
