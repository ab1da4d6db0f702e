"""Figures as text for people: numbers with their nouns, sizes, times, states. Pure."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeVar

from paimon_sink.maintain.history import ListenerState

__all__ = ["NOTHING", "clock_time", "count", "duration", "many", "or_nothing", "size", "state_of", "time_behind"]

T = TypeVar("T")

NOTHING = "-"
"""Where nobody says."""


def or_nothing(value: T | None, shown: Callable[[T], str]) -> str:
    return NOTHING if value is None else shown(value)


def count(number: int | None) -> str:
    return or_nothing(number, "{:,}".format)


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
    """A lag. Below zero it says "ahead": a minus is easily overlooked."""
    return duration(milliseconds) if milliseconds >= 0 else f"{duration(-milliseconds)} ahead"


def clock_time(at_ms: int, form: str = "%m-%d %H:%M:%S") -> str:
    """In UTC, as everybody's logs have it."""
    try:
        return datetime.fromtimestamp(at_ms // 1000, UTC).strftime(form)
    except (ValueError, OverflowError, OSError):
        # Another engine may state any number.
        return f"{at_ms} ms"


def state_of(listener: ListenerState) -> str:
    if listener.is_failing:
        return "failing"
    return "fine" if listener.owed == 0 else "waiting"
