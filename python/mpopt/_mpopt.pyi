"""The mpopt compiler in process."""

from typing import Any

class Module:
    """One MLIR module in a context of its own. Not safe for use by two threads at once."""

    with_locations: bool
    """Print locations in `str(module)`."""

    @staticmethod
    def parse(source: bytes) -> Module:
        """A module from MLIR text or bytecode. Raises ValueError with the diagnostics."""

    @staticmethod
    def from_graph(
        inputs: list[tuple[str, str]],
        nodes: list[tuple[str, str, tuple[int, ...], tuple[str, ...], int, int]],
        outputs: list[tuple[int, str]],
        *,
        sources: list[tuple[str, str, int]] = ...,
        name: str = "joint",
        attributes: str = "",
    ) -> Module:
        """A module with one function.

        `inputs`: (type, attributes); `nodes`: (target, attributes, operands, result types,
        flags, source); `outputs`: (value, attributes); `sources`: (module path, file, line).
        Values are numbered: inputs first, then each result in node order. Flags: 1 has
        effects, 2 backward. Raises ValueError naming the bad type, attribute or operand.
        """

    def run(self, pipeline: str, verify: bool = True) -> None:
        """Run a pass pipeline such as "mp-default". Raises ValueError with the diagnostics."""

    def edits(self) -> dict[str, Any]:
        """What changed since `from_graph`.

        `erased` and `retyped`: node numbers; `rewired`: (node, operand, value); `outputs`:
        value numbers; `added`: dictionaries with `before`, `like`, `op`, `dtype`, `origin`,
        `args`, `operands`, `types`, `first_result` and `backward`.
        """

    def rewrites(self) -> list[dict[str, Any]]:
        """The record of the passes: `rule`, `contract`, `status`, `node`, `op`, `why`, `module`."""

    def bytecode(self) -> bytes:
        """The module as MLIR bytecode."""

def pipeline_passes(pipeline: str) -> list[str]:
    """The passes of a pipeline, each as text that `Module.run` takes. Raises ValueError."""

def op_kind(callee: str) -> str:
    """The kind of "aten.mm.default" in the operator table, "unknown" without a row."""

def version() -> str:
    """The version of the native library."""
