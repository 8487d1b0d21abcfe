"""Which operators should stay in fp32, by what was measured of them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import NamedTuple

from .range_keys import Key
from .ranges import Format, Range

_ROUNDED_LOGIT = 0.25
"""Half a unit in the last place of a logit from which on a probability is off by a quarter."""
_NOISE = 2.0**-20
"""A gradient this small beside the largest one is what fp32 leaves of a zero."""
_INPUTS = frozenset({"parameter", "buffer", "input", "tangent", "half_weight", "gradient"})


class Pin(NamedTuple):
    """An operator that should stay in fp32."""

    module: str
    op: str
    why: str


def suggest(
    ranges: Mapping[Key, Range], form: Format, margin: float, gradient_scale: float
) -> list[Pin]:
    """One pin for each module and operator that `form` does not hold, worst reason first
    within each, in graph order."""
    reasons: dict[tuple[str, str], tuple[float, str]] = {}
    noise = _NOISE * max((r.rms for k, r in ranges.items() if k.phase == "backward"), default=0)
    for key, each in ranges.items():
        if key.op in _INPUTS or (key.phase == "backward" and each.rms < noise):
            continue
        scale = gradient_scale if key.phase == "backward" else 1.0
        for badness, why in _reasons(key, each, form, margin, scale):
            place = key.module, key.op
            if place not in reasons or reasons[place][0] < badness:
                reasons[place] = badness, why
    return [Pin(module, op, why) for (module, op), (_, why) in reasons.items()]


def _reasons(
    key: Key, each: Range, form: Format, margin: float, scale: float
) -> list[tuple[float, str]]:
    found = []
    room = each.headroom(form) - math.log2(scale)
    scaled = f" times the loss scale {scale:g}" if scale != 1 else ""
    if room < margin:
        found.append((margin - room, _overflow(key, each, form, room, scaled)))
    tiny = math.log2(each.rms * scale) < form.normal if each.rms else False
    if tiny:
        lost = form.normal - math.log2(each.rms * scale)
        found.append((lost, _underflow(key, each, form, lost, scaled)))
    if each.head_logits:
        found += _attention(key, each.head_logits, form, margin)
    return found


def _overflow(key: Key, each: Range, form: Format, room: float, scaled: str) -> str:
    verb = "overflows" if room < 0 else "nearly overflows"
    return (
        f"{key.phase}: absmax {each.absmax:.3g}{scaled} {verb} {form.name} "
        f"(largest {form.largest:.5g}, headroom {room:+.1f} powers of two)"
    )


def _underflow(key: Key, each: Range, form: Format, lost: float, scaled: str) -> str:
    return (
        f"{key.phase}: rms {each.rms:.3g}{scaled} is subnormal in {form.name}: {lost:.0f} bits "
        f"lost, {each.below(form.subnormal):.0%} below the smallest number"
    )


def _attention(
    key: Key, logits: list[float], form: Format, margin: float
) -> list[tuple[float, str]]:
    """Reasons that name heads. Fused attention has its logits in fp32 inside."""
    is_fused = "softmax" not in key.op
    limit = form.largest / 2**margin
    if not is_fused:
        # Half a unit in the last place of 2^e is 2^(e - digits).
        limit = min(limit, 2 ** (form.digits + math.log2(_ROUNDED_LOGIT)))
    heads = [i for i, logit in enumerate(logits) if logit >= limit]
    if not heads:
        return []
    worst = max(logits)
    names = ", ".join(map(str, heads[:8])) + (", ..." if len(heads) > 8 else "")
    why = f"logits of heads {names} reach {worst:.3g}; {form.name} holds them to {limit:.3g}"
    return [(math.log2(worst / limit) + margin, why)]


def policy_text(pins: list[Pin]) -> str:
    """The pins as a policy file."""
    lines = ["# Written by mpopt.calibrate: what its batches did not fit.", "version = 1"]
    for pin in pins:
        why = json.dumps(pin.why, ensure_ascii=False)
        lines += ["", "[[rule]]", *_selectors(pin), 'precision = "fp32"', f"why = {why}"]
    return "\n".join(lines) + "\n"


def _selectors(pin: Pin) -> list[str]:
    if pin.module:
        return [f"module = {json.dumps(pin.module)}", f"op = {json.dumps(pin.op)}"]
    # No glob stands for no module at all; such a name is the operator alone.
    pattern = "^" + pin.op.replace(".", "\\.") + "$"
    return [f"name = {json.dumps(pattern)}"]
