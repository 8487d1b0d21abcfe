"""The code generator in process: kernels from their texts (codegen/docs/BackendContract.md)."""

from typing import Any

def compile_cpu(
    text: str, *, cache_directory: str = ..., isa: str = ..., dump_directory: str = ...
) -> int:
    """The address of a CpuKernel (runtime/Kernel.h), which lives as long as the process.

    Compiled objects are kept in `cache_directory`; `isa` names instructions to multiply by
    instead of the best ones ("amx", "avx512_bf16", "avx512", "avx2", "portable");
    `dump_directory` gets what a person can read. Raises ValueError with the reason if the CPU
    does not take the kernel.
    """

def cpu_counters() -> dict[str, int]:
    """How many kernels this process "compiled", and "loaded" from the cache."""

def cpu_isa(element: str, isa: str = ...) -> str:
    """The instructions that products of "f32", "bf16" or "f16" use; "" if `isa` is not there."""

def chips() -> list[str]:
    """The GPUs that kernels are made for, such as "sm_80"."""

def compile_cuda(
    text: str, chip: str, libdevice: list[str] = ..., dump: str = "", dump_name: str = "kernel"
) -> list[dict[str, Any]]:
    """The kernels of a text, to be launched in order.

    Each with `name`, `ptx`, `extent`, `factor` and `tile` of its grid, whether that is `flat`,
    `block`, `shared_bytes`, `workspace_per_block`, `workspace_bytes`, and `maps`: dictionaries
    of `buffer`, `element`, `extents` and `box`; `note` says why it is not the kernel that the
    chip runs fastest, "" if it is. `libdevice`: where that may lie. `dump`: a
    folder that gets all stages. Raises ValueError with the diagnostics.
    """

def compile_cuda_update(
    text: str, chip: str, dump: str = "", dump_name: str = "kernel"
) -> list[dict[str, Any]]:
    """The same for a kernel of the update, by its line (codegen/CUDA/Update/Text.h)."""

poke_words: int
"""How many words a launch of the kernel `poke` takes."""
