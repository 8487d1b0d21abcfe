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
        `args`, `kernel`, `operands`, `types`, `first_result` and `backward`.
        """

    def kernels(self) -> list[str]:
        """The texts of the regions' kernels, each once."""

    def drop_kernels(self, texts: list[str]) -> None:
        """Take these kernels from their regions; `mp-inline-regions` then puts them back."""

    def rewrites(self) -> list[dict[str, Any]]:
        """The record of the passes: `rule`, `contract`, `status`, `node`, `op`, `why`, `module`."""

    def bytecode(self) -> bytes:
        """The module as MLIR bytecode."""

def pipeline_passes(pipeline: str) -> list[str]:
    """The passes of a pipeline, each as text that `Module.run` takes. Raises ValueError."""

class CostModel:
    """What work costs on one target. See passes/docs/CostModel.md."""

    name: str
    device: str
    """"cpu" or "cuda"."""
    bandwidth: float
    """Bytes per second."""
    launch: float
    """Seconds per kernel."""

    @staticmethod
    def load(name_or_path: str) -> CostModel:
        """A built-in model or a file. Raises ValueError naming file and key."""

    @staticmethod
    def parse(text: str, file: str) -> CostModel:
        """A model from the text of a file. `file` is for errors."""

    def sweep_seconds(self, size: float) -> float: ...
    def cast_seconds(self, source: str, target: str, elements: int) -> float: ...
    def matmul_seconds(self, dtype: str, batch: int, m: int, n: int, k: int) -> float:
        """Seconds of `batch` products m x k by k x n; inf where there are none of `dtype`."""

    def half_pays(
        self, half: str, wide: str, batch: int, m: int, n: int, k: int
    ) -> tuple[bool, float, str]:
        """Whether `half` operands pay, wide seconds / half seconds, and a sentence."""

def cost_models() -> list[str]:
    """Names of the built-in cost models."""

def cost_model_text(name: str) -> str | None:
    """The file of a built-in model."""

def host_cost_model() -> str:
    """The built-in model for this machine's CPU."""

def cuda_cost_model(capability: int) -> str | None:
    """The built-in model for compute capability 90, the nearest that is not newer."""

def read_policy(text: str, name: str) -> dict[str, Any]:
    """`level`, `epsilon` (None where it says nothing) and `sha256` of a policy. Raises
    ValueError that begins with `name`, line and column."""

def op_kind(callee: str) -> str:
    """The kind of "aten.mm.default" in the operator table, "unknown" without a row."""

def version() -> str:
    """The version of the native library."""

class Update:
    """One step of optimizers over memory that the caller keeps alive.

    `tensors`: tuples of size in elements, address of the lower halves of a split master or 0,
    index into `groups`, step counted from 1, whether it is the first, and then an address (0
    for none) and a format ("f32", "f16", "bf16") each for weight, gradient, the states first,
    second and largest, and the half copy; last the number of the parameter, on which its random
    bits depend. `groups`: `algorithm` ("adam", "sgd", "lion"), `rounding` ("nearest",
    "stochastic"), `seed`, and figures named as in torch.optim. `kernels`: "portable", "avx2",
    "avx512", "" for the best. Raises ValueError for what does not fit together.
    """

    def __init__(
        self, tensors: list[tuple[Any, ...]], groups: list[dict[str, Any]], kernels: str = ""
    ) -> None: ...
    def measure(self, inverse: float) -> tuple[float, int, int, int]:
        """Sum of squares of the gradients as they are, infs, NaNs, and the number of the first
        tensor that is not finite (the number of tensors if all are)."""

    def apply(
        self, multiplier: float, skipped: bool, clear_gradients: bool
    ) -> tuple[int, int, int]:
        """Update with gradients times `multiplier`; skipped: change none but the gradients.

        Returns how many finite weights became inf in copies in fp16, how many half weights did
        not change at all, and the number of the first tensor of those."""

class LossScaler:
    """A loss scaling rule with its state. Raises ValueError for a figure out of range."""

    scale: float
    growth_tracker: int
    hysteresis_left: int

    def __init__(self, rule: str, **figures: Any) -> None: ...
    def set(self, **figures: Any) -> None:
        """Change figures, or raise ValueError and change none."""

    def update(self, flags: int) -> None:
        """After a step whose gradients had `flags`: 1 inf, 2 NaN."""

    def figures(self) -> dict[str, Any]:
        """`init_scale`, `growth_factor`, `min_scale` and the others that `set` takes."""

    @property
    def inverse(self) -> float: ...
    @property
    def failed(self) -> bool: ...
    @property
    def at_floor(self) -> bool: ...
    @property
    def resets(self) -> int: ...
    @property
    def applied(self) -> int: ...
    @property
    def skipped(self) -> int: ...
    @property
    def skipped_in_a_row(self) -> int: ...
    @property
    def inf_steps(self) -> int: ...
    @property
    def nan_steps(self) -> int: ...

def scaler_rules() -> list[str]:
    """Names of the loss scaling rules."""

def clip_factor(norm: float, limit: float) -> float:
    """min(1, limit / (norm + 1e-6)) in f32; 1 if `limit` is 0."""

def set_parallel_for(address: int) -> None:
    """Run updates on the threads of `torch_parallel_for`, which lies there."""

def kernels() -> str:
    """The instruction set that updates use."""
