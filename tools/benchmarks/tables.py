"""Figures side by side: the arithmetic, and tables as text, as Markdown and as data."""

from __future__ import annotations

from statistics import median
from typing import Any, NamedTuple

__all__ = ["Column", "Table", "median", "ratio"]


def ratio(value: float | None, base: float | None) -> float | None:
    """Return value / base, or None where one of them was not measured."""
    return None if value is None or not base else value / base


class Column(NamedTuple):
    """One column: the name of its figures in a row, what stands above it, and the decimals that are shown."""

    key: str
    heading: str
    decimals: int = 0


class Table:
    """Rows of figures under a title.

    Args:
        title: what was measured, and how.
        columns: the columns; the first one names the rows.
    """

    def __init__(self, title: str, columns: list[Column]) -> None:
        self.title = title
        self.columns = columns
        self.rows: list[dict[str, Any]] = []
        self.notes: list[str] = []

    def as_text(self) -> str:
        """Return the table with aligned columns."""
        cells = [[column.heading for column in self.columns], *self._cells()]
        widths = [max(len(row[place]) for row in cells) for place in range(len(self.columns))]
        lines = ["  ".join(_aligned(row, widths)).rstrip() for row in cells]
        lines.insert(1, "  ".join("-" * width for width in widths))
        return "\n".join([self.title, "", *lines, *self.notes])

    def as_markdown(self) -> str:
        """Return the table as Markdown."""
        ruler = ["---"] + ["---:"] * (len(self.columns) - 1)
        rows = [[column.heading for column in self.columns], ruler, *self._cells()]
        notes = ["", *self.notes] if self.notes else []
        return "\n".join([f"**{self.title}**", "", *(f"| {' | '.join(row)} |" for row in rows), *notes])

    def as_data(self) -> dict[str, Any]:
        """Return the table for JSON, with all decimals."""
        return {"title": self.title, "rows": self.rows, "notes": self.notes}

    def _cells(self) -> list[list[str]]:
        return [[_shown(row.get(column.key), column.decimals) for column in self.columns] for row in self.rows]


def _shown(value: Any, decimals: int) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else f"{value:,.{decimals}f}"


def _aligned(cells: list[str], widths: list[int]) -> list[str]:
    first, *others = zip(cells, widths)
    return [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
