"""Is the loss scale of a traced step used rightly?

Only a graph that holds operators of PyTorch's scaler says so: one that checks, unscales
and updates in the step itself. `mp-check-loss-scale` infers the rest.
"""

from __future__ import annotations

from . import log, native
from .errors import MpoptError
from .importer import Imported

_PASSES = "func.func(mp-normalize,mp-expand-foreach,mp-check-loss-scale)"


def reads_scale(imported: Imported) -> bool:
    """True if the graph holds an operator of a loss scaler."""
    return any(target.startswith("aten._amp_") for target, *_ in imported.nodes)


def faults(imported: Imported) -> str:
    """What is wrong with the loss scale, with the places in the model; "" if nothing is."""
    module = native.module_type().from_graph(
        imported.inputs, imported.nodes, imported.outputs, sources=imported.sources
    )
    try:
        module.run(_PASSES)
    except ValueError as error:
        return str(error)
    return ""


def check(imported: Imported, strict: bool) -> None:
    """Warn of faults, and count them; raise MpoptError under `strict`."""
    if not reads_scale(imported):
        return
    text = faults(imported)
    if not text:
        return
    log.counters["loss_scale_faults"] += 1
    message = f"the loss scale of this step is used wrongly:\n{text}"
    if strict:
        raise MpoptError(message)
    log.warn(f"mpopt: {message}")
