"""The tables of a command in a page of the documentation, between two lines with its name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ._errors import UsageError
from .rows import Row

_GB = 1e9


def marks(command: str) -> tuple[str, str]:
    """Return the lines of a page between which the tables of `command` are."""
    return f"<!-- {command}: begin -->", f"<!-- {command}: end -->"


def placement_table(rows: Sequence[Row]) -> str:
    """Return a table with a line for each graph and a column for each level."""
    levels = list(dict.fromkeys(row.variant for row in rows))
    values = {(row.family, row.variant, row.metric): row.value for row in rows}
    lines = ["| graph | " + " | ".join(levels) + " |", "|---" * (len(levels) + 1) + "|"]
    for family in dict.fromkeys(row.family for row in rows):
        cells = [_cell(values, family, level) for level in levels]
        lines.append(f"| {family} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(values: dict[tuple[str, str, str], float], family: str, level: str) -> str:
    def of(metric: str) -> float:
        return values[family, level, metric]

    sizes = [of(name) / _GB for name in ("pointwise_bytes", "saved_bytes", "all_bytes")]
    pointwise, saved, everything = (f"{size:.2f}" for size in sizes)
    return f"{pointwise} / {saved} / {of('cast_only_kernels'):.0f} / {everything}"


def check_page(path: str, command: str) -> None:
    """Raise UsageError unless `path` is a page with a place for the tables of `command`."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--markdown: cannot read '{path}': {error.strerror}") from error
    begin, end = marks(command)
    if begin not in text or end not in text.partition(begin)[2]:
        raise UsageError(f"--markdown: '{path}' has no lines '{begin}' and '{end}'")


def write_table(table: str, path: str, command: str) -> None:
    """Put `table` between the two lines of the page `path`."""
    page = Path(path)
    begin, end = marks(command)
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    after = rest.partition(end)[2]
    page.write_text(f"{before}{begin}\n{table}\n{end}{after}", encoding="utf-8")
