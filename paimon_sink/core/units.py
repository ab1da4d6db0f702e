"""Sizes and durations as people write them: ``128mb``, ``30d``."""

from __future__ import annotations

import re

__all__ = ["parse_duration_ms", "parse_size_bytes"]

_SIZES = {
    "": 1,
    "b": 1,
    "k": 1 << 10,
    "kb": 1 << 10,
    "m": 1 << 20,
    "mb": 1 << 20,
    "g": 1 << 30,
    "gb": 1 << 30,
    "t": 1 << 40,
    "tb": 1 << 40,
}
_DURATIONS = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}

# 18 digits hold any sensible figure, and keep int() from inputs that are too long for it.
_FIGURE = re.compile(r"([0-9]{1,18})\s*([a-z]*)", re.ASCII)


def parse_size_bytes(text: str) -> int | None:
    """Bytes, by powers of 1024, or None when this is no size."""
    return _parse(text, _SIZES)


def parse_duration_ms(text: str) -> int | None:
    """Milliseconds, or None when this is no duration. A figure without a unit is none."""
    return _parse(text, _DURATIONS)


def _parse(text: str, units: dict[str, int]) -> int | None:
    figure = _FIGURE.fullmatch(text.strip().lower())
    if figure is None or figure.group(2) not in units:
        return None
    return int(figure.group(1)) * units[figure.group(2)]
