"""Which cost model an option means. See passes/docs/CostModel.md."""

from __future__ import annotations

import os

from .. import log, native
from ..digests import file_digest
from ..errors import MpoptError, OptionError

AUTO = "auto"
_OLDEST_GPU = "sm_80"


def check(value: object, source: str) -> str:
    """`value` if it is "auto", a built-in name or a file of a model.

    Raises:
        OptionError: names the source, the file and the key, or the nearest name.
    """
    if not isinstance(value, str | os.PathLike):
        raise OptionError(f"{source}: cost_model must be a name or a path, not {value!r}")
    text = os.fspath(value)
    if text != AUTO:
        try:
            native.load().CostModel.load(text)
        except ValueError as error:
            raise OptionError(f"{source}: cost_model: {error}") from None
    return text


def resolve(value: str, device: str) -> str:
    """The name or path behind the option `cost_model` for graphs on "cpu" or "cuda"."""
    return auto_name(device) if value == AUTO else value


def auto_name(device: str) -> str:
    """The built-in model for this machine: by the CPU's features or the GPU's capability.

    Graphs for a GPU on a machine without one get the figures of sm_80.
    """
    if device != "cuda":
        return str(native.load().host_cost_model())
    import torch

    if not torch.cuda.is_available():
        log.get_logger("passes").info("no GPU to ask: costs are those of %s", _OLDEST_GPU)
        return _OLDEST_GPU
    major, minor = torch.cuda.get_device_capability()
    found = native.load().cuda_cost_model(10 * major + minor)
    return str(found) if found else _guess(major, minor)


def _guess(major: int, minor: int) -> str:
    """The oldest GPU's model for one that is older still: counted, said once."""
    from ..options import is_strict

    text = f"no cost model for GPUs of compute capability {major}.{minor}"
    hint = "measure one with 'mpopt calibrate' and name it in the option cost_model"
    if is_strict():
        raise MpoptError(f"{text}; {hint}")
    if not log.counters["cost_model_guesses"]:
        log.warn(f"{text}; taking {_OLDEST_GPU}; {hint}")
    log.counters["cost_model_guesses"] += 1
    return _OLDEST_GPU


def fingerprint(value: str) -> str:
    """A text that differs where decisions by the model of the option may differ."""
    if value == AUTO:
        return f"{AUTO}: {auto_name('cpu')}, {_capability()}"
    text = native.load().cost_model_text(value)
    if text is not None:
        return value
    return file_digest(value)


def _capability() -> str:
    import torch

    if not torch.cuda.is_available():
        return "no GPU"
    return "sm_{}{}".format(*torch.cuda.get_device_capability())
