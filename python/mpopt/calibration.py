"""What `mpopt.calibrate` measured: as a file, as a table, and what follows from it."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
import math
import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import torch

from .errors import MpoptError
from .log import warn
from .range_keys import Key
from .ranges import FORMATS, Format, Range
from .suggested_pins import Pin, policy_text, suggest

SCHEMA, VERSION = "mpopt-ranges", 1
_HALF_NAMES = frozenset(form.name for form in FORMATS.values())
_SIDES = ("normal", "subnormal")


@dataclasses.dataclass(frozen=True)
class LossScale:
    """A loss scale for a half type, with the shares of nonzero elements of gradients that are
    below the smallest subnormal number of the type, where they are lost, without and with it."""

    scale: float
    lost_before: float
    lost_after: float
    below_normal_before: float
    below_normal_after: float


@dataclasses.dataclass
class Calibration:
    """Ranges by key; `ranges` of an option takes this or the path of its file."""

    ranges: dict[Key, Range]
    dtype: torch.dtype | None
    batches: int
    has_backward: bool

    def __getitem__(self, key: Key) -> Range:
        return self.ranges[key]

    # The file -------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file that passes and the tool read."""
        Path(path).write_text(json.dumps(self.as_dict(), indent=1) + "\n", encoding="utf-8")

    def as_dict(self) -> dict[str, Any]:
        """The file as JSON values."""
        scale = self.loss_scale() if self.has_backward else None
        return {
            "schema": SCHEMA,
            "version": VERSION,
            "torch": torch.__version__,
            "dtype": str(self.dtype).removeprefix("torch.") if self.dtype else None,
            "batches": self.batches,
            "backward": self.has_backward,
            "loss_scale": dataclasses.asdict(scale) if scale else None,
            "values": [_row(key, self.ranges[key]) for key in self.ranges],
        }

    def digest(self) -> str:
        """A text that differs whenever what was measured differs."""
        return hashlib.sha256(json.dumps(self.as_dict(), sort_keys=True).encode()).hexdigest()

    def file(self) -> str:
        """Path of a file of this, written if need be; it is named by its digest."""
        path = Path(tempfile.gettempdir()) / f"mpopt-ranges-{self.digest()[:32]}.json"
        if not path.exists():
            handle, name = tempfile.mkstemp(dir=path.parent)
            os.close(handle)
            self.save(name)
            os.replace(name, path)  # others may write the same
        return str(path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Calibration:
        """Read a file of `save`. Raises MpoptError naming the file and what is wrong in it."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise MpoptError(f"ranges file '{path}': {error.strerror}") from error
        except ValueError as error:
            raise MpoptError(f"ranges file '{path}': {error}") from error
        return _parse(data, path)

    # What follows ---------------------------------------------------------------

    def loss_scale(self, dtype: torch.dtype = torch.float16, margin: float = 1.0) -> LossScale:
        """The largest power of two by which gradients can be multiplied so that they stay
        `margin` powers of two below the largest number of `dtype`. Those that do not even
        without a scale are left to `pins`.

        Raises MpoptError if no gradient was measured.
        """
        form = FORMATS[dtype]
        grads = [r for k, r in self.ranges.items() if k.phase == "backward" and r.nonzero]
        if not grads:
            raise MpoptError("no gradient was measured; calibrate with a loss")
        # What autocast keeps in fp32 does not overflow.
        grads = [r for r in grads if r.dtype in _HALF_NAMES] or grads
        rooms = [r.headroom(form) - margin for r in grads]
        shift = min(126, math.floor(min((room for room in rooms if room >= 0), default=0)))
        exponents: Counter[int] = Counter()
        for each in grads:
            exponents.update(each.exponents)
        total = Range(exponents=exponents)
        lost = [total.below(form.subnormal - by) for by in (0, shift)]
        small = [total.below(form.normal - by) for by in (0, shift)]
        return LossScale(2.0**shift, lost[0], lost[1], small[0], small[1])

    def pins(self, dtype: torch.dtype = torch.float16, margin: float = 1.0) -> list[Pin]:
        """What should stay in fp32 where the rest is in `dtype`, and why.

        Values with less than `margin` powers of two left to the largest number, values whose
        typical size is subnormal, and attention whose logits are too large for the type. In
        float16, gradients are taken times the suggested loss scale.
        """
        by = self.loss_scale(dtype, margin).scale if self._scales(dtype) else 1.0
        return suggest(self.ranges, FORMATS[dtype], margin, by)

    def _scales(self, dtype: torch.dtype) -> bool:
        has_grads = any(k.phase == "backward" and r.nonzero for k, r in self.ranges.items())
        return dtype is torch.float16 and has_grads

    def write_policy(
        self, path: str | os.PathLike[str], dtype: torch.dtype = torch.float16, margin: float = 1.0
    ) -> None:
        """Write `pins(dtype, margin)` as a policy file, for `options={"policy": path}`."""
        Path(path).write_text(policy_text(self.pins(dtype, margin)), encoding="utf-8")

    # The table ------------------------------------------------------------------

    def table(self, dtype: torch.dtype = torch.float16, rows: int | None = 40) -> Any:
        """A `rich.table.Table` of the values, least headroom in `dtype` first.

        Raises MpoptError if the package rich is not installed.
        """
        form = FORMATS[dtype]
        table = _rich_table()(title=self._title(form))
        table.add_column("module", overflow="fold")
        table.add_column("operator", overflow="fold", ratio=1)
        for name in ("absmax", "rms", "headroom", "subnormal", "lost", "inf+NaN", "logits"):
            table.add_column(name, justify="right", no_wrap=True)
        order = sorted(self.ranges.items(), key=lambda item: item[1].headroom(form))
        for key, each in order[:rows]:
            table.add_row(*_cells(key, each, form), style="red" if each.headroom(form) < 0 else "")
        if rows is not None and len(order) > rows:
            table.caption = f"{len(order) - rows} more with more headroom"
        return table

    def _title(self, form: Format) -> str:
        title = f"{len(self.ranges)} values over {self.batches} batches, as of {form.name}"
        if not self._scales(torch.float16) or form is not FORMATS[torch.float16]:
            return title
        scale = self.loss_scale()
        lost = f"lost {scale.lost_before:.1%} → {scale.lost_after:.1%}"
        return f"{title}; loss scale 2^{math.log2(scale.scale):.0f}, gradients {lost}"


def _cells(key: Key, range_: Range, form: Format) -> list[str]:
    op = key.op.removeprefix("aten.").removesuffix(".default")
    number = f" #{key.ordinal}" if key.ordinal else ""
    result = f" → {key.result}" if key.result else ""
    phase = " (backward)" if key.phase == "backward" else ""
    return [
        key.module or "(top)",
        op + number + result + phase,
        f"{range_.absmax:.3g}",
        f"{range_.rms:.3g}",
        f"{range_.headroom(form):+.1f}",
        f"{range_.below(form.normal):.1%}",
        f"{range_.below(form.subnormal):.1%}",
        str(range_.infs + range_.nans or ""),
        f"{max(range_.head_logits):.3g}" if range_.head_logits else "",
    ]


def _rich_table() -> Any:
    try:
        return importlib.import_module("rich.table").Table
    except ImportError as error:
        raise MpoptError(
            "calibration.table() needs the package rich, which is not installed; pip install rich"
        ) from error


# Rows as JSON -------------------------------------------------------------------


def _row(key: Key, range_: Range) -> dict[str, Any]:
    row: dict[str, Any] = {
        **key._asdict(),
        "dtype": range_.dtype,
        "elements": range_.elements,
        "nonzero": range_.nonzero,
        "absmax": range_.absmax,
        "rms": range_.rms,
        "square_sum": range_.square_sum,
        "inf": range_.infs,
        "nan": range_.nans,
        "below": {f"{f.name}_{s}": range_.below(getattr(f, s)) for f, s in _limits()},
        "headroom": {f.name: _finite(range_.headroom(f)) for f in FORMATS.values()},
        "exponents": {str(e): n for e, n in sorted(range_.exponents.items())},
    }
    if range_.head_logits is not None:
        row["head_logits"] = range_.head_logits
    return row


def _limits() -> list[tuple[Format, str]]:
    return [(form, side) for form in FORMATS.values() for side in _SIDES]


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _parse(data: Any, path: str | os.PathLike[str]) -> Calibration:
    def fail(what: str) -> MpoptError:
        return MpoptError(f"ranges file '{path}': {what}")

    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise fail(f"'schema' is not \"{SCHEMA}\"; mpopt.calibrate writes such files")
    if data.get("version") != VERSION:
        raise fail(
            f"version {data.get('version')}, but this release reads version {VERSION}; "
            "calibrate again"
        )
    if data.get("torch") != torch.__version__:
        warn(f"mpopt: '{path}' was measured with PyTorch {data.get('torch')}; names may differ")
    try:
        ranges: dict[Key, Range] = {}
        for number, row in enumerate(data["values"]):
            key, range_ = _parse_row(row)
            if key in ranges:
                raise fail(f"a second row of the same key at values[{number}]: {key}")
            ranges[key] = range_
        dtype = getattr(torch, data["dtype"]) if data["dtype"] else None
        return Calibration(ranges, dtype, int(data["batches"]), bool(data["backward"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        where = f"values[{number}]" if "number" in locals() else "file"
        raise fail(f"{type(error).__name__} {error} at {where}") from error


def _parse_row(row: dict[str, Any]) -> tuple[Key, Range]:
    key = Key(str(row["module"]), str(row["op"]), int(row["ordinal"]), row["phase"], row["result"])
    if key.phase not in ("forward", "backward"):
        raise ValueError(f"phase {key.phase!r}")
    return key, Range(
        dtype=str(row["dtype"]),
        elements=int(row["elements"]),
        absmax=float(row["absmax"]),
        square_sum=float(row["square_sum"]),
        infs=int(row["inf"]),
        nans=int(row["nan"]),
        exponents=Counter({int(e): int(n) for e, n in row["exponents"].items()}),
        head_logits=row.get("head_logits"),
    )
