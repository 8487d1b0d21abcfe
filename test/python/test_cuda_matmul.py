"""Matmul kernels for CUDA: what ptxas says of them, and their instructions.

Needs `mpopt-codegen` of a build (or MPOPT_CODEGEN) and, for the tests with ptxas, the
assembler of triton's package or of a CUDA toolkit.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from contract_kernels import Matmul
from test_tool import find_tool

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "codegen" / "CUDA" / "Schedules.def"
SHARED = {"sm_80": 164, "sm_86": 100, "sm_90": 164, "sm_100": 164, "sm_120": 100}


@dataclass(frozen=True)
class Schedule:
    """One row of Schedules.def."""

    shared: int
    block_m: int
    block_n: int
    block_k: int
    warp_m: int
    warp_n: int
    stages: int
    resident: int

    def __str__(self) -> str:
        return (
            f"{self.block_m}x{self.block_n}x{self.block_k} "
            f"w{self.warp_m}x{self.warp_n} s{self.stages} r{self.resident}"
        )

    @property
    def threads(self) -> int:
        return 32 * (self.block_m // self.warp_m) * (self.block_n // self.warp_n)

    def counts(self) -> dict[str, int]:
        """Instructions of a 16-bit kernel without tails."""
        steps = self.block_k // 16
        fragments = self.warp_m // 16 + self.warp_n // 16
        pieces = sum(
            max(1, extent * self.block_k * 2 // 16 // self.threads)
            for extent in (self.block_m, self.block_n)
        )
        return {
            "mma.sync": steps * (self.warp_m // 16) * (self.warp_n // 8),
            "ldmatrix": (steps + 1) * fragments,
            "cp.async.cg": self.stages * pieces,
            "cp.async.commit_group": self.stages,
        }


def rows() -> list[Schedule]:
    """The rows of the table."""
    found = re.findall(r"^SCHEDULE\(([\d, ]+)\)", TABLE.read_text(), re.MULTILINE)
    return [Schedule(*(int(number) for number in row.split(","))) for row in found]


def find_ptxas(chip: str) -> str:
    """triton's assembler, or a toolkit's."""
    spec = importlib.util.find_spec("triton")
    if spec is not None and spec.origin is not None:
        folder = Path(spec.origin).parent / "backends" / "nvidia" / "bin"
        newest = ["ptxas-blackwell", "ptxas"] if chip in ("sm_100", "sm_120") else ["ptxas"]
        for name in newest:
            if (folder / name).exists():
                return str(folder / name)
    found = shutil.which("ptxas")
    if found is None:
        pytest.skip("no ptxas: install triton or a CUDA toolkit")
    return found


def codegen(kernel: Matmul, tmp_path: Path, chip: str, *options: str) -> str:
    """What mpopt-codegen prints for a kernel."""
    source = tmp_path / "kernel.mlir"
    source.write_text(kernel.text())
    done = subprocess.run(
        [find_tool("mpopt-codegen", "MPOPT_CODEGEN"), str(source), f"--target={chip}", *options],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@dataclass(frozen=True)
class Assembled:
    """What ptxas says of a kernel."""

    registers: int
    spilled: int


def assemble(ptx: str, tmp_path: Path, chip: str) -> Assembled:
    source = tmp_path / "kernel.ptx"
    source.write_text(ptx)
    done = subprocess.run(
        [find_ptxas(chip), "-v", f"-arch={chip}", str(source), "-o", str(tmp_path / "cubin")],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    registers = re.search(r"Used (\d+) registers", done.stderr)
    spills = re.findall(r"(\d+) bytes spill", done.stderr)
    assert registers is not None, done.stderr
    return Assembled(int(registers[1]), sum(int(count) for count in spills))


def launch_of(kernel: Matmul, schedule: Schedule, tmp_path: Path, chip: str) -> dict[str, int]:
    text = codegen(kernel, tmp_path, chip, f"--schedule={schedule}", "--emit=launch")
    return {word: int(number) for word, number in re.findall(r"^(block|shared) (\d+)", text, re.M)}


def check_occupancy(kernel: Matmul, schedule: Schedule, tmp_path: Path, chip: str) -> None:
    """No spills, and as many blocks fit as the schedule says."""
    ptx = codegen(kernel, tmp_path, chip, f"--schedule={schedule}")
    assembled = assemble(ptx, tmp_path, chip)
    assert assembled.spilled == 0
    per_warp = -(-assembled.registers * 32 // 256) * 256
    assert per_warp * (schedule.threads // 32) * schedule.resident <= 65536
    launch = launch_of(kernel, schedule, tmp_path, chip)
    assert launch["block"] == schedule.threads
    assert (launch["shared"] + 1024) * schedule.resident <= schedule.shared * 1024


@pytest.mark.parametrize("schedule", rows(), ids=str)
def test_instructions(schedule: Schedule, tmp_path: Path) -> None:
    chip = "sm_80" if schedule.shared == 164 else "sm_86"
    kernel = Matmul(512, 512, 512, epilogue="bias-relu-residual")
    ptx = codegen(kernel, tmp_path, chip, f"--schedule={schedule}")
    assert {name: ptx.count(name) for name in schedule.counts()} == schedule.counts()


# The two kinds of operand tiles, and both half types, over the table.
FORWARD = Matmul(4096, 1024, 1024, "bf16", epilogue="bias-relu-residual")
DYNAMIC = Matmul("?", 1000, 1016, "f16", "NN", epilogue="bias-relu-residual")


@pytest.mark.parametrize("schedule", rows(), ids=str)
def test_registers(schedule: Schedule, tmp_path: Path) -> None:
    chip = "sm_80" if schedule.shared == 164 else "sm_86"
    check_occupancy(FORWARD, schedule, tmp_path, chip)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schedule", "chip"),
    [(row, chip) for row in rows() for chip in SHARED if SHARED[chip] == row.shared],
    ids=str,
)
@pytest.mark.parametrize(
    "kernel",
    [
        FORWARD,
        DYNAMIC,
        Matmul(1024, 1024, "?", "bf16", "TN"),
        Matmul(1000, 999, 1001, "f16", "TT", epilogue="bias-relu-residual"),
    ],
    ids=["forward", "tails", "wgrad", "odd"],
)
def test_registers_everywhere(
    kernel: Matmul, schedule: Schedule, chip: str, tmp_path: Path
) -> None:
    check_occupancy(kernel, schedule, tmp_path, chip)


@pytest.mark.parametrize("chip", SHARED)
@pytest.mark.parametrize(
    "kernel",
    [
        FORWARD,
        Matmul(768, 3072, "?", "bf16", "TN", lhs_sum=True),
        Matmul(8, 4096, 4096, "f16"),
        Matmul(1024, 1024, 1024, "f32"),
    ],
    ids=["forward", "wgrad", "decode", "tf32"],
)
def test_chosen_schedule(kernel: Matmul, chip: str, tmp_path: Path) -> None:
    """What the model chooses assembles without spills and holds its occupancy."""
    text = codegen(kernel, tmp_path, chip, "--emit=launch")
    named = re.search(r"schedule (\d+)x(\d+)x(\d+) w(\d+)x(\d+) s(\d+) r(\d+)", text)
    assert named is not None
    schedule = Schedule(SHARED[chip], *(int(number) for number in named.groups()))
    check_occupancy(kernel, schedule, tmp_path, chip)
