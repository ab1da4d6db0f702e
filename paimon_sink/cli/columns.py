"""Columns that fit the terminal: names are shortened first, then the least important columns go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len, set_cell_size

__all__ = ["Column", "fitted", "lines"]

_GAP = "  "


@dataclass(frozen=True)
class Column:
    heading: str
    cells: Sequence[str]
    is_text: bool = False
    shortest: int | None = None
    """Cells may be cut to this width. None: they are shown whole."""
    cuts_start: bool = False
    """A long cell keeps its end: the class in ``package.module:Class``."""
    leaves: int = 0
    """Where there is no room, the column with the highest number goes first. One with 0 stays."""

    @property
    def width(self) -> int:
        return max(map(cell_len, (self.heading, *self.cells)))


def fitted(columns: Sequence[Column], *, width: int) -> tuple[list[Column], list[Column]]:
    """The columns as they fit, and those that had to go."""
    kept = list(columns)
    gone: list[Column] = []
    while True:
        short = [_shortened(column, by=_total(kept) - width) for column in kept]
        going = max(kept, key=lambda column: column.leaves)
        if _total(short) <= width or not going.leaves:
            return short, gone
        kept.remove(going)
        gone.append(going)


def lines(columns: Sequence[Column]) -> Iterator[str]:
    """The heading, then a line for each cell. Not a rich table: that pads every line with blanks."""
    widths = [column.width for column in columns]
    for row in zip(*((column.heading, *column.cells) for column in columns), strict=True):
        cells = [_set(text, width, column) for text, width, column in zip(row, widths, columns, strict=True)]
        yield _GAP.join(cells).rstrip()


def _total(columns: Sequence[Column]) -> int:
    return sum(column.width for column in columns) + len(_GAP) * (len(columns) - 1)


def _shortened(column: Column, *, by: int) -> Column:
    if column.shortest is None or by <= 0:
        return column
    most = max(column.shortest, column.width - by)
    cut = _cut_start if column.cuts_start else _cut
    return replace(column, cells=[cut(cell, most) for cell in column.cells])


def _cut(text: str, most: int) -> str:
    return text if cell_len(text) <= most else set_cell_size(text, most - 1).rstrip() + "…"


def _cut_start(text: str, most: int) -> str:
    return text if cell_len(text) <= most else "…" + set_cell_size(text[::-1], most - 1)[::-1].lstrip()


def _set(text: str, width: int, column: Column) -> str:
    blanks = " " * (width - cell_len(text))
    return text + blanks if column.is_text else blanks + text
