"""Data of the OpInfo sweep: which operators the default tests try, and what is expected to fail."""

from __future__ import annotations

# One of each kind that the operator table distinguishes, and what precision turns on.
SAMPLE = (
    "add", "mul", "div", "where", "clamp", "exp", "log1p", "tanh", "sum", "mean", "var",
    "cumsum", "amax", "argmax", "topk", "sort", "floor", "eq", "cat", "softmax", "log_softmax",
    "nn.functional.gelu", "nn.functional.silu", "nn.functional.layer_norm", "mm", "addmm",
    "index_select",
)  # fmt: skip

# (operator with variant, dtype or "any") -> why our result is not Inductor's. Each is checked
# to fail: an entry that starts to pass must go.
XFAILS: dict[tuple[str, str], str] = {}

# May differ from Inductor in bits, because a decomposition narrows and widens again: we keep
# that rounding, as eager does. The result must equal Inductor's under emulate_precision_casts.
ROUNDED: dict[str, str] = {
    "nn.functional.layer_norm": "mean and deviation are half on the CPU, also when recomputed",
}

# Operators, as traced for op_db's samples in fp32, without a row in the operator table.
# Conversions are `mp.cast` and need none; operators that write in place are made functional
# before the backend sees them.
MAX_WITHOUT_RULE = 119
