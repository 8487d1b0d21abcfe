"""The precisions that users have today, each run eagerly, by stock Inductor and by mpopt."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ._errors import UsageError, check_name

_BACKENDS = {"eager": None, "compile": "inductor", "mpopt": "mpopt"}
# (dtype of autocast, dtype of parameters and floating-point inputs)
_PRECISIONS: dict[str, tuple[torch.dtype | None, torch.dtype]] = {
    "fp32": (None, torch.float32),
    "autocast-bf16": (torch.bfloat16, torch.float32),
    "autocast-fp16": (torch.float16, torch.float32),
    "pure-bf16": (None, torch.bfloat16),
}
BASELINE = "compile-autocast-bf16"


@dataclass(frozen=True)
class Variant:
    """How a step is run.

    Attributes:
        name: what the command line calls it.
        backend: of `torch.compile`; None runs eagerly.
        autocast: dtype of `torch.autocast` around the forward; None for no autocast.
        weights: dtype of parameters and floating-point inputs.
    """

    name: str
    backend: str | None
    autocast: torch.dtype | None
    weights: torch.dtype


VARIANTS: dict[str, Variant] = {
    f"{mode}-{precision}": Variant(f"{mode}-{precision}", backend, autocast, weights)
    for mode, backend in _BACKENDS.items()
    for precision, (autocast, weights) in _PRECISIONS.items()
}


def parse_variants(text: str) -> list[Variant]:
    """Return the variants of a comma-separated list, in its order.

    Raises:
        UsageError: an unknown name, a repeated one, or an empty list.
    """
    names = [part.strip() for part in text.split(",") if part.strip()]
    if not names:
        raise UsageError(f"no variant given; known: {', '.join(VARIANTS)}")
    if len(set(names)) != len(names):
        raise UsageError(f"a variant is given twice in '{text}'")
    return [VARIANTS[check_name("variant", name, VARIANTS)] for name in names]
