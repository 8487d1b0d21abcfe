"""The code generator in process: kernels from their texts (codegen/docs/BackendContract.md)."""

from typing import Any

def chips() -> list[str]:
    """The GPUs that kernels are made for, such as "sm_80"."""

def compile_cuda(
    text: str, chip: str, libdevice: list[str] = ..., dump: str = "", dump_name: str = "kernel"
) -> list[dict[str, Any]]:
    """The kernels of a text, to be launched in order.

    Each with `name`, `ptx`, `extent`, `factor` and `tile` of its grid, whether that is `flat`,
    `block`, `shared_bytes`, `workspace_per_block`, `workspace_bytes`, and `maps`: dictionaries
    of `buffer`, `element`, `extents` and `box`. `libdevice`: where that may lie. `dump`: a
    folder that gets all stages. Raises ValueError with the diagnostics.
    """
