"""Loggers and counters.

`MPOPT_LOGS` is a comma list of `area` or `area=level`, with areas as in AREAS and
`all`; the level is a name of the standard `logging` module, `info` when left out.
"""

from __future__ import annotations

import logging
import os
from collections import Counter, defaultdict

from .errors import OptionError, did_you_mean

AREAS = ("backend", "capture", "passes", "fallback", "dump", "options")

counters: Counter[str] = Counter()
"""Counts since import or `reset()`: "graphs", "rewrites", "fallbacks",
"fallbacks.<stage>", "stock_graphs", "expanded", "embedding_sums", "loss_scale_faults" and
"cost_model_guesses" and "policy_rules_unmatched".
Of partitioned graphs: "partitions", and the bytes that forward keeps for backward as the
partitioner wants it and as it came to be, "saved_bytes_before" and "saved_bytes".
Of half weights: "half_weights", inputs of graphs that come as copies; "half_copies_cast_again" and
"half_weights_cast", calls whose copy was not current or not there; "half_weights_unproven", inputs
that are cast as before, for nobody could tell whether a copy is current.
Of our own kernels: "regions", calls of them in graphs; "kernels" and "kernels_failed", what was
compiled; "region_kernels", those of graphs that were not in a cache; "cubin_cache_hits" and
"cpu_cache_hits", those that were on disk.
Of measured ranges and option heal: "calibrations", "nonfinite_calls", "heal_searches" and
"healed_regions"."""

seconds: defaultdict[str, float] = defaultdict(float)
"""Wall time spent in each stage since import or `reset()`: "import", "build", "passes",
"kernels", "export", "barriers", "expand", "stitch" and "split"."""

_configured: str | None = None


def get_logger(area: str) -> logging.Logger:
    """The logger `mpopt.<area>`, with MPOPT_LOGS applied."""
    configure(os.environ.get("MPOPT_LOGS", ""))
    return logging.getLogger(f"mpopt.{area}")


def configure(spec: str) -> None:
    """Set levels from an MPOPT_LOGS text. Raises OptionError on an unknown area or level."""
    global _configured
    if spec == _configured or (_configured is None and not spec.strip()):
        return  # levels that a program set itself stay
    levels = [_parse(item) for item in spec.split(",") if item.strip()]
    root = logging.getLogger("mpopt")
    for area in AREAS:
        logging.getLogger(f"mpopt.{area}").setLevel(logging.NOTSET)
    root.setLevel(logging.NOTSET)
    for area, level in levels:
        logger = root if area == "all" else logging.getLogger(f"mpopt.{area}")
        logger.setLevel(level)
    if levels and not root.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("[%(name)s] %(levelname)s: %(message)s"))
        root.addHandler(handler)
        root.propagate = False
    _configured = spec


def _parse(item: str) -> tuple[str, int]:
    area, _, name = item.strip().partition("=")
    if area != "all" and area not in AREAS:
        raise OptionError(f"MPOPT_LOGS: unknown area {area!r}{did_you_mean(area, [*AREAS, 'all'])}")
    level = logging.getLevelName((name or "info").upper())
    if not isinstance(level, int):
        raise OptionError(f"MPOPT_LOGS: unknown level {name!r} of area {area!r}")
    return area, level


def warn(text: str) -> None:
    """A warning of area "fallback": shown unless the user silenced warnings."""
    get_logger("fallback").warning(text)
