"""The compiler in process, loaded on first use.

libtriton exports an LLVM and an MLIR of its own. Python loads extensions with
private symbols, so the two do not meet unless somebody asked for RTLD_GLOBAL; ours
must not leak out then. RTLD_DEEPBIND would also protect us from theirs, but it
crashes under a preloaded malloc such as jemalloc.
"""

from __future__ import annotations

import functools
import importlib
import os
import sys
from typing import TYPE_CHECKING

from .digests import library_file_digest
from .errors import MpoptError

if TYPE_CHECKING:
    from types import ModuleType

    from ._mpopt import Module


@functools.cache
def load() -> ModuleType:
    """The extension module. Raises MpoptError when it is missing or does not load."""
    return load_extension("_mpopt")


def load_extension(name: str) -> ModuleType:
    """An extension module of this package. Raises MpoptError when it does not load."""
    flags = sys.getdlopenflags()
    sys.setdlopenflags(os.RTLD_NOW | os.RTLD_LOCAL)
    try:
        return importlib.import_module(f".{name}", __package__)
    except ImportError as error:
        raise MpoptError(
            f"cannot load the compiler: {error}; build it with tools/dev.sh setup"
        ) from error
    finally:
        sys.setdlopenflags(flags)


def module_type() -> type[Module]:
    """The class `_mpopt.Module`."""
    return load().Module  # type: ignore[no-any-return]


@functools.cache
def library_digest() -> str:
    """Digest of the extension, so that a rebuilt compiler misses every cache."""
    path = load().__file__
    if path is None:
        raise MpoptError("the compiler was not loaded from a file")
    return library_file_digest(path)


@functools.cache
def op_kind(callee: str) -> str:
    """Kind of an operator such as "aten.mm.default"; "unknown" without a table row."""
    return str(load().op_kind(callee))
