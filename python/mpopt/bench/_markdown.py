"""The table of `placement` in a page of the documentation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ._errors import UsageError
from .rows import Row

BEGIN, END = "<!-- placement: begin -->", "<!-- placement: end -->"
_GB = 1e9


def table(rows: Sequence[Row]) -> str:
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


def check_page(path: str) -> None:
    """Raise UsageError unless `path` is a page with a place for the table."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"--markdown: cannot read '{path}': {error.strerror}") from error
    if BEGIN not in text or END not in text.partition(BEGIN)[2]:
        raise UsageError(f"--markdown: '{path}' has no lines '{BEGIN}' and '{END}'")


def write_table(rows: Sequence[Row], path: str) -> None:
    """Put the table of `rows` between the two lines of the page `path`."""
    page = Path(path)
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    text = f"{before}{BEGIN}\n{table(rows)}\n{END}{after}"
    page.write_text(text, encoding="utf-8")
