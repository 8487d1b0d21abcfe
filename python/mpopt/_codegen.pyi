"""The code generator of mpopt in process."""

def version() -> str: ...
def compile_cpu(
    text: str, *, cache_directory: str = ..., isa: str = ..., dump_directory: str = ...
) -> int:
    """The address of a CpuKernel (runtime/Kernel.h), which lives as long as the process.

    `text` is a module in the form of the backend contract. Compiled objects are kept in
    `cache_directory`; `isa` names instructions to multiply by instead of the best ones ("amx",
    "avx512_bf16", "avx512", "avx2", "portable"); `dump_directory` gets what a person can read.
    Raises ValueError with the reason if the CPU does not take the kernel.
    """

def cpu_counters() -> dict[str, int]:
    """How many kernels this process "compiled", and "loaded" from the cache."""

def cpu_isa(element: str, isa: str = ...) -> str:
    """The instructions that products of "f32", "bf16" or "f16" use; "" if `isa` is not there."""
