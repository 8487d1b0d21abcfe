"""A finding for people and for programs."""

from __future__ import annotations

import math
from typing import Any

from .session import Finding

SCHEMA = 1


def text_of(finding: Finding) -> str:
    """A few lines: what, where, why, and how to do without."""
    lines = [finding.text]
    for entry in finding.culprits[:10]:
        lines += ["", *_describe(entry)]
    if len(finding.culprits) > 10:
        lines += ["", f"and {len(finding.culprits) - 10} more; --json lists all"]
    if finding.notes:
        lines.append("")
        lines += [f"note: {note}" for note in finding.notes]
    return "\n".join(lines)


def _describe(entry: dict[str, Any]) -> list[str]:
    rows = [
        ("rewrite", f"{entry['number']}: {entry['rule']} ({entry['contract']})"),
        ("operator", " ".join(filter(None, (entry["op"], entry.get("fx", ""))))),
        ("module", entry["module"] or "(model)"),
        ("source", entry["source"]),
        ("graph", entry.get("graph", "")),
        ("reason", entry["why"]),
    ]
    rows += [("without it", way) for way in switches(entry)]
    return [f"  {label:<12}{text}" for label, text in rows if text]


def switches(entry: dict[str, Any]) -> list[str]:
    """Ways to switch a rewrite off, the narrowest first."""
    ways = []
    if entry["contract"] != "strict":
        ways.append('options={"numerics": "strict"}: no rule that adds or drops a rounding')
    if entry["pass"]:
        ways.append(f'options={{"disable_passes": ["{entry["pass"]}"]}}: the whole pass')
    return ways


def json_of(finding: Finding, subject: str) -> dict[str, Any]:
    """Schema 1. `distance` is null where a check has none, or where it is infinite."""
    outcome = finding.outcome
    return {
        "schema": SCHEMA,
        "subject": subject,
        "status": finding.status,
        "text": finding.text,
        "rewrites": finding.rewrites,
        "good": outcome.good if outcome else None,
        "bad": outcome.bad if outcome else None,
        "culprits": [{**entry, "without_it": switches(entry)} for entry in finding.culprits],
        "flaky": outcome.flaky if outcome else [],
        "good_again": outcome.good_again if outcome else [],
        "notes": finding.notes,
        "runs": [
            {
                "limit": run.limit,
                "verdict": judgement.verdict.value,
                "text": judgement.text,
                "distance": _finite(judgement.distance),
                "applied": len(run.entries),
                "seconds": round(run.seconds, 3),
            }
            for run, judgement in finding.runs
        ],
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
