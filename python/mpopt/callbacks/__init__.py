"""What to do with a training step's figures: see, write, stop.

    step = mpopt.TrainStep(..., callbacks=[callbacks.GradientHistogram(every=100),
                                           callbacks.JSONLines("log.jsonl")])

A callback of your own derives from `Callback` and overrides what it wants to hear of.
"""

from __future__ import annotations

from ._base import Callback
from ._histogram import GradientHistogram, Histogram
from ._json_lines import JSONLines
from ._metrics import BadOp, Gradients, Memory, NonFinite, StepMetrics
from ._progress import Progress
from ._tensorboard import TensorBoard

__all__ = [
    "BadOp",
    "Callback",
    "GradientHistogram",
    "Gradients",
    "Histogram",
    "JSONLines",
    "Memory",
    "NonFinite",
    "Progress",
    "StepMetrics",
    "TensorBoard",
]
