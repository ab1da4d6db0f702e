"""Figures for people: numbers with their nouns, sizes, times, and a line for each of them."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

__all__ = ["NOTHING", "duration", "many", "show_figure", "size", "time_behind"]

NOTHING = "-"
"""Where nobody says."""


def show_figure(console: Console, name: str, value: int | str | None, note: str = "", *, wrong: bool = False) -> None:
    # Not a rich table: that pads every line with blanks, which stay when it is piped.
    shown = "?" if value is None else format(value, ",") if isinstance(value, int) else value
    figure = Text(f"  {name:<20}{shown:>13}", style="bold red" if wrong else "")
    console.print(figure.append(f"   {note}", style="dim") if note else figure, soft_wrap=True)


def many(number: int, noun: str, nouns: str | None = None) -> str:
    return f"{number:,} {noun if number == 1 else nouns or f'{noun}s'}"


def size(size_bytes: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size_bytes < 999.95:
            return f"{size_bytes:,.0f} {unit}" if unit == "B" else f"{size_bytes:,.1f} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:,.1f} TB"


def duration(milliseconds: float) -> str:
    """Two figures at most: ``17 ms``, ``4.2 s``, ``3m 20s``, ``5h 07m``, ``12d 04h``."""
    if milliseconds < 999.5:
        return f"{milliseconds:.0f} ms"
    if milliseconds < 59_950:
        return f"{milliseconds / 1000:.1f} s"
    seconds = round(milliseconds / 1000)
    if seconds < 3600:
        return f"{seconds // 60}m {seconds % 60:02}s"
    minutes = round(milliseconds / 60_000)
    if minutes < 24 * 60:
        return f"{minutes // 60}h {minutes % 60:02}m"
    hours = round(milliseconds / 3_600_000)
    return f"{hours // 24}d {hours % 24:02}h"


def time_behind(milliseconds: float) -> str:
    """A lag. One below zero is said in a word: a minus is easily overlooked."""
    return duration(milliseconds) if milliseconds >= 0 else f"{duration(-milliseconds)} ahead"
