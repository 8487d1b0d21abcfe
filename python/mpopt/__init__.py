"""mpopt: a precision compiler for PyTorch.

    torch.compile(model, backend="mpopt", options={"numerics": "precise"})

Importing this package loads neither torch nor the compiler; the first use does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import MpoptError
from .log import counters

if TYPE_CHECKING:
    from . import callbacks as callbacks
    from . import optim as optim
    from .backend import mpopt as mpopt
    from .backend import reset as reset
    from .backend import rewrite as rewrite
    from .calibrating import calibrate as calibrate
    from .calibration import Calibration as Calibration
    from .grad_scaler import GradScaler as GradScaler
    from .train_step import TrainStep as TrainStep

__version__ = "0.1.0"
__all__ = [
    "Calibration",
    "GradScaler",
    "MpoptError",
    "TrainStep",
    "calibrate",
    "callbacks",
    "counters",
    "mpopt",
    "optim",
    "reset",
    "rewrite",
]


def __getattr__(name: str) -> Any:
    if name in ("mpopt", "reset", "rewrite"):
        from . import backend

        return getattr(backend, name)
    if name in ("calibrate", "Calibration"):
        from . import calibrating

        return getattr(calibrating, name)
    if name == "GradScaler":
        from . import grad_scaler

        return grad_scaler.GradScaler
    if name == "TrainStep":
        from . import train_step

        return train_step.TrainStep
    if name in ("callbacks", "optim"):
        import importlib

        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module 'mpopt' has no attribute {name!r}")
