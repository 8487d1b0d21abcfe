"""Cutting a pass pipeline into its top-level steps, so that each can be dumped."""

from __future__ import annotations

from .native import load


def steps(pipeline: str) -> list[str]:
    """The parts of a comma-separated pipeline that `Module.run` can take one by one.

    A named pipeline is opened up when the compiler can say what is in it.
    """
    expand = getattr(load(), "pipeline_passes", None)
    parts: list[str] = []
    for part in _split(pipeline):
        parts.extend(expand(part) if expand else [part])
    return parts


def _split(pipeline: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for i, letter in enumerate(pipeline):
        depth += (letter in "({") - (letter in ")}")
        if letter == "," and depth == 0:
            parts.append(pipeline[start:i])
            start = i + 1
    parts.append(pipeline[start:])
    return [part.strip() for part in parts if part.strip()]


def name_of(step: str) -> str:
    """ "mp-normalize" of "func.func(mp-normalize)"."""
    inner = step.partition("(")[2].rpartition(")")[0] or step
    return inner.partition("{")[0].strip()
